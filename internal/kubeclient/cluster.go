// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// ClusterUID returns the UID of the namespace kube-system, which identifies the cluster
// (OpenTelemetry's k8s.cluster.uid); empty if the receiver may not read it. An error means that another
// request may get an answer. The client must be one for the core group.
func ClusterUID(ctx context.Context, client rest.Interface, logger *zap.Logger) (string, error) {
	namespace := &corev1.Namespace{}
	err := client.Get().Resource("namespaces").Name("kube-system").Do(ctx).Into(namespace)
	switch {
	case err == nil:
		return string(namespace.UID), nil
	case !resolver.IsAnswer(err):
		return "", err
	case !apierrors.IsForbidden(err): // A role for some namespaces does not include kube-system.
		logger.Warn("Cannot read the UID of the cluster; records and points have no k8s.cluster.uid", zap.Error(err))
	}
	return "", nil
}

// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"net/http"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// ClusterUID returns the UID of the namespace kube-system, which identifies the cluster
// (OpenTelemetry's k8s.cluster.uid); empty if the receiver may not read it. An error means that another
// request may get an answer. The client must be one for the core group.
func ClusterUID(ctx context.Context, client rest.Interface, logger *zap.Logger) (string, error) {
	var status int
	namespace := &corev1.Namespace{}
	err := client.Get().Resource("namespaces").Name("kube-system").Do(ctx).StatusCode(&status).Into(namespace)
	switch {
	case err == nil:
		return string(namespace.UID), nil
	case !isAnswer(status):
		return "", err
	case !apierrors.IsForbidden(err): // A role for some namespaces does not include kube-system.
		logger.Warn("Cannot read the UID of the cluster; records and points have no k8s.cluster.uid", zap.Error(err))
	}
	return "", nil
}

// isAnswer reports whether a response with this status, which has no UID, is final: a permission is
// missing, or a proxy does not let the request through. Any other error may be over soon, also that of
// credentials, without which nothing works. No status means that there was no response.
func isAnswer(status int) bool {
	passing := []int{http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && !slices.Contains(passing, status)
}

// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// unusedName is a name that no event has. A list of one name reads one key, however many events
// exist. Its resource version is that of the whole store.
const unusedName = "kubeeventsreceiver-resource-version"

// checkVersion compares the store's version with the highest one that the stream knows, before it
// connects. If it is lower, etcd was restored from a backup: the stream forgets the versions that it
// knows, and lists. The API server accepts a watch from a version that does not exist yet, and sends
// nothing.
func (s *Stream) checkVersion(ctx context.Context) error {
	if s.highest == 0 {
		return nil // A new stream has nothing to compare.
	}
	answer, err := s.storeVersion(ctx)
	if err != nil {
		return err
	}
	now := event.Version(answer)
	if now == 0 || now >= s.highest {
		return nil // A version that is no number cannot be compared.
	}
	s.settings.Observer.WentBack(s.settings.Namespace, s.highest, now)
	s.highest, s.resourceVersion, s.exactAt, s.internalErrorAt = 0, "", "", ""
	return s.put(ctx, Change{Kind: KindWentBack})
}

// storeVersion returns the store's version. The API server reads it from etcd, not from a cache,
// because the request names no version.
func (s *Stream) storeVersion(ctx context.Context) (string, error) {
	namespace := s.settings.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceSystem // A name is a key only within a namespace.
	}
	list, err := s.page(ctx, namespace, &metav1.ListOptions{FieldSelector: "metadata.name=" + unusedName, Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

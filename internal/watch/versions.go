// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// unusedName is a name that no event has. A list of one name reads one key, however many events
// exist. Its resource version is that of the whole store.
const unusedName = "kubeeventsreceiver-resource-version"

// ErrWentBack is returned if the store's version is below a known one.
var ErrWentBack = errors.New("the resource versions of the cluster went back")

// Versions detects that the resource versions of the cluster went back, as after a restore of etcd
// from a backup. The API server accepts a watch from a version that does not exist yet, and sends
// nothing. So a stream requests the store's version before it connects again. All streams of a
// receiver share one Versions. After versions went back, callers must stop the streams, and start
// others with a new Versions. Its methods may be called concurrently.
type Versions struct {
	client   rest.Interface // nil: versions are not checked
	wentBack func(known, now uint64)
	once     sync.Once     // of wentBack
	highest  atomic.Uint64 // the highest version that is known
}

// NewVersions returns a Versions for the cluster of the client. wentBack is called at most once, by
// the caller of Check that detects it, with the highest known version and the store's.
func NewVersions(client rest.Interface, wentBack func(known, now uint64)) *Versions {
	return &Versions{client: client, wentBack: wentBack}
}

// Highest returns the highest known version; 0: none is known.
func (v *Versions) Highest() uint64 { return v.highest.Load() }

// Observe notes a version that the cluster has, or has had.
func (v *Versions) Observe(version uint64) {
	for highest := v.highest.Load(); version > highest; highest = v.highest.Load() {
		if v.highest.CompareAndSwap(highest, version) {
			return
		}
	}
}

// Check compares the store's version with the highest known one. If it is below, the versions went
// back, and the error is ErrWentBack.
func (v *Versions) Check(ctx context.Context, namespace string) error {
	known := v.Highest() // A stream may see a newer version while the request is in flight.
	if v.client == nil || known == 0 {
		return nil
	}
	answer, err := v.fetch(ctx, namespace)
	if err != nil {
		return err
	}
	now := event.Version(answer)
	if now == 0 || now >= known {
		return nil // A version that is no number cannot be compared.
	}
	reached.State("the versions of the cluster went back")
	v.once.Do(func() { v.wentBack(known, now) })
	return ErrWentBack
}

// fetch returns the store's version. The API server reads it from etcd, not from a cache, because
// the request names no version.
func (v *Versions) fetch(ctx context.Context, namespace string) (string, error) {
	if namespace == "" {
		namespace = metav1.NamespaceSystem // A name is a key only within a namespace.
	}
	ctx, cancel := context.WithTimeoutCause(ctx, responseTimeout, errNoResponse)
	defer cancel()
	list := &corev1.EventList{}
	err := v.client.Get().Namespace(namespace).Resource("events").
		MaxRetries(0). // The stream connects again, with a back-off.
		VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name=" + unusedName, Limit: 1}, parameters).
		Do(ctx).Into(list)
	if err != nil && errors.Is(context.Cause(ctx), errNoResponse) {
		return "", errNoResponse
	}
	return list.ResourceVersion, err
}

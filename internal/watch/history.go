// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// unusedName is a name that no event has. A list of one name reads one key, however many events
// exist. Its resource version is that of the whole store.
const unusedName = "kubeeventsreceiver-resource-version"

var errWentBack = errors.New("the resource versions of the cluster went back")

// History is a time in which the resource versions of the cluster only grow. It ends when etcd is
// restored from a backup, or another cluster answers at the address: callers must then stop the streams,
// and start others in a new History. The API server accepts a watch from a version that does not exist
// yet, and sends nothing. So a stream requests the store's version before it connects again. All
// streams of a receiver share one History. Its methods may be called concurrently.
type History struct {
	ctx        context.Context // ends with the history
	end        context.CancelFunc
	client     rest.Interface // nil: versions are not checked
	namespaces []string       // of the streams
	wentBack   func(known, now uint64)
	once       sync.Once     // of wentBack
	highest    atomic.Uint64 // the highest version that is known
}

// NewHistory returns a history of the client's cluster, which ends at the latest with the context.
// wentBack is called at most once, by the caller of a method that detects that the versions went back,
// with the highest known version and the store's.
func NewHistory(ctx context.Context, client rest.Interface, namespaces []string, wentBack func(known, now uint64)) *History {
	ctx, end := context.WithCancel(ctx)
	return &History{ctx: ctx, end: end, client: client, namespaces: namespaces, wentBack: wentBack}
}

// Context returns a context that ends with the history.
func (h *History) Context() context.Context { return h.ctx }

// End ends the history.
func (h *History) End() { h.end() }

// Highest returns the highest known version; 0: none is known.
func (h *History) Highest() uint64 { return h.highest.Load() }

// Observe notes a version that the cluster has, or has had.
func (h *History) Observe(version uint64) {
	for highest := h.highest.Load(); version > highest; highest = h.highest.Load() {
		if h.highest.CompareAndSwap(highest, version) {
			return
		}
	}
}

// CheckVersions asks the cluster, in the first namespace that may be read, whether its versions have
// gone back, also below a version that another process knows. If so, the history ends.
func (h *History) CheckVersions(ctx context.Context, known uint64) (wentBack bool, err error) {
	h.Observe(known)
	for _, namespace := range h.namespaces {
		if err = h.check(ctx, namespace); !apierrors.IsForbidden(err) {
			break
		}
	}
	if errors.Is(err, errWentBack) {
		return true, nil
	}
	return false, err
}

// check compares the store's version with the highest known one. If it is below, the versions went
// back, the history ends, and the error is errWentBack.
func (h *History) check(ctx context.Context, namespace string) error {
	known := h.Highest() // A stream may see a newer version while the request is in flight.
	if h.client == nil || known == 0 {
		return nil
	}
	answer, err := h.fetch(ctx, namespace)
	if err != nil {
		return err
	}
	now := event.Version(answer)
	if now == 0 || now >= known {
		return nil // A version that is no number cannot be compared.
	}
	reached.State("the versions of the cluster went back")
	h.once.Do(func() { h.wentBack(known, now) })
	h.End()
	return errWentBack
}

// fetch returns the store's version. The API server reads it from etcd, not from a cache, because
// the request names no version.
func (h *History) fetch(ctx context.Context, namespace string) (string, error) {
	if namespace == "" {
		namespace = metav1.NamespaceSystem // A name is a key only within a namespace.
	}
	ctx, cancel := context.WithTimeoutCause(ctx, responseTimeout, errNoResponse)
	defer cancel()
	list := &corev1.EventList{}
	err := h.client.Get().Namespace(namespace).Resource("events").
		MaxRetries(0). // The stream connects again, with a back-off.
		VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name=" + unusedName, Limit: 1}, parameters).
		Do(ctx).Into(list)
	if err != nil && errors.Is(context.Cause(ctx), errNoResponse) {
		return "", errNoResponse
	}
	return list.ResourceVersion, err
}

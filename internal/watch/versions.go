// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// shareWindow is how long a request for the store's version waits for more streams to share it.
	shareWindow = 50 * time.Millisecond
	// unusedName is a name that no event has. A list of one name reads one key, however many events
	// exist. Its resource version is that of the whole store.
	unusedName = "kubeeventsreceiver-resource-version"
)

// Versions detects that the resource versions of the cluster went back, as after a restore of etcd
// from a backup. The API server accepts a watch from a version that does not exist yet, and sends
// nothing. So a stream requests the store's version before it connects again. All streams of a
// receiver share one Versions. Its methods may be called concurrently.
type Versions struct {
	client  rest.Interface // nil: versions are not checked
	current atomic.Pointer[generation]

	mu sync.Mutex
	// next is the request that has not started yet, which callers can share.
	next *versionRequest
}

// generation is the time between two restores. Versions of different generations must not be
// compared. A stream reports versions to the generation in which it connected.
type generation struct {
	number  int           // of restores before
	highest atomic.Uint64 // the highest version that any stream has seen
	ended   context.Context
	end     context.CancelFunc
}

// versionRequest is a request that callers share. The fields are final once done is closed.
type versionRequest struct {
	done chan struct{}
	err  error
	// own is set if the error concerns only the caller that made the request.
	own bool
}

// NewVersions returns a Versions for the cluster of the client. highest is the highest resource
// version of a checkpoint or position; 0 means that none is known.
func NewVersions(client rest.Interface, highest uint64) *Versions {
	v := &Versions{client: client}
	v.current.Store(newGeneration(0, highest))
	return v
}

// Highest returns the highest known version. After versions have gone back, only later versions
// count.
func (v *Versions) Highest() uint64 { return v.current.Load().highest.Load() }

// Restores returns how often the versions have gone back.
func (v *Versions) Restores() int { return v.current.Load().number }

func newGeneration(number int, highest uint64) *generation {
	g := &generation{number: number}
	g.highest.Store(highest)
	g.ended, g.end = context.WithCancel(context.Background())
	return g
}

// observe records a version that a stream has seen.
func (g *generation) observe(version string) {
	n := event.Version(version)
	for highest := g.highest.Load(); n > highest; highest = g.highest.Load() {
		if g.highest.CompareAndSwap(highest, n) {
			return
		}
	}
}

// Check compares the store's version with the highest known one, and starts a new generation if it
// is below. Callers must close the connection of their stream before: Check uses a request that
// starts after the call. wentBack is called by the one caller that detected it.
func (v *Versions) Check(ctx context.Context, namespace string, wentBack func(known, now uint64)) error {
	if v.client == nil || v.current.Load().highest.Load() == 0 {
		return nil
	}
	v.mu.Lock()
	shared := v.next
	if shared == nil {
		r := &versionRequest{done: make(chan struct{})}
		v.next = r
		v.mu.Unlock()
		v.request(ctx, r, namespace, wentBack)
		return r.err
	}
	v.mu.Unlock()
	select {
	case <-shared.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if shared.own {
		reached.State("a shared request fails for its own caller only")
		return v.compare(ctx, namespace, wentBack)
	}
	return shared.err
}

// request sends the request that others share.
func (v *Versions) request(ctx context.Context, r *versionRequest, namespace string, wentBack func(known, now uint64)) {
	pause(ctx, shareWindow)
	v.mu.Lock()
	v.next = nil
	v.mu.Unlock()
	r.err = v.compare(ctx, namespace, wentBack)
	r.own = ctx.Err() != nil || apierrors.IsForbidden(r.err)
	close(r.done)
}

func (v *Versions) compare(ctx context.Context, namespace string, wentBack func(known, now uint64)) error {
	g := v.current.Load()
	// A stream may see a newer version while the request is in flight.
	known := g.highest.Load()
	answer, err := v.fetch(ctx, namespace)
	if err != nil {
		return err
	}
	now := event.Version(answer)
	if now == 0 || now >= known {
		return nil // A version that is no number cannot be compared.
	}
	// Another request may have found the same.
	if v.current.CompareAndSwap(g, newGeneration(g.number+1, now)) {
		reached.State("the versions of the cluster went back")
		wentBack(known, now)
		g.end()
	}
	return nil
}

// Now returns the store's version. The namespace is one that the receiver watches; empty: all of
// them. The error is that of the request.
func (v *Versions) Now(ctx context.Context, namespace string) (uint64, error) {
	answer, err := v.fetch(ctx, namespace)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(answer, 10, 64)
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

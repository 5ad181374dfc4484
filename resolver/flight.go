// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
)

// flight merges concurrent calls for the same key into one. Unlike x/sync's singleflight, it lets a
// caller leave. A call whose callers have all left finishes the request that it has sent, because
// the reply is worth having, and sends no other.
type flight[K comparable, V any] struct {
	background *background

	mu    sync.Mutex
	calls map[K]*call[V] // in flight; guarded by mu
}

// call is one call and its result.
type call[V any] struct {
	done   chan struct{} // closed when value and ok are set
	value  V
	ok     bool // false if the call ended without a result
	cancel context.CancelFunc

	waiters int // guarded by flight.mu
}

func newFlight[K comparable, V any](b *background) *flight[K, V] {
	return &flight[K, V]{background: b, calls: make(map[K]*call[V])}
}

// join returns the call that is in flight for the key, or starts one. Callers must wait for the
// call or leave it. The context of run ends when all callers have left. If run returns false, the
// call has no result.
func (f *flight[K, V]) join(key K, run func(ctx context.Context) (V, bool)) *call[V] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if joined, found := f.calls[key]; found {
		joined.waiters++
		return joined
	}
	ctx, cancel := context.WithCancel(f.background.ctx)
	begun := &call[V]{done: make(chan struct{}), cancel: cancel, waiters: 1}
	f.calls[key] = begun
	started := f.background.run(func() {
		value, ok := run(ctx)
		f.finish(key, begun, value, ok)
	})
	if !started {
		delete(f.calls, key)
		cancel()
		close(begun.done)
	}
	return begun
}

func (f *flight[K, V]) isInFlight(key K) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := f.calls[key]
	return found
}

func (f *flight[K, V]) finish(key K, finished *call[V], value V, ok bool) {
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	finished.cancel()
	finished.value, finished.ok = value, ok
	close(finished.done)
}

// leave removes one caller from the call.
func (f *flight[K, V]) leave(left *call[V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left.waiters--
	if left.waiters == 0 {
		left.cancel()
	}
}

// wait returns the call's result. It returns false if there is none, or if ctx is done first.
func (f *flight[K, V]) wait(ctx context.Context, joined *call[V]) (V, bool) {
	select {
	case <-joined.done:
		return joined.value, joined.ok
	case <-ctx.Done():
		f.leave(joined)
		var none V
		return none, false
	}
}

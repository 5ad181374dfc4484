// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
)

// calls makes one call of many that ask the same at the same time. It differs
// from x/sync's singleflight in that a caller may leave, and in that a call
// learns when all have left: it finishes the request it has begun, because the
// answer is worth having, and begins no other.
type calls[K comparable, V any] struct {
	background *background

	mu    sync.Mutex
	under map[K]*call[V] // guarded by mu; under way
}

// call is one call and its answer.
type call[V any] struct {
	done   chan struct{} // closed when value and ok are set
	value  V
	ok     bool // false when the call ended without an answer
	cancel context.CancelFunc

	waiters int // guarded by calls.mu
}

func newCalls[K comparable, V any](b *background) *calls[K, V] {
	return &calls[K, V]{background: b, under: make(map[K]*call[V])}
}

// join returns the call that is under way for the key, or begins it. Who joins
// must either see the call done or leave it. The context that run gets is done
// when all have left; false from run means that it has no answer.
func (c *calls[K, V]) join(key K, run func(wanted context.Context) (V, bool)) *call[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if under, found := c.under[key]; found {
		under.waiters++
		return under
	}
	wanted, cancel := context.WithCancel(c.background.ctx)
	begun := &call[V]{done: make(chan struct{}), cancel: cancel, waiters: 1}
	c.under[key] = begun
	started := c.background.run(func() {
		value, ok := run(wanted)
		c.finish(key, begun, value, ok)
	})
	if !started {
		delete(c.under, key)
		cancel()
		close(begun.done)
	}
	return begun
}

func (c *calls[K, V]) isUnderWay(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.under[key]
	return found
}

func (c *calls[K, V]) finish(key K, finished *call[V], value V, ok bool) {
	c.mu.Lock()
	delete(c.under, key)
	c.mu.Unlock()
	finished.cancel()
	finished.value, finished.ok = value, ok
	close(finished.done)
}

// leave says that one of those who joined waits no longer.
func (c *calls[K, V]) leave(left *call[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left.waiters--
	if left.waiters == 0 {
		left.cancel()
	}
}

// wait returns the call's answer, or false when there is none or ctx is done
// before it.
func (c *calls[K, V]) wait(ctx context.Context, joined *call[V]) (V, bool) {
	select {
	case <-joined.done:
		return joined.value, joined.ok
	case <-ctx.Done():
		c.leave(joined)
		var none V
		return none, false
	}
}

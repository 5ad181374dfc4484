// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
)

// background runs requests that may outlive their callers, until close.
type background struct {
	ctx    context.Context // done once closed
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // mu guards Add, so that no Add comes after Wait
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel}
}

// run starts work in its own goroutine. It returns false if background is closed.
func (b *background) run(work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(work)
	return true
}

func (b *background) isClosed() bool { return b.ctx.Err() != nil }

// close stops the running work and waits for it. It may be called more than once.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
}

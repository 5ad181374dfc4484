// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// A batch that waits for more than stallAfter stalls the queue: the streams close their
// connections. They connect again when the loop has processed that batch and everything in the
// queue. So streams resume at the end of what the queue held, and no stream starts with a full
// queue.

// Connected returns a context that ends when the queue stalls.
func (q *Queue) Connected() context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.connected
}

// Await waits until the queue is not stalled. It returns the context's error if the context ends
// first.
func (q *Queue) Await(ctx context.Context) error {
	for {
		q.mu.Lock()
		resumed := q.resumed
		q.mu.Unlock()
		if resumed == nil {
			return ctx.Err()
		}
		select {
		case <-resumed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// IsStalled reports whether streams may not connect.
func (q *Queue) IsStalled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.resumed != nil
}

// Done records that the loop has processed the last batch and waits for more.
func (q *Queue) Done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.doneLocked()
}

func (q *Queue) beginLocked() {
	q.takenAt = time.Now()
	if q.stallTimer == nil {
		q.stallTimer = time.AfterFunc(stallAfter, q.stallIfLate)
	} else {
		q.stallTimer.Reset(stallAfter)
	}
}

func (q *Queue) doneLocked() {
	q.takenAt = time.Time{} // The timer may fire, and then does nothing.
	if q.resumed == nil || len(q.changes) > 0 {
		return
	}
	q.connected, q.stall = context.WithCancel(context.Background())
	close(q.resumed)
	q.resumed = nil
}

// stallIfLate may run after the loop has processed the batch, even after it has taken the next one.
func (q *Queue) stallIfLate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.takenAt.IsZero() || time.Since(q.takenAt) < stallAfter || q.resumed != nil {
		return
	}
	reached.State("a batch waits so long that the streams disconnect")
	q.resumed = make(chan struct{})
	q.stall()
}

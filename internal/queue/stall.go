// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"
)

// A batch that waits for more than stallAfter stalls the queue: the streams close their
// connections. They connect again when the loop has dealt with that batch and with all that was in
// the queue. Streams that wait for the queue to be empty resume at the end of what it held, and
// none of them meets a queue that is full from the start.

// Connected returns a context that ends when the queue stalls.
func (i *Inbox) Connected() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.connected
}

// Await waits until the queue is not stalled. It returns the context's error if the context ends
// first.
func (i *Inbox) Await(ctx context.Context) error {
	for {
		i.mu.Lock()
		resumed := i.resumed
		i.mu.Unlock()
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

// Done notes that the loop has dealt with the last batch and waits for more.
func (i *Inbox) Done() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doneLocked()
}

func (i *Inbox) beginLocked() {
	i.takenAt = time.Now()
	if i.late == nil {
		i.late = time.AfterFunc(stallAfter, i.stallIfLate)
	} else {
		i.late.Reset(stallAfter)
	}
}

func (i *Inbox) doneLocked() {
	i.takenAt = time.Time{}
	if i.late != nil {
		i.late.Stop()
	}
	if i.resumed == nil || len(i.changes) > 0 {
		return
	}
	i.connected, i.stall = context.WithCancel(context.Background())
	close(i.resumed)
	i.resumed = nil
}

// stallIfLate may run after the batch was dealt with, even when the next one has been taken.
func (i *Inbox) stallIfLate() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.takenAt.IsZero() || time.Since(i.takenAt) < stallAfter || i.resumed != nil {
		return
	}
	i.resumed = make(chan struct{})
	i.stall()
}

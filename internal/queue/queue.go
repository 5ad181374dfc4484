// SPDX-License-Identifier: Apache-2.0

// Package queue is the queue between the streams and the receiver's loop. It is bounded in bytes of
// events, so that a full queue makes the streams wait.
package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

const (
	// maxBytes bounds the queue. A change that is larger takes all of it.
	maxBytes = 4 << 20
	// overhead is the memory of a change in addition to the text of its event: the structs (about
	// 700 B) and the rounding of each string.
	overhead = 1 << 10
)

// Queue is a bounded queue of changes. Any number of streams may put at the same time; one
// goroutine takes. It implements watch.Taker.
type Queue struct {
	maxChanges int // of a batch
	signal     chan struct{}
	// room admits changes in the order in which they came, so that a stream with many changes cannot
	// starve the others.
	room *semaphore.Weighted

	mu      sync.Mutex // guards the following
	changes []watch.Change
}

// New returns an empty queue. A batch holds at most maxChanges changes.
func New(maxChanges int) *Queue {
	return &Queue{maxChanges: maxChanges, signal: make(chan struct{}, 1), room: semaphore.NewWeighted(maxBytes)}
}

// Put waits until there is room for the change. It returns the context's error if the context ends
// first; then the change is not in the queue.
func (q *Queue) Put(ctx context.Context, change watch.Change) error {
	weight := weightOf(&change)
	if !q.room.TryAcquire(weight) {
		q.wake() // Nothing more comes before a batch is taken.
		if err := q.room.Acquire(ctx, weight); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changes = append(q.changes, change); len(q.changes) == 1 {
		time.AfterFunc(watch.ReadTogether, q.wake)
	}
	return nil
}

func weightOf(change *watch.Change) int64 {
	if change.Event == nil {
		return overhead
	}
	return min(overhead+int64(change.Event.Size()), maxBytes)
}

func (q *Queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// Signal returns the channel that wakes the loop when there is a batch to take. Spurious wake-ups are
// possible.
func (q *Queue) Signal() <-chan struct{} { return q.signal }

// Take appends the next batch: the changes so far, up to maxChanges changes. If something is left,
// Signal wakes the loop again.
func (q *Queue) Take(batch []watch.Change) []watch.Change {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, weight := min(len(q.changes), q.maxChanges), int64(0)
	for i := range taken {
		weight += weightOf(&q.changes[i])
	}
	batch = append(batch, q.changes[:taken]...)
	q.changes = slices.Delete(q.changes, 0, taken)
	if len(q.changes) > 0 {
		q.wake()
	}
	q.room.Release(weight)
	return batch
}

// SPDX-License-Identifier: Apache-2.0

// Package queue is the queue between the streams and the receiver's loop. It is bounded in bytes of
// events, so that a full queue makes the streams wait.
package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

const (
	// maxBytes bounds the queue, and a batch.
	maxBytes = 4 << 20
	// overhead is the memory of a change in addition to the text of its event: the structs (about
	// 700 B) and the rounding of each string.
	overhead = 1 << 10
	// stallAfter is how long a batch may wait before the streams close their connections. An unread
	// watch costs the API server memory.
	stallAfter = 30 * time.Second
)

// Queue is a bounded queue of changes. Any number of streams may put at the same time; one
// goroutine takes. It implements watch.Taker.
type Queue struct {
	maxChanges int // of a batch
	signal     chan struct{}

	mu         sync.Mutex
	changes    []entry
	weight     int64 // of changes
	hasListEnd bool  // a list ends among the changes
	// blocked holds the changes that found no room, in the order in which they came. So a stream
	// with many changes cannot starve the others.
	blocked []*waiter

	// takenAt is when the loop took the batch that it still processes; zero if there is none.
	takenAt    time.Time
	stallTimer *time.Timer // fires after stallAfter; nil before the first batch
	// connected ends when the queue stalls. While the queue is stalled, resumed is the channel that
	// closes when the streams may connect again. Otherwise it is nil.
	connected context.Context
	stall     context.CancelFunc
	resumed   chan struct{}
}

type entry struct {
	change watch.Change
	weight int64
}

type waiter struct {
	entry
	admitted chan struct{} // closed once the change is in the queue
}

// New returns an empty queue. A batch holds at most maxChanges changes.
func New(maxChanges int) *Queue {
	q := &Queue{maxChanges: maxChanges, signal: make(chan struct{}, 1)}
	q.connected, q.stall = context.WithCancel(context.Background())
	return q
}

// Put waits until there is room for the change. It returns the context's error if the context ends
// first; then the change is not in the queue.
func (q *Queue) Put(ctx context.Context, change watch.Change) error {
	e := entry{change, weightOf(&change)}
	q.mu.Lock()
	if len(q.blocked) == 0 && q.fitsLocked(e) {
		q.addLocked(e)
		q.mu.Unlock()
		return nil
	}
	w := &waiter{e, make(chan struct{})}
	q.blocked = append(q.blocked, w) // The queue is not empty, so the loop is awake or will be.
	q.mu.Unlock()

	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
		return q.withdraw(ctx, w)
	}
}

// withdraw returns nil if the change has been admitted in the meantime.
func (q *Queue) withdraw(ctx context.Context, w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.blocked, w)
	if at < 0 {
		return nil
	}
	q.blocked = slices.Delete(q.blocked, at, at+1)
	q.admitLocked() // The next ones may be smaller.
	return ctx.Err()
}

// admitLocked moves blocked changes into the queue, in order, as far as there is room.
func (q *Queue) admitLocked() {
	n := 0
	for ; n < len(q.blocked) && q.fitsLocked(q.blocked[n].entry); n++ {
		q.addLocked(q.blocked[n].entry)
		close(q.blocked[n].admitted)
	}
	q.blocked = slices.Delete(q.blocked, 0, n)
}

// fitsLocked reports whether there is room. A change that is larger than the bound fits an empty
// queue.
func (q *Queue) fitsLocked(e entry) bool {
	return len(q.changes) == 0 || q.weight+e.weight <= maxBytes
}

func (q *Queue) addLocked(e entry) {
	q.changes = append(q.changes, e)
	q.weight += e.weight
	q.hasListEnd = q.hasListEnd || e.change.Kind == watch.ListEnded
	q.wake()
}

func weightOf(change *watch.Change) int64 {
	if change.Event == nil {
		return overhead
	}
	return overhead + int64(change.Event.Size())
}

func (q *Queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// forgetSignal forgets a wake-up for what was taken.
func (q *Queue) forgetSignal() {
	select {
	case <-q.signal:
	default:
	}
}

// Signal returns the channel that wakes the loop when there is something to take. Spurious wake-ups
// are possible.
func (q *Queue) Signal() <-chan struct{} { return q.signal }

// Full reports whether the next batch is complete: it has its maximum of changes or bytes, or a
// list ends, which ends the batch.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fullLocked()
}

// fullLocked leaves some room in bytes, so that the streams continue while the loop takes a batch.
func (q *Queue) fullLocked() bool {
	return q.hasListEnd || len(q.changes) >= q.maxChanges || q.weight > maxBytes-maxBytes/8
}

// Take appends the next batch: the changes so far, up to maxChanges changes, 4 MiB, or the end of a
// list. A single larger change is its own batch. If something is left, Signal wakes the loop again.
// Callers must have processed the previous batch.
func (q *Queue) Take(batch []watch.Change) []watch.Change {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, weight := q.nextLocked()
	for _, e := range q.changes[:taken] {
		batch = append(batch, e.change)
	}
	left := copy(q.changes, q.changes[taken:])
	clear(q.changes[left:])
	q.changes = q.changes[:left]
	q.weight -= weight
	q.hasListEnd = slices.ContainsFunc(q.changes, func(e entry) bool { return e.change.Kind == watch.ListEnded })
	q.forgetSignal()
	if left > 0 {
		q.wake()
	}
	q.admitLocked()
	if taken > 0 {
		q.beginLocked()
	} else {
		q.doneLocked()
	}
	return batch
}

// nextLocked returns how many changes the next batch has, and their weight.
func (q *Queue) nextLocked() (taken int, weight int64) {
	for taken < min(len(q.changes), q.maxChanges) {
		e := &q.changes[taken]
		if taken > 0 && weight+e.weight > maxBytes {
			break
		}
		taken++
		weight += e.weight
		if e.change.Kind == watch.ListEnded {
			break
		}
	}
	return taken, weight
}

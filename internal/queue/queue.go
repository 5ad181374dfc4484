// SPDX-License-Identifier: Apache-2.0

// Package queue is the queue of the changes that the streams have read and the receiver's loop has
// not yet taken. It is bounded in bytes of events, so that a full queue makes the streams wait.
// It wakes the loop when a stream has nothing more to read, or when the next batch is full, and not
// for each change: waking costs more than most of what is done with a change.
package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

const (
	// openBytes bounds the queue while the gate is open. It bounds a batch too.
	openBytes = 4 << 20
	// closedBytes bounds the queue while the gate is closed: a standby's queue must hold what
	// arrives between two of its leader's positions, which come every 2 s.
	closedBytes = 16 << 20
	// overhead is what a change takes in memory in addition to the text of its event: the structs
	// (about 700 B) and the rounding of each string.
	overhead = 1 << 10
	// stallAfter is how long a batch may wait before the streams close their connections. An unread
	// watch costs the API server memory.
	stallAfter = 30 * time.Second
)

// Inbox is a bounded queue of changes. Any number of streams may put at the same time; one
// goroutine takes. It implements watch.Taker.
type Inbox struct {
	maxChanges int // of a batch
	signal     chan struct{}

	mu      sync.Mutex
	changes []entry
	weight  int64 // of changes
	bound   int64 // of weight
	ends    bool  // a listing ends among the changes
	// blocked holds the changes that found no room, in the order in which they came, so that a
	// stream that floods cannot starve the others.
	blocked []*waiter

	// takenAt is when the batch was taken that the loop has not dealt with; zero if there is none.
	takenAt time.Time
	late    *time.Timer // ends when the batch has waited for stallAfter; nil before the first batch
	// connected ends when the queue stalls. While it is stalled, resumed is the channel that is
	// closed when the streams may connect again; otherwise it is nil.
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

// New returns an empty queue with an open gate. A batch holds at most maxChanges changes.
func New(maxChanges int) *Inbox {
	i := &Inbox{maxChanges: maxChanges, signal: make(chan struct{}, 1), bound: openBytes}
	i.connected, i.stall = context.WithCancel(context.Background())
	return i
}

// SetGate sets the queue's bound: it is larger while the gate is closed. If the queue holds more
// than the new bound, Put waits until the loop has taken enough.
func (i *Inbox) SetGate(closed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bound = openBytes
	if closed {
		i.bound = closedBytes
	}
	i.admitLocked()
}

// Put waits until there is room for the change. It returns the context's error if the context ends
// first; then the change is not in the queue.
func (i *Inbox) Put(ctx context.Context, change watch.Change) error {
	e := entry{change, weightOf(&change)}
	i.mu.Lock()
	if len(i.blocked) == 0 && i.fitsLocked(e) {
		i.addLocked(e)
		i.mu.Unlock()
		return nil
	}
	w := &waiter{e, make(chan struct{})}
	i.blocked = append(i.blocked, w)
	i.wake()
	i.mu.Unlock()

	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
		return i.withdraw(ctx, w)
	}
}

// withdraw returns nil if the change has been admitted in the meantime.
func (i *Inbox) withdraw(ctx context.Context, w *waiter) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.blocked, w)
	if at < 0 {
		return nil
	}
	i.blocked = slices.Delete(i.blocked, at, at+1)
	i.admitLocked() // The next ones may be smaller.
	return ctx.Err()
}

// admitLocked moves blocked changes into the queue, in order, as far as there is room.
func (i *Inbox) admitLocked() {
	n := 0
	for ; n < len(i.blocked) && i.fitsLocked(i.blocked[n].entry); n++ {
		i.addLocked(i.blocked[n].entry)
		close(i.blocked[n].admitted)
	}
	i.blocked = slices.Delete(i.blocked, 0, n)
}

// fitsLocked reports whether there is room. A change that is larger than the bound fits an empty
// queue.
func (i *Inbox) fitsLocked(e entry) bool {
	return len(i.changes) == 0 || i.weight+e.weight <= i.bound
}

func (i *Inbox) addLocked(e entry) {
	i.changes = append(i.changes, e)
	i.weight += e.weight
	i.ends = i.ends || e.change.Kind == watch.ListEnded
	if i.fullLocked() {
		i.wake()
	}
}

// Flush is called when a stream has nothing more to read, so that the loop takes what is there.
func (i *Inbox) Flush() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.changes) > 0 {
		i.wake()
	}
}

func weightOf(change *watch.Change) int64 {
	if change.Event == nil {
		return overhead
	}
	return overhead + int64(change.Event.Size())
}

func (i *Inbox) wake() {
	select {
	case i.signal <- struct{}{}:
	default:
	}
}

// Signal returns the channel that wakes the loop: when there is something to take and the streams
// have nothing more to read, and when the next batch is full. It may wake without need.
func (i *Inbox) Signal() <-chan struct{} { return i.signal }

// Full reports whether waiting brings nothing more into the next batch: it has all the changes or
// bytes that it may have, or a listing ends, which ends a batch.
func (i *Inbox) Full() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fullLocked()
}

// fullLocked leaves a little room in bytes, so that the streams go on while a batch is being taken.
func (i *Inbox) fullLocked() bool {
	return i.ends || len(i.changes) >= i.maxChanges || i.weight > openBytes-openBytes/8
}

// Take appends the next batch: what is there, up to maxChanges changes, 4 MiB, or the end of a
// listing. A single change that is larger is a batch of its own. If something is left, Signal wakes
// again. Taking a batch means that the loop has dealt with the former one.
func (i *Inbox) Take(batch []watch.Change) []watch.Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken, weight := i.nextLocked()
	for _, e := range i.changes[:taken] {
		batch = append(batch, e.change)
	}
	left := copy(i.changes, i.changes[taken:])
	clear(i.changes[left:])
	i.changes = i.changes[:left]
	i.weight -= weight
	i.ends = slices.ContainsFunc(i.changes, func(e entry) bool { return e.change.Kind == watch.ListEnded })
	if left > 0 {
		i.wake()
	}
	i.admitLocked()
	if taken > 0 {
		i.beginLocked()
	} else {
		i.doneLocked()
	}
	return batch
}

// nextLocked returns how many changes the next batch has, and their weight.
func (i *Inbox) nextLocked() (taken int, weight int64) {
	for taken < min(len(i.changes), i.maxChanges) {
		e := &i.changes[taken]
		if taken > 0 && weight+e.weight > openBytes {
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

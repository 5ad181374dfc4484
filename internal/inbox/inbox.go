// SPDX-License-Identifier: Apache-2.0

// Package inbox holds what the streams have read until a batch of it is taken. Whoever takes is woken when a stream has
// nothing more at hand and when the inbox is full, and not for each change: waking costs more than most of what is done with
// a change.
package inbox

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// weighty is how many bytes of a message weigh as much as a change. The message is the one field of an event without a
// small bound.
const weighty = 4 << 10

// Inbox is a bounded queue of changes. Any number of streams may put at the same time; one goroutine takes.
type Inbox struct {
	capacity int64
	// room is handed out in the order in which it is asked for, so that a stream that floods cannot starve the others.
	room   *semaphore.Weighted
	signal chan struct{}

	mu      sync.Mutex
	changes []watch.Change
	weight  int64
	ends    bool // a listing ends among the changes
}

// New makes an inbox for so many changes with messages of up to 4 KiB, or fewer with larger ones.
func New(capacity int) *Inbox {
	return &Inbox{
		capacity: int64(capacity),
		room:     semaphore.NewWeighted(int64(capacity)),
		signal:   make(chan struct{}, 1),
	}
}

// Put waits until there is room for the change. It returns the context's error if that ends before.
func (i *Inbox) Put(ctx context.Context, change watch.Change) error {
	weight := i.weightOf(&change)
	if !i.room.TryAcquire(weight) {
		i.wake()
		if err := i.room.Acquire(ctx, weight); err != nil {
			return err
		}
	}
	i.mu.Lock()
	i.changes = append(i.changes, change)
	i.weight += weight
	i.ends = i.ends || change.Kind == watch.ListEnded
	wake := i.fullLocked()
	i.mu.Unlock()
	if wake {
		i.wake()
	}
	return nil
}

// Flush says that nothing more is at hand, so that what was put may be taken.
func (i *Inbox) Flush() {
	i.mu.Lock()
	wake := len(i.changes) > 0
	i.mu.Unlock()
	if wake {
		i.wake()
	}
}

func (i *Inbox) weightOf(change *watch.Change) int64 {
	if change.Event == nil {
		return 1
	}
	return min(i.capacity, 1+int64(len(change.Event.Message)/weighty))
}

func (i *Inbox) wake() {
	select {
	case i.signal <- struct{}{}:
	default:
	}
}

// Signal wakes whoever takes when there is something and no more is at hand, and when the inbox is full. It may wake without
// need.
func (i *Inbox) Signal() <-chan struct{} { return i.signal }

// Full says whether waiting brings nothing more into the next batch: there is hardly room left, or a listing ends, which
// ends a batch.
func (i *Inbox) Full() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fullLocked()
}

// fullLocked leaves a little room, so that the streams go on while a batch is being taken.
func (i *Inbox) fullLocked() bool { return i.ends || i.weight > i.capacity-i.capacity/8 }

// Take appends what there is to batch, up to the end of a listing, which ends a batch.
func (i *Inbox) Take(batch []watch.Change) []watch.Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken, weight := 0, int64(0)
	for ended := false; taken < len(i.changes) && !ended; taken++ {
		weight += i.weightOf(&i.changes[taken])
		ended = i.changes[taken].Kind == watch.ListEnded
	}
	batch = append(batch, i.changes[:taken]...)
	left := copy(i.changes, i.changes[taken:])
	clear(i.changes[left:])
	i.changes = i.changes[:left]
	i.weight -= weight
	i.ends = false
	for n := range i.changes {
		i.ends = i.ends || i.changes[n].Kind == watch.ListEnded
	}
	i.room.Release(weight)
	if left > 0 {
		i.wake()
	}
	return batch
}

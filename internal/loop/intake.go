// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
)

// readTogether is the time that the loop waits after it was woken. Changes that the streams have
// read together arrive one after the other, and should be one batch.
const readTogether = 2 * time.Millisecond

// intake takes batches from the queue.
type intake struct {
	queue  *queue.Queue
	health *health.Health
	// batch is the one that was taken last. Its memory is used again.
	batch batch
}

// take waits for a change and gathers more. It returns a batch without changes when something else
// is due. The batch is the last one if stop has ended. It is valid until take is called again.
func (i *intake) take(stop context.Context, next time.Time) *batch {
	i.release()
	waiting := time.Now()
	due := time.NewTimer(time.Until(next))
	defer due.Stop()

	b := &i.batch
	select {
	case <-i.queue.Signal():
		i.gather(stop)
	case <-due.C:
	case <-stop.Done():
	}
	b.last = stop.Err() != nil
	if b.changes = i.queue.Take(b.changes); len(b.changes) > 0 {
		i.noteGathering(waiting)
	}
	if b.last {
		i.takeRest()
	}
	return b
}

// noteGathering measures for how long the loop waited for more changes although it had some. Before
// it waited, the changes waited for the last batch.
func (i *intake) noteGathering(waiting time.Time) {
	if first := i.batch.changes[0].SeenAt; first.After(waiting) {
		waiting = first
	}
	i.health.Waited(health.Gathering, time.Since(waiting))
}

// release forgets the last batch, which is dealt with.
func (i *intake) release() {
	changes := i.batch.changes
	i.health.DealtWith(changes)
	clear(changes)
	i.batch = batch{changes: changes[:0]}
}

// gather waits for what was read together, until the batch is worth taking or stop ends.
func (i *intake) gather(stop context.Context) {
	due := time.NewTimer(readTogether)
	defer due.Stop()
	for !i.queue.Ready() {
		select {
		case <-i.queue.Signal():
		case <-due.C:
			return
		case <-stop.Done():
			return
		}
	}
}

// takeRest takes what the streams had put into the queue when they were stopped.
func (i *intake) takeRest() {
	b := &i.batch
	for taken := -1; taken != len(b.changes); {
		taken = len(b.changes)
		b.changes = i.queue.Take(b.changes)
	}
}

// discard drops the rest of the queue at the end of the session.
func (i *intake) discard() {
	i.takeRest()
	i.release()
}

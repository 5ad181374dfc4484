// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
)

// intake takes batches from the queue.
type intake struct {
	queue  *queue.Queue
	health *health.Health
	// batch is the one that was taken last. Its memory is used again.
	batch batch
}

// take waits for a batch. It returns one without changes when something else is due. The batch is the last one if stop has ended. It is valid until take is called again.
func (i *intake) take(stop context.Context, next time.Time) *batch {
	i.release()
	waiting := time.Now()
	due := time.NewTimer(time.Until(next))
	defer due.Stop()

	b := &i.batch
	select {
	case <-i.queue.Signal():
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

// noteGathering measures for how long the queue gathered changes while the loop waited. Before, the
// changes waited for the last batch.
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

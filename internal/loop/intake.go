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

// take waits for a batch. It returns one without changes when something else is due. The batch is the
// last one if stop has ended. It is valid until take is called again.
func (i *intake) take(stop context.Context, next time.Time) *batch {
	i.release()
	waiting := time.Now()
	b := &i.batch
	select {
	case <-i.queue.Signal():
	case <-time.After(time.Until(next)):
	case <-stop.Done():
	}
	b.last = stop.Err() != nil
	if b.changes = i.queue.Take(b.changes); len(b.changes) > 0 {
		// Before the loop waited, the changes waited for the last batch.
		i.health.Waited(health.WaitCauseGathering, min(time.Since(waiting), time.Since(b.changes[0].SeenAt)))
	}
	if b.last {
		i.takeRest()
	}
	return b
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

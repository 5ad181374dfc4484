// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
)

// storagePart is the part of the receiver that the component's status names if storage does not
// work.
const storagePart = "storage"

const (
	// retryStorage is how long to wait before a write is retried that storage did not acknowledge.
	retryStorage = time.Second
	// removeAfter is how long delivered requests stay in the outbox if no batch replaces them.
	removeAfter = 100 * time.Millisecond
	// saveAfter is how long changes without a record wait for a batch that has one.
	saveAfter = time.Second
	// unsavedChanges is how many changes without a record are saved without waiting for one.
	unsavedChanges = 1000
)

// checkpoints saves a batch before it is delivered, together with its records. After a crash, the
// next session delivers these records as they are, and continues after the batch.
type checkpoints struct {
	memory     *memory.Memory
	leadership *election.Leadership
	health     *health.Health

	store *checkpoint.Store
	last  time.Time // when the last checkpoint was saved
	// outbox has the requests in the outbox; nil: there are none, or they are those that were loaded.
	outbox []*request
	// deliveredAt is when the requests in the outbox were delivered; zero: there are none.
	deliveredAt time.Time
	// changed is when the first change was made that is not saved; zero: there is none.
	changed time.Time
	// retryAt is the earliest time at which an unacknowledged write is tried again.
	retryAt time.Time
}

func (c *checkpoints) close() { c.store.Close() }

// save counts the batch and saves it, with the objects of its chains. While the storage does not
// work, the batch is delivered all the same: a crash then repeats it.
func (c *checkpoints) save(b *batch) {
	c.memory.Count(b.observations, time.Now())
	c.memory.Use(b.observations)
	advance(c.memory, b)
	c.note()
	if c.trySettle() && (len(b.requests) > 0 || c.memory.Unsaved() >= unsavedChanges || c.isDue()) {
		c.write(b.term.Stop, b.term.Drain, b.requests)
	}
}

// conclude leaves in the outbox what was not delivered.
func (c *checkpoints) conclude(b *batch) {
	if b.isDelivered() {
		c.outbox = nil
		return
	}
	// The term has ended; what remains of it may still be written.
	c.await(b.term.Drain)
	c.write(b.term.Drain, b.term.Drain, b.undelivered)
}

// await waits for the acknowledgement of the last write.
func (c *checkpoints) await(drain context.Context) {
	if c.trySettle() || !c.leadership.CertainlyLeads() {
		return
	}
	if err := c.store.Settle(drain); err != nil {
		c.failed(err)
		return
	}
	c.acknowledged()
}

// note notes that there is something to save.
func (c *checkpoints) note() {
	if c.changed.IsZero() && c.memory.Unsaved() > 0 {
		c.changed = time.Now()
		c.health.Unsaved(c.last)
	}
}

// due implements persistence.
func (c *checkpoints) due() time.Time {
	switch {
	case c.store.Attempt() != nil:
		return time.Time{}
	case !c.store.IsSettled():
		return c.retryAt
	case !c.deliveredAt.IsZero():
		return c.deliveredAt.Add(removeAfter)
	case !c.changed.IsZero():
		return c.changed.Add(saveAfter)
	}
	return time.Time{}
}

func (c *checkpoints) isDue() bool {
	due := c.due()
	return !due.IsZero() && !time.Now().Before(due)
}

func (c *checkpoints) acknowledgement() <-chan struct{} { return c.store.Attempt() }

// finish removes from the outbox what was delivered.
func (c *checkpoints) finish(drain context.Context) {
	c.await(drain)
	c.note()
	if c.store.IsSettled() && !c.due().IsZero() {
		c.write(drain, drain, nil)
	}
}

// trySettle polls an unacknowledged write, and repeats it after a pause. It reports whether no
// write is unacknowledged.
func (c *checkpoints) trySettle() bool {
	if c.store.IsSettled() {
		return true
	}
	if c.store.Attempt() == nil {
		if time.Now().Before(c.retryAt) {
			return false
		}
		if !c.leadership.CertainlyLeads() {
			c.retryAt = time.Now().Add(retryStorage)
			return false
		}
	}
	underWay := c.store.Attempt() != nil
	err := c.store.Poll()
	if err == nil {
		c.acknowledged()
		return true
	}
	if underWay && c.store.Attempt() == nil {
		c.failed(err)
	}
	return false
}

// saveMeanwhile repeats a write that is not acknowledged, and writes which series the metric has
// begun: the loop does not take another batch before this one is delivered.
func (c *checkpoints) saveMeanwhile(stop context.Context) {
	if !c.trySettle() || len(c.outbox) == 0 {
		return
	}
	if c.note(); !c.changed.IsZero() {
		c.write(stop, stop, c.outbox)
	}
}

// begin writes that a session begins with the outbox that is delivered next. With an elector, it
// also writes a new head, so that a late write of the last leader changes nothing.
func (c *checkpoints) begin(t election.Term, delivers bool) {
	if !c.leadership.WaitUntilCertain(t.Stop) {
		return
	}
	content := c.memory.Content()
	content.KeepOutbox = true
	c.put(t.Drain, content)
	if delivers {
		c.deliveredAt = time.Now()
	}
}

// write writes what has changed, and the requests that are about to be delivered. It writes nothing
// if the last write is not acknowledged, or if it is not certain before stop ends that this process
// leads.
func (c *checkpoints) write(stop, drain context.Context, outbox []*request) {
	if !c.store.IsSettled() || !c.leadership.WaitUntilCertain(stop) {
		return
	}
	if drain.Err() != nil {
		return // Nobody would wait for the answer.
	}
	c.outbox = outbox
	content := c.memory.Content()
	for _, r := range outbox {
		content.Outbox = append(content.Outbox, r.encoded)
	}
	c.put(drain, content)
}

func (c *checkpoints) put(drain context.Context, content checkpoint.Content) {
	c.changed, c.deliveredAt = time.Time{}, time.Time{}
	if len(content.Outbox) > 0 {
		c.deliveredAt = time.Now() // The caller delivers it now.
	}
	began := time.Now()
	err := c.store.Save(drain, content)
	c.health.Waited(health.Saving, time.Since(began))
	if err != nil {
		c.health.Unsaved(c.last)
		c.failed(err)
		return
	}
	c.acknowledged()
}

// acknowledged notes that the last write has arrived: the metric reports its sums.
func (c *checkpoints) acknowledged() {
	c.memory.Saved()
	c.last = time.Now()
	c.health.Saved()
	if !c.changed.IsZero() {
		c.health.Unsaved(c.last)
	}
	c.health.Recovered(storagePart, "Checkpoints are saved again")
}

func (c *checkpoints) failed(err error) {
	c.retryAt = time.Now().Add(retryStorage)
	c.health.NotSaved()
	c.health.Failed(storagePart, "unavailable",
		"Cannot save checkpoints; retrying, and delivering without saving. A crash repeats what is delivered meanwhile", err)
}

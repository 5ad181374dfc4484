// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// storagePart is the part of the receiver that the component's status names if storage does not
// work.
const storagePart = "storage"

const (
	// retryStorage is how long to wait before a write is retried that storage did not acknowledge.
	retryStorage = time.Second
	// removeAfter is how long delivered requests stay in the outbox if no batch replaces them. While
	// events keep coming, the next batch comes earlier.
	removeAfter = 2 * time.Second
	// saveAfter is how long changes without a record wait for a batch that has one. While the outbox has
	// delivered requests, they wait until it is written without them.
	saveAfter = time.Second
	// unsavedChanges is how many changes without a record are saved without waiting for one.
	unsavedChanges = 1000
	// unsavedBytes is how many bytes of events without a record are saved without waiting for one.
	// Dedup windows hold events with bodies of up to 64 KiB.
	unsavedBytes = 2 << 20
)

// checkpoints saves a batch before it is delivered, together with its records. After a crash, the
// next session delivers these records as they are, and continues after the batch.
type checkpoints struct {
	memory     *memory.Memory
	leadership *leadership.Leadership
	health     *health.Health
	logger     *zap.Logger

	store *checkpoint.Store
	last  time.Time // when the last checkpoint was saved
	// outbox has the requests in the outbox; nil: there are none, or they are those that were loaded.
	outbox []*request
	// deliveredAt is when the requests in the outbox were delivered; zero: there are none.
	deliveredAt time.Time
	// changed is when the first change was made that is not saved; zero: there is none. bytes are
	// those of the events that were accounted for since the last write, as far as they gave no record.
	changed time.Time
	bytes   int
	// retryAt is the earliest time at which an unacknowledged write is tried again.
	retryAt time.Time
	// hasLostKeys is whether it was logged that the storage has lost keys.
	hasLostKeys bool
}

func (c *checkpoints) close() { c.store.Close() }

// beforeDelivery saves the batch. While the storage does not work, the batch is delivered all the same:
// a crash then repeats it.
func (c *checkpoints) beforeDelivery(b *batch) {
	c.note()
	if c.trySettle() && (len(b.requests) > 0 || c.hasMany(b) || c.isDue()) {
		c.write(b.term.Stop, b.term.Drain, b.requests)
	}
}

// hasMany reports whether so much has changed that it is saved without waiting for a record: each
// write is bounded.
func (c *checkpoints) hasMany(b *batch) bool {
	for i := range b.observations {
		c.bytes += b.observations[i].Event.Size()
	}
	return c.memory.Unsaved() >= unsavedChanges || c.bytes >= unsavedBytes
}

// afterDelivery leaves in the outbox what was not delivered.
func (c *checkpoints) afterDelivery(b *batch) {
	if b.isDelivered() {
		c.outbox = nil
		return
	}
	reached.State("the outbox keeps what a term did not deliver")
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

func (c *checkpoints) next() (due time.Time, acknowledged <-chan struct{}) {
	return c.due(), c.store.Attempt()
}

// due returns the time of the next turn that a write needs; zero: none needs one.
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
			reached.State("a write is to be repeated while it is uncertain who leads")
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
		reached.State("a checkpoint is written while the pipeline rejects its batch")
		c.write(stop, stop, c.outbox)
	}
}

// begin writes that a session begins with the outbox that is delivered next. With an elector, it
// also writes a new head, so that a late write of the last leader changes nothing.
func (c *checkpoints) begin(t leadership.Term, delivers bool) {
	if !c.leadership.WaitUntilCertain(t.Stop) {
		reached.State("a term ends before its first write")
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
	c.changed, c.bytes, c.deliveredAt = time.Time{}, 0, time.Time{}
	began := time.Now()
	err := c.store.Save(drain, content)
	if len(content.Outbox) > 0 {
		c.deliveredAt = time.Now() // The caller delivers it now.
	}
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
	if c.store.HasLostKeys() && !c.hasLostKeys {
		c.hasLostKeys = true
		c.logger.Error("The storage has lost a key: keys of this storage must not expire. A restart may start from scratch")
	}
}

func (c *checkpoints) failed(err error) {
	c.retryAt = time.Now().Add(retryStorage)
	c.health.NotSaved()
	if errors.Is(err, checkpoint.ErrTakenOver) {
		reached.State("another process has taken the storage over")
		c.health.Failed(storagePart, "taken over",
			"Another process uses the same storage; delivering without saving. A restart takes the storage over again", err)
		return
	}
	c.health.Failed(storagePart, "unavailable",
		"Cannot save checkpoints; retrying, and delivering without saving. A crash repeats what is delivered meanwhile", err)
}

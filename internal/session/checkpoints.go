// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// storagePart is the part of the receiver that the component's status names if storage does not work.
const storagePart = "storage"

const (
	// retryStorage is how long a storage is left alone that did not acknowledge a checkpoint.
	retryStorage = time.Second
	// removeAfter is how long delivered requests stay in the outbox if no batch replaces them.
	removeAfter = 100 * time.Millisecond
	// saveAfter is how long changes without a record wait for a batch that has one.
	saveAfter = time.Second
)

// checkpoints saves a batch before it is delivered, together with its records. After a crash, the
// next session delivers these records as they are, and continues after the batch.
type checkpoints struct {
	*session

	store *checkpoint.Store
	last  time.Time // when the last checkpoint was saved
	// delivered is when the requests in the outbox were delivered; zero: there are none.
	delivered time.Time
	// changed is when the first change was made that is not saved; zero: there is none.
	changed time.Time
	// retryAt is the earliest time at which an unacknowledged write is tried again.
	retryAt time.Time
}

func (c *checkpoints) saves() bool { return true }

func (c *checkpoints) close() { c.store.Close() }

// prepare counts the batch and saves it. While the storage does not work, the batch is delivered all
// the same: a crash then repeats it.
func (c *checkpoints) prepare(t election.Term, observations []observation.Observation, requests []*request) {
	c.count(observations)
	c.advance()
	c.note()
	if c.settled() && (len(requests) > 0 || c.memory.Unsaved() >= unsavedChanges || c.isDue()) {
		c.save(t.Stop, t.Work, requests)
	}
}

// commit leaves in the outbox what was not delivered.
func (c *checkpoints) commit(t election.Term, _ []observation.Observation, undelivered []*request) {
	if len(undelivered) == 0 {
		return
	}
	// The term has ended; what remains of it may still be written.
	c.await(t.Work)
	c.save(t.Work, t.Work, undelivered)
}

// await waits for the acknowledgement of the last write.
func (c *checkpoints) await(work context.Context) {
	if c.settled() || !c.Leadership.CertainlyLeads() {
		return
	}
	if err := c.store.Settle(work); err != nil {
		c.failed(err)
		return
	}
	c.acknowledged()
}

// note notes that there is something to save.
func (c *checkpoints) note() {
	if c.changed.IsZero() && c.memory.Unsaved() > 0 {
		c.changed = time.Now()
		c.Health.Unsaved(c.last)
	}
}

// due implements persistence.
func (c *checkpoints) due() time.Time {
	switch {
	case c.store.Attempt() != nil:
		return time.Time{}
	case !c.store.IsSettled():
		return c.retryAt
	case !c.delivered.IsZero():
		return c.delivered.Add(removeAfter)
	case !c.changed.IsZero():
		return c.changed.Add(saveAfter)
	}
	return time.Time{}
}

func (c *checkpoints) isDue() bool {
	due := c.due()
	return !due.IsZero() && !time.Now().Before(due)
}

func (c *checkpoints) ready() <-chan struct{} { return c.store.Attempt() }

func (c *checkpoints) idle(work context.Context) {
	if c.settled() && c.isDue() {
		c.save(work, work, nil)
	}
}

func (c *checkpoints) finish(work context.Context) {
	c.await(work)
	if c.store.IsSettled() && !c.due().IsZero() {
		c.save(work, work, nil)
	}
}

// settled reports whether the last write is acknowledged. If it is not, it looks for the answer, and
// writes it again after a while.
func (c *checkpoints) settled() bool {
	if c.store.IsSettled() {
		return true
	}
	if c.store.Attempt() == nil {
		if time.Now().Before(c.retryAt) {
			return false
		}
		if !c.Leadership.CertainlyLeads() {
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

// save writes what has changed, and the requests that are about to be delivered.
func (c *checkpoints) save(stop, work context.Context, requests []*request) {
	if !c.store.IsSettled() || !c.Leadership.WaitUntilCertain(stop) {
		return
	}
	content := c.memory.Content()
	for _, r := range requests {
		content.Outbox = append(content.Outbox, r.encoded)
	}
	c.write(work, content)
}

func (c *checkpoints) write(work context.Context, content checkpoint.Content) {
	c.changed, c.delivered = time.Time{}, time.Time{}
	if len(content.Outbox) > 0 {
		c.delivered = time.Now() // The caller delivers it now.
	}
	if err := c.store.Save(work, content); err != nil {
		c.Health.Unsaved(c.last)
		c.failed(err)
		return
	}
	c.acknowledged()
}

// acknowledged notes that the last write has arrived: the metric reports its sums.
func (c *checkpoints) acknowledged() {
	c.memory.Saved()
	c.last = time.Now()
	c.Health.Saved()
	if !c.changed.IsZero() {
		c.Health.Unsaved(c.last)
	}
	c.Health.Recovered(storagePart, "Checkpoints are saved again")
}

func (c *checkpoints) failed(err error) {
	c.retryAt = time.Now().Add(retryStorage)
	c.Health.NotSaved()
	c.Health.Failed(storagePart, "unavailable",
		"Cannot save checkpoints; retrying, and delivering without saving. A crash repeats what is delivered meanwhile", err)
}

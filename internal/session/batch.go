// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// batchChanges bounds a batch. At most one batch is undelivered at a time.
const batchChanges = 1000

// batch is one turn of the loop. Each step reads what the steps before have set, and sets its own
// fields. Only accounting shortens the changes.
type batch struct {
	// changes were taken from the queue. There are none if only time has passed.
	changes []watch.Change
	// last reports whether nothing follows: the session is to end, and the queue is empty.
	last bool
	// observations are what is new in the changes and passes the filters. The gate leaves out what
	// the leader has delivered, and adds what waited for the term.
	observations []observation.Observation
	// passed reports whether the gate let the batch through, and term is the term to deliver it in.
	passed bool
	term   election.Term
	// endsWindows reports whether dedup windows end before their time.
	endsWindows bool
	// records are the observations that dedup_interval lets through, of this batch and of earlier
	// ones.
	records []observation.Observation
	// requests are the records as OTLP. There are none without a logs pipeline.
	requests []*request
	// undelivered are the requests that could not be delivered before the term ended.
	undelivered []*request
}

// isDelivered reports whether all of the batch was delivered, or there was nothing to deliver.
func (b *batch) isDelivered() bool { return len(b.undelivered) == 0 }

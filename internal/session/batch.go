// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

const (
	// batchChanges bounds a batch.
	batchChanges = 500
	// batchBytes bounds the records of a batch, in bytes of OTLP.
	batchBytes = 4 << 20
)

// batch is one turn of the loop. Each step reads what the steps before have set, and sets its own
// fields. One batch is undelivered at a time. This is what relies on it:
//
//   - intake has one batch, whose memory it uses again;
//   - the queue measures how long the batch that was taken waits;
//   - each write replaces the outbox;
//   - the position is that of the last batch, and so is where the streams resume;
//   - what is taken back comes before what waits at the gate.
type batch struct {
	// changes were taken from the queue. There are none if only time has passed. If another cluster
	// answers, those of the other cluster are left out.
	changes []watch.Change
	// last reports whether nothing follows: the history has ended, and the queue is empty.
	last bool
	// observations are what is new in the changes and passes the filters. The gate leaves out what
	// the leader has delivered, and adds what waited for the term.
	observations []observation.Observation
	// forgetsMore reports whether the memory may have more to forget, without more changes.
	forgetsMore bool
	// passed reports whether the gate let the batch through, and term is the term to deliver it in.
	passed bool
	term   leadership.Term
	// endsWindows reports whether dedup windows end before their time.
	endsWindows bool
	// records are the observations to deliver: those that dedup_interval lets through, of this
	// batch and of earlier ones. Without dedup_interval, they are the observations of this batch.
	// Those beyond batchBytes wait for a batch of their own.
	records []observation.Observation
	// requests are the records as OTLP. There are none without a logs pipeline.
	requests []*request
	// undelivered are the requests that could not be delivered before the term ended.
	undelivered []*request
}

// isDelivered reports whether nothing of the batch is left undelivered. It is meaningful after the
// step that delivers.
func (b *batch) isDelivered() bool { return len(b.undelivered) == 0 }

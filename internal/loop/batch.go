// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// batchChanges bounds a batch.
const batchChanges = 500

// batch is one turn of the loop. Each step reads what the steps before have set. One batch is
// undelivered at a time. This is what relies on it:
//
//   - intake has one batch, whose memory it uses again;
//   - what the ledger has between two batches is delivered, so it can be noted.
type batch struct {
	// changes were taken from the queue. There are none if only time has passed.
	changes []watch.Change
	// last reports whether nothing follows: stop has ended, and the queue is empty.
	last bool
	// forgetsMore reports whether the ledger may have more to forget, without more changes.
	forgetsMore bool
	// records are the observations to deliver.
	records []observation.Observation
	// listed are the indexes of the records of the list that has not ended.
	listed []int
}

// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// add adds a record to the batch.
func (b *batch) add(record observation.Observation, isListed bool) {
	if isListed {
		b.listed = append(b.listed, len(b.records))
	}
	b.records = append(b.records, record)
}

// sortListed puts the records of a list in the order of time, and ends the list. A list has the order of
// names, and Loki refuses what is more than an hour older than the newest entry of its stream. What a
// watch delivered stays where it is.
func (b *batch) sortListed() {
	listed := make([]observation.Observation, len(b.listed))
	for i, index := range b.listed {
		listed[i] = b.records[index]
	}
	slices.SortStableFunc(listed, func(a, b observation.Observation) int {
		return event.NewestOccurrence(a.Event).Compare(event.NewestOccurrence(b.Event))
	})
	for i, index := range b.listed {
		b.records[index] = listed[i]
	}
	b.listed = b.listed[:0]
}

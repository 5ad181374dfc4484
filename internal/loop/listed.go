// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// sortListed puts the observations of a list, which are at these indexes, in the order of time. A
// list has the order of names, and Loki refuses what is more than an hour older than the newest entry
// of its stream. What a watch delivered stays where it is.
func sortListed(observations []observation.Observation, indexes []int) {
	listed := make([]observation.Observation, len(indexes))
	for i, index := range indexes {
		listed[i] = observations[index]
	}
	slices.SortStableFunc(listed, func(a, b observation.Observation) int {
		return event.NewestOccurrence(a.Event).Compare(event.NewestOccurrence(b.Event))
	})
	for i, index := range indexes {
		observations[index] = listed[i]
	}
}

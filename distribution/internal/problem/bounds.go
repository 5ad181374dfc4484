// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/evict"
)

// KeptFor is the time for which problems that are over, and changes, are kept.
const KeptFor = 30 * 24 * time.Hour

// How many bytes are kept of both, 64 MiB in all.
const (
	maxProblemsBytes = 48 << 20
	maxChangesBytes  = 16 << 20
)

// kept is the size of something that is kept.
type kept struct {
	id    string
	in    Space
	bytes int
}

// beyond returns the ids that must go, so that a twentieth of a number of bytes is free: always the first one of the
// namespace that takes most.
func beyond(all []kept, most int) map[string]bool {
	entries, total := make([]evict.Entry[kept], 0, len(all)), 0
	for _, one := range all {
		entries = append(entries, evict.Entry[kept]{Namespace: one.in.cluster + "/" + one.in.namespace, Bytes: one.bytes, Value: one})
		total += one.bytes
	}
	gone := map[string]bool{}
	evict.Largest(entries, total-most+most/20, func(one kept) int {
		gone[one.id] = true
		return one.bytes
	})
	return gone
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
)

// unsaved is the persistence without storage. A batch counts once it is delivered.
type unsaved struct {
	memory *memory.Memory
	// dedup reports whether windows may hold observations back.
	dedup bool
}

func (*unsaved) save(*batch)                      {}
func (*unsaved) finish(context.Context)           {}
func (*unsaved) due() (never time.Time)           { return never }
func (*unsaved) acknowledgement() <-chan struct{} { return nil }
func (*unsaved) trySettle() bool                  { return true }
func (*unsaved) saveMeanwhile(context.Context)    {}
func (*unsaved) close()                           {}

// conclude counts what was delivered. The leader that delivers the rest counts it.
func (u *unsaved) conclude(b *batch) {
	counted := b.observations
	if rest := len(recordsIn(b.undelivered)); rest > 0 {
		counted = b.records[:len(b.records)-rest]
		if u.dedup {
			counted = nil // It is not known which observations are in the delivered records.
		}
	}
	u.memory.Count(counted, time.Now())
	advance(u.memory, b)
}

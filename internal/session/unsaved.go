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

func (*unsaved) save(*batch)            {}
func (*unsaved) finish(context.Context) {}
func (*unsaved) due() (never time.Time) { return never }
func (*unsaved) ready() <-chan struct{} { return nil }
func (*unsaved) isSettled() bool        { return true }
func (*unsaved) close()                 {}

// conclude counts what was delivered. The leader that delivers the rest counts it.
func (u *unsaved) conclude(b *batch) {
	rest := len(recordsIn(b.undelivered))
	if rest > 0 && u.dedup {
		rest = len(b.observations) // It is not known which of them are in the records.
	}
	u.memory.Count(b.observations[:len(b.observations)-rest], time.Now())
	advance(u.memory, b)
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// unsaved is the persistence without storage. A batch counts once it is delivered.
type unsaved struct {
	memory *memory.Memory
	// dedup reports whether windows may hold observations back.
	dedup bool
}

func (*unsaved) beforeDelivery(*batch)                                 {}
func (*unsaved) finish(context.Context)                                {}
func (*unsaved) next() (never time.Time, acknowledged <-chan struct{}) { return never, nil }
func (*unsaved) saveMeanwhile(context.Context)                         {}
func (*unsaved) close()                                                {}

// afterDelivery counts what was delivered. The leader that delivers the rest counts it.
func (u *unsaved) afterDelivery(b *batch) {
	rest := len(recordsIn(b.undelivered))
	counted := b.records[:len(b.records)-rest]
	if u.dedup {
		// It is not known which observations are in the delivered records.
		if counted = b.observations; rest > 0 {
			reached.State("a term ends before it has delivered a batch with windows")
			counted = nil
		}
	}
	u.memory.Count(counted, time.Now())
	advance(u.memory, b)
}

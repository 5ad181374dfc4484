// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

// beforeEnd is how long before a process's end the API server may write what it does not see.
const beforeEnd = 3 * time.Second

// covers reports whether a write counts although the filters change from process to process. The
// contract: "If a filter is widened later, the receiver treats the events that only the wider
// filter matches as existing events: start_at decides, and it does not count what happened while
// the filter was narrow." What happens between two processes counts at least if both let it
// through, and at most if one of them does.
func (e *environment) covers(w apiserver.Write, least bool) bool {
	if e.scenario.Covers == nil {
		return true
	}
	all := e.allProcesses() // of one replica
	for i, p := range all {
		p.mu.Lock()
		died := p.died
		p.mu.Unlock()
		switch covered := e.scenario.Covers(p.number, w.Event); {
		case !died.IsZero() && w.At.After(died):
			continue
		case i > 0 && w.At.Before(p.started.Add(promptly)):
			before := e.scenario.Covers(p.number-1, w.Event)
			return before && covered || !least && (before || covered)
		case i+1 < len(all) && w.At.After(died.Add(-beforeEnd)):
			after := e.scenario.Covers(p.number+1, w.Event)
			return covered && after || !least && (covered || after)
		default:
			return covered
		}
	}
	return true
}

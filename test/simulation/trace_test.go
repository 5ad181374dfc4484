// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/test/simulation/protocol"
)

// TestATraceWithOneChangedStepIsRefused changes one step after the other of a run in which leaders
// are killed and restarted. It leaves alone what a process may do or not, such as a read of a
// standby, and a delivery that the next leader repeats.
func TestATraceWithOneChangedStepIsRefused(t *testing.T) {
	trace := traceOfFailovers(t)
	require.NoError(t, protocol.Follow(2, trace))
	var writes []int            // where they are in the trace
	deliveries := map[int]int{} // of an event
	for at, step := range trace {
		switch step.Kind {
		case protocol.Write:
			writes = append(writes, at)
		case protocol.Deliver:
			deliveries[step.Events[0]]++
		}
	}
	refused := map[protocol.Kind]int{}
	for at, step := range trace {
		try := func(change string, changed protocol.Trace) {
			refused[step.Kind]++
			assert.Error(t, protocol.Follow(2, changed), "step %d, %q, %s", at, step, change)
		}
		switch step.Kind {
		case protocol.Start, protocol.Read, protocol.Publish:
			try("has a lower position", with(trace, at, func(s *protocol.Step) { s.Position-- }))
			try("has a higher position", with(trace, at, func(s *protocol.Step) { s.Position++ }))
		}
		switch step.Kind {
		case protocol.Elect, protocol.Deliver, protocol.Publish:
			try("is of the other replica", with(trace, at, func(s *protocol.Step) { s.Replica = 1 - s.Replica }))
			if step.Kind != protocol.Deliver || deliveries[step.Events[0]] == 1 {
				try("is missing", slices.Delete(slices.Clone(trace), at, at+1))
			}
		}
		switch step.Kind {
		case protocol.Deliver:
			try("comes before its event", moved(trace, at, writes[step.Events[0]]))
		case protocol.Publish:
			try("comes before the delivery", moved(trace, at, lastBefore(trace, at, protocol.Deliver)))
		case protocol.Read:
			try("comes before what it reads", moved(trace, at, lastBefore(trace, at, protocol.Publish)))
		}
	}
	t.Log("changes that the model refused:", refused)
}

// traceOfFailovers returns the trace of a run.
func traceOfFailovers(t *testing.T) (trace protocol.Trace) {
	plan := plain(electorAlone, killLeader(60, 80), restart(120, 121), restart(123, 124).of(1))
	plan.Producers[0].Style = HandMade // Each event occurs once.
	Run(t, plan, Scenario{Check: func(e *environment) { trace = e.traceOf("") }})
	return trace
}

// with returns the trace with a changed step.
func with(trace protocol.Trace, at int, change func(*protocol.Step)) protocol.Trace {
	changed := slices.Clone(trace)
	change(&changed[at])
	return changed
}

// moved returns the trace with a step in an earlier place.
func moved(trace protocol.Trace, from, to int) protocol.Trace {
	return slices.Insert(slices.Delete(slices.Clone(trace), from, from+1), max(to, 0), trace[from])
}

// lastBefore returns where the last step of the kind is before another; -1: nowhere.
func lastBefore(trace protocol.Trace, at int, kind protocol.Kind) int {
	for at--; at >= 0 && trace[at].Kind != kind; at-- {
	}
	return at
}

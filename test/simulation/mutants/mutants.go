// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// changes are mistakes that a developer could make, by the part of the receiver that they are in.
func changes() []change {
	return slices.Concat(inWatch, inQueue, inLedger, inDedup, inTally, inOutbox, inCheckpoint,
		inDelivery, inGate, inPosition, inRestore, inResolver, inConversion, inFilters, inLifecycle)
}

func mutants() (all []mutant) {
	for _, c := range changes() {
		all = append(all, mutant{change: c})
	}
	return all
}

var inWatch = []change{
	{
		"does not list again after 410 Gone", "internal/watch/stream.go",
		`		s.resourceVersion = ""
		return Expired`,
		`		return Expired`,
	},
	{
		"resumes in the middle of a list that broke off", "internal/watch/connection.go",
		`	if !s.listing {
		change.ResourceVersion = resumeAfter(message.Type, ev.ResourceVersion)
	}`,
		"\tchange.ResourceVersion = resumeAfter(message.Type, ev.ResourceVersion)",
	},
	{
		"restarts a watch without a pause", "internal/watch/stream.go",
		`		pause(ctx, max(delays.Step(), retryAfter(err)))
`,
		`		_ = delays
`,
	},
	{
		"takes the first page of a list for the whole", "internal/watch/connection.go",
		`		next := page.Continue
		if next == "" {`,
		`		next := page.Continue
		if next == "" || next != "" {`,
	},
}

var inQueue = []change{
	{
		"drops what is queued behind the end of a list", "internal/queue/queue.go",
		"q.changes = q.changes[:left]",
		"q.changes = q.changes[:0]",
	},
	{
		"never ends a stall", "internal/queue/stall.go",
		`	close(q.resumed)
`,
		"",
	},
}

var inLedger = []change{
	{
		"forgets a deleted event at once", "internal/memory/ledger/ledger.go",
		`	l.bury(k, known, last, now)
`,
		`	_ = now
	l.drop(k)
`,
	},
	{
		"counts an event wholly that was created again after a day", "internal/memory/ledger/ledger.go",
		"created.Sub(first) > outlived",
		"created.Sub(first) > 24*outlived",
	},
	{
		"counts once an event of which it knows nothing", "internal/memory/ledger/ledger.go",
		"return firstSight(ev, int64(seen.count))",
		"return 1",
	},
	{
		"counts what happened while a namespace was not watched", "internal/memory/streams.go",
		"			of.Covers, of.ResourceVersion = false, \"\"\n",
		"			of.ResourceVersion = \"\"\n",
	},
	{
		"does not remember what a filter leaves out", "internal/session/account.go",
		"		occurrences := s.occurrences(c)\n",
		`		if c.Event != nil && !s.process.Filter.Wants(c.Event) {
			continue
		}
		occurrences := s.occurrences(c)
`,
	},
	{
		"takes each list for the first", "internal/memory/memory.go",
		"if m.streams.covers(ev) || m.isNew(ev) {",
		"if m.isNew(ev) {",
	},
}

var inDedup = []change{
	{
		"delivers the oldest state that a dedup window holds", "internal/memory/dedup/dedup.go",
		`		merged.SeenAt = open.held.SeenAt
`,
		`		merged.SeenAt = open.held.SeenAt
		merged.Event = open.held.Event
`,
	},
	{
		"does not save that a dedup window is empty", "internal/memory/dedup/snapshot.go",
		`	w.bytes -= weightOf(ended.held)
	w.NoteGone(ended.key())
`,
		`	w.bytes -= weightOf(ended.held)
`,
	},
	{
		"wakes at the end of no dedup window", "internal/session/session.go",
		`	if end, open := s.memory.Windows.NextEnd(); open && end.Before(w.at) {
		w.at = end
	}
`,
		"",
	},
}

var inTally = []change{
	{
		"continues sums whose series have other attributes now", "internal/memory/memory.go",
		`	if s.Identity != "" && s.Identity != m.config.Identity {`,
		`	if s.Identity != s.Identity && s.Identity != m.config.Identity {`,
	},
	{
		"lets a series start when it is counted", "internal/memory/tally/tally.go",
		"start := later(seen.Round(0), t.begin)",
		"start := later(time.Now().Round(0), later(seen, t.begin))",
	},
	{
		"lets a series that expired begin again before its last point", "internal/memory/tally/tally.go",
		"		start = later(start, last.Add(time.Millisecond))\n",
		"		_ = last\n",
	},
	{
		"emits a value before it is saved that the 0 was emitted", "internal/memory/tally/metrics.go",
		"case t.changed.Tracked() && !s.zero.saved:",
		"case false:",
	},
	{
		"does not count what goes beyond max_series", "internal/memory/tally/tally.go",
		"		id, key, w = identity{}, overflow, workload{}\n",
		"		return &series{}\n",
	},
	{
		"reports sums that are not saved", "internal/memory/tally/metrics.go",
		"return s.durable",
		"return s.occurrences",
	},
	{
		"lets the sums of a term go on with those of the last one", "internal/session/sums.go",
		`	m.tally.Reset(now)
`,
		"",
	},
}

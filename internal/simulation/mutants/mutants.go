// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// mutants are mistakes that a developer could make, by the part of the receiver that they are in.
func mutants() []mutant {
	return slices.Concat(inWatch, inQueue, inLedger, inDedup, inTally, inCheckpoint, inDelivery,
		inElection, inResolver, inConversion, inFilters, inLifecycle)
}

var inWatch = []mutant{
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
		`		pause(ctx, backoff.Step())
`,
		`		_ = backoff
`,
	},
	{
		"never reports that it watches again", "internal/watch/connection.go",
		`	if !s.listing {
		s.config.Observer.Healthy(s.config.Namespace)
	}
`,
		"",
	},
	{
		"takes the first page of a list for the whole", "internal/watch/connection.go",
		`if next = page.Continue; next == "" {`,
		`if next = page.Continue; next == "" || next != "" {`,
	},
}

var inQueue = []mutant{
	{
		"drops what is queued behind the end of a list", "internal/inbox/inbox.go",
		"i.changes = i.changes[:left]",
		"i.changes = i.changes[:0]",
	},
}

var inLedger = []mutant{
	{
		"forgets a deleted event at once", "internal/ledger/ledger.go",
		`	l.bury(k, last, now)
`,
		`	_ = now
	l.drop(k)
`,
	},
	{
		"remembers a deleted event for a minute", "internal/ledger/ledger.go",
		"RememberDeleted = 24 * time.Hour",
		"RememberDeleted = time.Minute",
	},
	{
		"counts an event wholly that was created again after a day", "internal/ledger/ledger.go",
		"created.Sub(first) > outlived",
		"created.Sub(first) > 24*outlived",
	},
	{
		"counts only the occurrences above what a deleted event had", "internal/ledger/ledger.go",
		"return firstSight(ev, int64(seen.count))",
		"return 1",
	},
	{
		"takes each list for the first", "receiver.go",
		`		s.Listed = true
`,
		"",
	},
}

var inDedup = []mutant{
	{
		"delivers the oldest state that a dedup window holds", "internal/repeat/repeat.go",
		`		merged.SeenAt = w.held.SeenAt
`,
		`		merged.SeenAt = w.held.SeenAt
		merged.Event = w.held.Event
`,
	},
	{
		"does not save that a dedup window is empty", "internal/repeat/snapshot.go",
		`	delete(w.held, k)
	w.changed.Note(k)
`,
		`	delete(w.held, k)
`,
	},
	{
		"wakes at the end of no dedup window", "receiver.go",
		`	if end, open := r.windows.NextEnd(); open {
		due = end
	}
`,
		"",
	},
}

var inTally = []mutant{
	{
		"lets a series that expired go on with its old start", "internal/tally/tally.go",
		`				t.epoch = now
`,
		"",
	},
	{
		"does not note that a series has moved", "internal/tally/tally.go",
		`		p.moved = now
`,
		"",
	},
	{
		"does not count what goes beyond max_series", "internal/tally/tally.go",
		`	if t.series >= t.config.MaxSeries {
		return t.overflowLocked()`,
		`	if t.series >= t.config.MaxSeries {
		return &point{}`,
	},
}

var inCheckpoint = []mutant{
	{
		"saves the position before delivery", "receiver.go",
		`		r.announce(r.duty.stop, r.duty.work, records)
`,
		`		r.announce(r.duty.stop, r.duty.work, records)
		r.moveTo(r.batch)
		r.saveIfDue(r.duty.work, time.Now())
`,
	},
	{
		"restores older values over newer ones", "internal/checkpoint/run.go",
		"h.runs = append(h.runs, r)",
		"h.runs = append([]run{r}, h.runs...)",
	},
	{
		"saves once a minute", "saving.go",
		"if !now.Before(r.saving.again) && r.mayEmit() {",
		"if !now.Before(r.saving.again) && r.mayEmit() && now.Sub(r.saving.last) > time.Minute {",
	},
	{
		"does not save when only the position has moved", "saving.go",
		"return r.saving != nil && (r.saving.moved || r.ledger",
		"return r.saving != nil && (r.ledger",
	},
}

var inDelivery = []mutant{
	{
		"drops a batch when a retryable error comes", "delivery.go",
		"return isPermanent(err) || !retry.Enabled",
		"return err != nil || !retry.Enabled",
	},
	{
		"delivers the newest records first", "delivery.go",
		`	logs := whole()
	pause`,
		`	slices.Reverse(records)
	logs := whole()
	pause`,
	},
	{
		"retries without a pause", "delivery.go",
		"if !sleep(stop, pause.NextBackOff()) {",
		"if !sleep(stop, time.Duration(0*pause.NextBackOff())) {",
	},
}

var inElection = []mutant{
	{
		"holds too little as a standby", "lifecycle.go",
		"leadership.lease + electionDelay + r.config.DedupInterval",
		"leadership.lease",
	},
	{
		"holds nothing as a standby", "standby.go",
		`	s.held = append(s.held, records...)
`,
		`	s.held = records
`,
	},
	{
		"does not wake when it is elected", "leadership.go",
		`	l.doubtful = time.Time{}
	l.announceLocked()
`,
		`	l.doubtful = time.Time{}
`,
	},
	{
		"lists only when it is elected", "duty.go",
		"return r.leadership != nil && r.saving == nil }",
		"return false }",
	},
}

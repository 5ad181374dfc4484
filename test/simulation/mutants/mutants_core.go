// SPDX-License-Identifier: Apache-2.0

package main

var inOutbox = []change{
	{
		"does not deliver the outbox at the start", "internal/session/open_checkpoints.go",
		"if !s.pipeline.deliverOutbox(t, loaded) {",
		"if stop.Err() != nil {",
	},
	{
		"removes the outbox before the delivery", "internal/session/checkpoints.go",
		`		c.write(b.term.Stop, b.term.Drain, b.requests)
`,
		`		c.write(b.term.Stop, b.term.Drain, b.requests)
		c.write(b.term.Stop, b.term.Drain, nil)
`,
	},
	{
		"saves what a batch changed before its records", "internal/session/checkpoints.go",
		`	c.note()
	if c.trySettle() && (`,
		`	c.note()
	c.write(b.term.Stop, b.term.Drain, nil)
	if c.trySettle() && (`,
	},
}

var inCheckpoint = []change{
	{
		"does not report that another process has taken the storage over", "internal/session/checkpoints.go",
		"	if errors.Is(err, checkpoint.ErrTakenOver) {\n",
		"	if errors.Is(err, checkpoint.ErrTakenOver) {\n\t\treturn\n\t}\n\tif errors.Is(err, checkpoint.ErrTakenOver) {\n",
	},
	{
		"does not repeat a write that failed", "internal/memory/checkpoint/store.go",
		`	if a.err != nil {
		return a.err`,
		`	if a.err != nil {
		s.pending, s.tries = nil, 0
		return a.err`,
	},
	{
		"begins another write before one is acknowledged", "internal/memory/checkpoint/store.go",
		"IsSettled() bool { return s.pending == nil }",
		"IsSettled() bool { return s.attempt == nil }",
	},
	{
		"deletes what the last head names before it writes the next",
		"internal/memory/checkpoint/journal.go",
		`	j.writeHead(w)
	left := w.delete(garbage, deletesPerWrite+len(w.operations))
`,
		`	left := w.delete(w.next.Garbage, deletesPerWrite+len(w.operations))
	j.writeHead(w)
	fresh = nil
`,
	},
	{
		"restores older values over newer ones", "internal/memory/checkpoint/head.go",
		"return append(spans, span{kind, session, number, number + 1})",
		"return append([]span{{kind, session, number, number + 1}}, spans...)",
	},
	{
		"sets a checkpoint aside that it cannot read for a moment", "internal/session/open_checkpoints.go",
		"case errors.Is(err, checkpoint.ErrCorrupt):",
		"case !errors.Is(err, context.Canceled):",
	},
	{
		"continues from the checkpoint of another cluster", "internal/session/open_checkpoints.go",
		`known != "" && uid != "" && known != uid {`,
		`known != "" && uid == "" && known != uid {`,
	},
}

var inDelivery = []change{
	{
		"drops a batch when a retryable error comes", "internal/delivery/delivery.go",
		"	if r.permanent {",
		"	if err != nil {",
	},
	{
		"delivers the newest records first", "internal/session/pipeline.go",
		`	for records := b.records; len(records) > 0; {
`,
		`	slices.Reverse(b.records)
	for records := b.records; len(records) > 0; {
`,
	},
	{
		"retries without a pause", "internal/delivery/delivery.go",
		"InitialInterval:     d.settings.Retry.InitialInterval,",
		"InitialInterval:     0,",
	},
}

var inGate = []change{
	{
		"drops what the position has not reached", "internal/position/gate.go",
		"return p.Reached(o.Event.Namespace, event.ResourceVersion(o.Event))",
		"return event.ResourceVersion(o.Event) > 0 && len(p.Streams) > 0",
	},
	{
		"drops nothing that the position has reached", "internal/position/gate.go",
		"		g.waiting = withoutReached(g.waiting, g.positions.Latest().Position)\n",
		"",
	},
	{
		"goes on after the end of its term", "internal/position/gate.go",
		"return g.leave != nil && !g.leadership.Leads()",
		"return false",
	},
	{
		"does not wake when it is elected", "internal/leadership/leadership.go",
		`	l.uncertain = time.Time{}
	l.announceLocked()
`,
		`	l.uncertain = time.Time{}
`,
	},
}

var inPosition = []change{
	{
		"does not read the position when it is elected", "internal/position/gate.go",
		"	g.positions.Await(ctx)\n",
		"	_ = ctx\n",
	},
	{
		"writes its position without the stored one", "internal/position/positions.go",
		"return p.ownLocked().Merge(current)",
		"return p.ownLocked().Merge(Position{})",
	},
	{
		"publishes the position before the delivery", "internal/session/session.go",
		"	s.pipeline.deliver(b)\n",
		`	advance(s.memory, b)
	s.gate.Delivered(nil, s.memory.DeliveredUpTo)
	s.pipeline.deliver(b)
`,
	},
	{
		"publishes the position within a list", "internal/session/account.go",
		`		if c := &b.changes[i]; c.ResourceVersion != "" {
`,
		`		c := &b.changes[i]
		if c.Event != nil && c.ResourceVersion == "" {
			c.ResourceVersion = c.Event.ResourceVersion
		}
		if c.ResourceVersion != "" {
`,
	},
	{
		"does not hold the position back for a dedup window", "internal/memory/memory.go",
		"if oldest := m.Windows.Oldest(stream); oldest > 0 {",
		`if oldest := m.Windows.Oldest(stream); oldest > 0 && stream != "" {`,
	},
	{
		"ignores the position at the start", "internal/session/open_position.go",
		"return p.newUnsaved(p.Positions.Begin())",
		`start := p.Positions.Begin()
	start.Streams = nil
	return p.newUnsaved(start)`,
	},
	{
		"takes no event for new after a compacted position", "internal/memory/memory.go",
		"return !start.Reached(ev.Namespace, event.ResourceVersion(ev))",
		"return !start.Reached(ev.Namespace, min(event.ResourceVersion(ev), 1))",
	},
}

var inRestore = []change{
	{
		"does not notice that the cluster's versions have gone back", "internal/watch/history.go",
		"if now == 0 || now >= known {",
		"if now >= 0 {",
	},
	{
		"does not take the counts after a restore for the new baseline",
		"internal/memory/ledger/ledger.go",
		"if known.uid == seen.uid && !known.isForgotten() {",
		"if known.uid == seen.uid {",
	},
	{
		"does not notice another cluster while it runs", "internal/session/identity.go",
		`return known != "" && known != cmp.Or(s.process.Cluster.UID(), known)`,
		`return known == "" && known != cmp.Or(s.process.Cluster.UID(), known)`,
	},
}

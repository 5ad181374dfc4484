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
		"ignores an error message in a stream", "internal/watch/connection.go",
		"return s.streamError(apierrors.FromObject(message.Object))",
		"return nil",
	},
	{
		"takes an event of a streaming list for a change", "internal/watch/connection.go",
		`	case s.listing:
		return Listed
`,
		"",
	},
	{
		"restarts a watch without a pause", "internal/watch/stream.go",
		`		pause(ctx, backoff.Step())
`,
		`		_ = backoff
`,
	},
	{
		"never makes the pause between two attempts longer", "internal/watch/stream.go",
		"if time.Since(opened) > settled {",
		"if time.Since(opened) >= 0 {",
	},
	{
		"waits for an answer for ever", "internal/watch/connection.go",
		"answerWithin = time.Minute",
		"answerWithin = 24 * time.Hour",
	},
	{
		"reports no status for a 403", "status.go",
		"if cause == watch.Ended || cause == watch.Expired {",
		"if cause == watch.Ended || cause == watch.Expired || cause == watch.Forbidden {",
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
	{
		"takes a compacted value for a passing failure", "internal/watch/connection.go",
		"if s.brokenAt == s.resourceVersion {",
		"if s.brokenAt == s.resourceVersion && err == nil {",
	},
	{
		"resumes all streams from the position of the first", "lifecycle.go",
		"r.streams[namespace].ResourceVersion",
		"r.streams[r.config.streams()[0]].ResourceVersion",
	},
	{
		"resumes after the first of many deletions at one version", "internal/watch/connection.go",
		"if kind != kwatch.Deleted || err != nil || n < 2 {",
		"if kind != \"\" || err != nil || n < 2 {",
	},
}

var inQueue = []mutant{
	{
		"queues without a bound", "internal/inbox/inbox.go",
		"semaphore.NewWeighted(int64(capacity))",
		"semaphore.NewWeighted(1 << 40)",
	},
	{
		"counts a large message as a small one", "internal/inbox/inbox.go",
		"min(i.capacity, 1+int64(len(change.Event.Message)/weighty))",
		"1",
	},
	{
		"drops an event when the queue is full", "internal/inbox/inbox.go",
		`		if err := i.room.Acquire(ctx, weight); err != nil {
			return err
		}
`,
		`		return ctx.Err()
`,
	},
	{
		"drops what is queued behind the end of a list", "internal/inbox/inbox.go",
		"i.changes = i.changes[:left]",
		"i.changes = i.changes[:0]",
	},
	{
		"takes the end of a list and what comes after it in one batch", "internal/inbox/inbox.go",
		"ended = i.changes[taken].Kind == watch.ListEnded",
		"ended = false",
	},
	{
		"wakes for a full queue alone", "internal/inbox/inbox.go",
		"wake := len(i.changes) > 0",
		"wake := i.fullLocked()",
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
		"remembers a deleted event for an hour", "internal/ledger/ledger.go",
		"RememberDeleted = 24 * time.Hour",
		"RememberDeleted = time.Hour",
	},
	{
		"counts a relabelled event", "internal/ledger/ledger.go",
		`		return int64(seen.count) // A new event under an old name.
	}
	return 0`,
		`		return int64(seen.count)
	}
	if seen.isNewerThan(known) {
		return 1
	}
	return 0`,
	},
	{
		"ignores another object under an old name", "internal/ledger/ledger.go",
		`if seen.uid != known.uid {
		return int64(seen.count) // A new event under an old name.
	}
	return 0`,
		"return 0",
	},
	{
		"counts an event wholly that was created again after a day", "internal/ledger/ledger.go",
		"created.Sub(first) > outlived",
		"created.Sub(first) > 24*outlived",
	},
	{
		"lets a count go down and up again", "internal/ledger/ledger.go",
		`	if known.uid == seen.uid {
		seen.count = max(seen.count, known.count)
	}
`,
		"",
	},
	{
		"counts an earlier object of the same name again", "internal/ledger/ledger.go",
		`if known.uid != seen.uid && !seen.isNewerThan(known) {
		return 0 // An earlier object of that name, handed over again.
	}`,
		"",
	},
	{
		"counts only the occurrences above what a deleted event had", "internal/ledger/ledger.go",
		"return firstSight(ev, int64(seen.count))",
		"return 1",
	},
	{
		"does not count what is new in a first list that begins again",
		"internal/ledger/ledger.go",
		`	if _, ok := l.entries[k]; ok {
		return l.Observe(namespace, ev)
	}
	l.Observe(namespace, ev)`,
		`	_ = k
	l.Observe(namespace, ev)`,
	},
	{
		"takes each list for the first", "receiver.go",
		`		s.Listed = true
`,
		"",
	},
	{
		"ignores a deletion that a list shows", "internal/ledger/ledger.go",
		"if e.scope == s.id && e.pass != s.pass && !e.isGone() {",
		"if e.scope == s.id && e.pass > s.pass && !e.isGone() {",
	},
	{
		"forgets the events that a new list does not show", "internal/ledger/ledger.go",
		`			l.bury(k, e, now)
`,
		`			_ = now
			l.drop(k)
`,
	},
	{
		"ignores the count of a series", "internal/event/event.go",
		"n = max(n, int64(ev.Series.Count))",
		"n = max(n, 1)",
	},
	{
		"takes an event's name for its identity without the namespace", "internal/event/event.go",
		"types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name}",
		"types.NamespacedName{Name: ev.Name}",
	},
	{
		"saves no deletions", "internal/ledger/snapshot.go",
		`		if known.isGone() == e.isGone() {
			known.pass = e.pass
		}
`,
		`		known.pass = e.pass
`,
	},
	{
		"restores a deleted event as one that exists", "internal/ledger/snapshot.go",
		`		e.pass = gone
		l.deleted.at[k] = at
`,
		`		l.deleted.at[k] = at
`,
	},
}

var inDedup = []mutant{
	{
		"never flushes a dedup window at shutdown", "receiver.go",
		`	if !more {
		records = append(records, r.windows.Flush()...)
	}
`,
		`	_ = more
`,
	},
	{
		"does not add up what a dedup window holds", "internal/repeat/repeat.go",
		`		merged.Occurrences += w.held.Occurrences
`,
		"",
	},
	{
		"delivers the oldest state that a dedup window holds", "internal/repeat/repeat.go",
		`		merged.SeenAt = w.held.SeenAt
`,
		`		merged.SeenAt = w.held.SeenAt
		merged.Event = w.held.Event
`,
	},
	{
		"does not open a dedup window for what an earlier one held", "internal/repeat/repeat.go",
		`			w.open(window.event, now)
`,
		"",
	},
	{
		"does not save what a dedup window holds", "internal/repeat/snapshot.go",
		`	w.held[k] = open
	w.changed.Note(k)
`,
		`	w.held[k] = open
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
	{
		"opens a dedup window for a reason instead of an event", "internal/repeat/repeat.go",
		`		name := event.Name(o.Event)
		if open, ok`,
		`		name := event.Name(o.Event)
		name.Name = o.Event.Reason
		if open, ok`,
	},
	{
		"drops what a dedup window held when it ends", "internal/repeat/repeat.go",
		`records = append(records, w.release(window))
			w.open`,
		`_ = w.release(window)
			w.open`,
	},
	{
		"begins with empty dedup windows after a restart", "saving.go",
		"err = r.windows.Restore(rest, value)",
		"err = nil",
	},
	{
		"does not order restored dedup windows by their end", "internal/repeat/snapshot.go",
		`	slices.SortFunc(w.order, func(a, b *window) int { return a.end.Compare(b.end) })
`,
		`	slices.SortFunc(w.order, func(a, b *window) int { return b.end.Compare(a.end) })
`,
	},
	{
		"ends no dedup window whose content was offered before a crash",
		"internal/repeat/snapshot.go",
		`			open.end = time.Time{}
`,
		`			open.joins = true
`,
	},
}

var inTally = []mutant{
	{
		"does not restore the sums", "saving.go",
		"err = r.tally.Restore(rest, value)",
		"err = nil",
	},
	{
		"lets restored sums count from the new start", "internal/tally/snapshot.go",
		"p := &point{start: r.Start,",
		"p := &point{start: t.epoch,",
	},
	{
		"emits sums that are not saved", "internal/tally/metrics.go",
		`		return p.durable
`,
		`		return p.occurrences
`,
	},
	{
		"sums events of all types in one series", "internal/tally/tally.go",
		"pk := pointKey{o.Event.Reason, o.Event.Type,",
		`pk := pointKey{o.Event.Reason, "",`,
	},
	{
		"sums workloads of one name in one series", "internal/tally/tally.go",
		"key.apiVersion, key.kind, key.name, key.uid = " +
			"workload.APIVersion, workload.Kind, workload.Name, string(workload.UID)",
		"key.name = workload.Name",
	},
	{
		"sums pods with different labels in one series", "internal/tally/tally.go",
		`	key.tags = tags.String()
`,
		"",
	},
	{
		"makes a series for each pod", "internal/tally/tally.go",
		`		return &barePod
`,
		`		return end
`,
	},
	{
		"starts a new series at its first occurrence's time of an older one",
		"internal/tally/tally.go",
		`p := &point{start: t.epoch}
	r.points`,
		`p := &point{start: t.epoch, occurrences: o.Occurrences}
	r.points`,
	},
	{
		"counts records instead of occurrences", "internal/tally/tally.go",
		"p.occurrences += o.Occurrences",
		"p.occurrences++",
	},
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
	{
		"emits no last sums at shutdown", "lifecycle.go",
		`		// The last sums, which nothing would carry otherwise.
		r.emitMetrics(work)
`,
		"",
	},
	{
		"takes all sums for saved when a save fails", "internal/tally/snapshot.go",
		`	t.saved.works = false
	t.saved.changed.Note(keys...)
`,
		`	t.saved.works = false
`,
	},
	{
		"counts in the metric what is not delivered yet", "receiver.go",
		`		r.announce(r.duty.stop, r.duty.work, records)
`,
		`		r.announce(r.duty.stop, r.duty.work, records)
		if r.metrics != nil {
			r.tally.Add(counted, time.Now())
			counted = nil
		}
`,
	},
	{
		"drops a series whose last value was not emitted", "internal/tally/tally.go",
		"if p.moved.Before(oldest) && p.emitted == p.occurrences {",
		"if p.moved.Before(oldest) {",
	},
	{
		"emits two points for one moment", "internal/tally/metrics.go",
		`		now = soonest
`,
		`		_ = soonest
`,
	},
	{
		"does not count restored series against max_series", "internal/tally/snapshot.go",
		`	t.series++
	t.saved.know(p, found, pk)`,
		`	t.saved.know(p, found, pk)`,
	},
	{
		"takes a metric for emitted that the pipeline rejected", "receiver.go",
		`	if err == nil {
		r.tally.Emitted()`,
		`	if err == nil || points > 0 {
		r.tally.Emitted()`,
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
		"does not save the positions of the streams", "saving.go",
		"state{Streams: r.streams, Scopes:",
		"state{Scopes:",
	},
	{
		"takes the first list after a restart for the first ever", "saving.go",
		"r.streams[namespace] = saved.Streams[namespace]",
		"r.streams[namespace] = streamState{ResourceVersion: saved.Streams[namespace].ResourceVersion}",
	},
	{
		"forgets what could not be saved", "saving.go",
		`		r.ledger.PutBack(entries)
`,
		`		_ = entries
`,
	},
	{
		"forgets which dedup windows could not be saved", "saving.go",
		`		r.windows.PutBack(windows)
`,
		`		_ = windows
`,
	},
	{
		"forgets which entries are gone when it merges some runs",
		"internal/checkpoint/checkpoint.go",
		"all := len(runs) == len(next.runs)",
		"all := true",
	},
	{
		"restores older values over newer ones", "internal/checkpoint/run.go",
		"h.runs = append(h.runs, r)",
		"h.runs = append([]run{r}, h.runs...)",
	},
	{
		"reads only the first chunk of a run", "internal/checkpoint/run.go",
		`		for chunk := range int(r.values) {`,
		`		for chunk := range min(1, int(r.values)) {`,
	},
	{
		"leaves the note of what was offered when it is saved",
		"internal/checkpoint/checkpoint.go",
		"storage.SetOperation(headKey, next.encode()), storage.DeleteOperation(noteKey))",
		"storage.SetOperation(headKey, next.encode()))",
	},
	{
		"does not read which records were offered before a crash", "saving.go",
		"range [][]byte{saved.Offers, note}",
		"range [][]byte{saved.Offers, note[:0]}",
	},
	{
		"forgets offered records at the next save", "saving.go",
		"range [][]byte{saved.Offers, note}",
		"range [][]byte{nil, note}",
	},
	{
		"does not note which records it offers", "receiver.go",
		`		r.announce(r.duty.stop, r.duty.work, records)
`,
		"",
	},
	{
		"notes which records it offers over a note that is still needed", "saving.go",
		"if r.saving == nil || r.saving.behind || r.logs == nil",
		"if r.saving == nil || r.logs == nil",
	},
	{
		"makes one record of what was offered as several", "internal/offer/offer.go",
		"if next.count <= told || next.count > count || ",
		"if next.count != count || ",
	},
	{
		"forgets all offers of an event with the first", "internal/offer/offer.go",
		"return of.resourceVersion <= reached",
		"return of.resourceVersion <= reached || reached > 0",
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
	{
		"goes on from its own memory in a later term", "lifecycle.go",
		`	r.restore(stop)
`,
		`	if r.ledger == nil {
		r.restore(stop)
	}
`,
	},
	{
		"saves while another process leads", "saving.go",
		"if !now.Before(r.saving.again) && r.mayEmit() {",
		"if !now.Before(r.saving.again) {",
	},
	{
		"asks a storage that cannot be read only once", "saving.go",
		"loadAttempts = 3",
		"loadAttempts = 1",
	},
	{
		"does not save at the end what could not be saved before", "receiver.go",
		`	if r.unsaved() && r.mayEmit() {
`,
		`	if r.saving != nil && r.saving.again.IsZero() && r.unsaved() && r.mayEmit() {
`,
	},
}

var inDelivery = []mutant{
	{
		"drops a batch when a retryable error comes", "delivery.go",
		"return isPermanent(err) || !retry.Enabled",
		"return err != nil || !retry.Enabled",
	},
	{
		"retries a permanent error", "delivery.go",
		"return isPermanent(err) || !retry.Enabled",
		"return !retry.Enabled",
	},
	{
		"gives up after five minutes of retryable errors", "factory.go",
		`	retry.MaxElapsedTime = 0
`,
		"",
	},
	{
		"does not retry the rest after a partial error", "delivery.go",
		`		logs = r.remaining(err, records)
`,
		`		if logs = r.remaining(err, records); logs.LogRecordCount() < len(records) {
			return true
		}
`,
	},
	{
		"offers data again that a pipeline has changed", "delivery.go",
		`		logs = r.remaining(err, records)
`,
		`		if partial := r.remaining(err, records); partial.LogRecordCount() < logs.LogRecordCount() {
			logs = partial
		}
`,
	},
	{
		"delivers only the first part of a large batch", "delivery.go",
		`		if !r.deliverPart(stop, work, part) {
			return false
		}
`,
		`		return r.deliverPart(stop, work, part)
`,
	},
	{
		"takes a batch for delivered when it stops while the pipeline rejects it", "delivery.go",
		`zap.Int("records", count), zap.Error(err))
			return false
`,
		`zap.Int("records", count), zap.Error(err))
			return true
`,
	},
	{
		"forgets at shutdown what is in the queue", "receiver.go",
		`	if !more {
		r.drain()
	}
	return r.batch, more`,
		`	if !more {
		r.batch = r.batch[:0]
	}
	return r.batch, more`,
	},
	{
		"cancels a delivery when it is shut down", "delivery.go",
		"err := r.offer(work, logs)",
		"err := r.offer(stop, logs)",
	},
	{
		"delivers the newest records first", "delivery.go",
		`	logs := r.convert(records)
	pause`,
		`	slices.Reverse(records)
	logs := r.convert(records)
	pause`,
	},
	{
		"retries without a pause", "delivery.go",
		"if !sleep(stop, pause.NextBackOff()) {",
		"if !sleep(stop, time.Duration(0*pause.NextBackOff())) {",
	},
	{
		"does not commit a batch that gives no record", "receiver.go",
		`		r.commit(r.duty.work, counted)
`,
		`		if len(records) > 0 {
			r.commit(r.duty.work, counted)
		}
`,
	},
	{
		"waits longer and longer between two attempts", "delivery.go",
		"MaxInterval:         retry.MaxInterval",
		"MaxInterval:         100 * retry.MaxInterval",
	},
	{
		"drops a batch when one of several exporters rejects it permanently", "delivery.go",
		"return isPermanent(err) || !retry.Enabled",
		"return consumererror.IsPermanent(err) || !retry.Enabled",
	},
	{
		"offers all exporters only the part that one of them rejected", "delivery.go",
		"if len(leaves(err)) == 1 && errors.As(err, &partial) {",
		"if errors.As(err, &partial) {",
	},
	{
		"reports no status while the pipeline rejects", "delivery.go",
		"long := time.AfterFunc(rejectedLong,",
		"long := time.AfterFunc(100*rejectedLong,",
	},
	{
		"never reports that the pipeline accepts again", "delivery.go",
		`	r.status.recovered(logsPipeline, "The pipeline accepts events again")
`,
		"",
	},
}

var inElection = []mutant{
	{
		"emits metrics as a standby", "receiver.go",
		`	if !r.mayEmit() {
		return
	}
`,
		"",
	},
	{
		"holds too little as a standby", "lifecycle.go",
		"leadership.lease + electionDelay + r.config.RepeatInterval",
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
		"does not emit what it held when it begins to lead", "duty.go",
		`	records = r.standby.release(now)
`,
		`	records = nil
	_ = r.standby.release(now)
`,
	},
	{
		"emits what it held in each batch of a term", "standby.go",
		`	held := s.held
	s.held = nil
`,
		`	held := s.held
`,
	},
	{
		"emits what it held before it knows its owners", "duty.go",
		`	resolve(records)
`,
		"",
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
		"holds an event for the time since it happened instead of since it was seen", "standby.go",
		"s.held[old].SeenAt.Before(oldest)",
		"s.held[old].Event.CreationTimestamp.Time.Before(oldest)",
	},
	{
		"does not hold what it could not deliver when its term ended", "duty.go",
		`	r.standby.hold(records, time.Now())
	return true`,
		`	return true`,
	},
	{
		"lists only when it is elected", "duty.go",
		"return r.leadership != nil && r.saving == nil }",
		"return false }",
	},
	{
		"does not report that no leader can be elected", "election.go",
		`		case errors.As(err, &trouble):
			r.status.failed(`,
		`		case errors.As(err, &trouble) && false:
			r.status.failed(`,
	},
	{
		"begins with what is new since it leads", "standby.go",
		`	oldest := now.Add(-s.horizon)
`,
		`	oldest := now.Add(-s.horizon / 2)
`,
	},
	{
		"takes itself for the leader until it hears otherwise", "leadership.go",
		"return &leadership{lease: lease,",
		"return &leadership{leading: true, term: context.Background(), endTerm: func() {}, lease: lease,",
	},
	{
		"goes on leading when it has lost its lease", "election.go",
		"l.started() }, l.stopped)",
		"l.started() }, func() {})",
	},
	{
		"stops leading before its work has ended", "leadership.go",
		`	if ended != nil {
		<-ended
	}
`,
		`	_ = ended
`,
	},
	{
		"takes an elected leader for a failed election", "internal/lease/lease.go",
		"unchanged := l.looked && version == l.resourceVersion",
		"unchanged := l.looked",
	},
	{
		"reports an error of a term that has ended", "status.go",
		`if _, failed := s.failing[part]; failed {
		delete`,
		`if _, failed := s.failing[part]; failed && namespace != "" {
		delete`,
	},
}

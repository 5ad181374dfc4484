// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// mutants are mistakes that a developer could make, by the part of the receiver that they are in.
func mutants() []mutant {
	return slices.Concat(inWatch, inQueue, inLedger, inDedup, inTally, inCheckpoint, inDelivery, inElection, inResolver, inConversion, inFilters, inLifecycle)
}

var inWatch = []mutant{
	{
		"does not list again after 410 Gone", "internal/watch/stream.go",
		"\t\ts.resourceVersion = \"\"\n\t\treturn Expired", "\t\treturn Expired",
	},
	{
		"resumes in the middle of a list that broke off", "internal/watch/connection.go",
		"\tif !s.listing {\n\t\tchange.ResourceVersion = ev.ResourceVersion\n\t}", "\tchange.ResourceVersion = ev.ResourceVersion",
	},
	{
		"ignores an error message in a stream", "internal/watch/connection.go",
		"return s.streamError(apierrors.FromObject(message.Object))", "return nil",
	},
	{
		"takes an event of a streaming list for a change", "internal/watch/connection.go",
		"\tcase s.listing:\n\t\treturn Listed\n", "",
	},
	{
		"restarts a watch without a pause", "internal/watch/stream.go",
		"\t\tpause(ctx, backoff.Step())\n", "\t\t_ = backoff\n",
	},
	{
		"never makes the pause between two attempts longer", "internal/watch/stream.go",
		"if time.Since(opened) > settled {", "if time.Since(opened) >= 0 {",
	},
	{
		"waits for an answer for ever", "internal/watch/connection.go",
		"answerWithin = time.Minute", "answerWithin = 24 * time.Hour",
	},
	{
		"reports no status for a 403", "status.go",
		"if cause == watch.Ended || cause == watch.Expired {", "if cause == watch.Ended || cause == watch.Expired || cause == watch.Forbidden {",
	},
	{
		"never reports that it watches again", "internal/watch/connection.go",
		"\tif !s.listing {\n\t\ts.config.Observer.Healthy(s.config.Namespace)\n\t}\n", "",
	},
	{
		"takes the first page of a list for the whole", "internal/watch/connection.go",
		"if next = page.Continue; next == \"\" {", "if next = page.Continue; next == \"\" || next != \"\" {",
	},
	{
		"takes a compacted value for a passing failure", "internal/watch/connection.go",
		"if s.brokenAt == s.resourceVersion {", "if s.brokenAt == s.resourceVersion && err == nil {",
	},
	{
		"resumes all streams from the position of the first", "lifecycle.go",
		"r.streams[namespace].ResourceVersion", "r.streams[r.config.streams()[0]].ResourceVersion",
	},
}

var inQueue = []mutant{
	{
		"queues without a bound", "internal/inbox/inbox.go",
		"semaphore.NewWeighted(int64(capacity))", "semaphore.NewWeighted(1 << 40)",
	},
	{
		"counts a large message as a small one", "internal/inbox/inbox.go",
		"min(i.capacity, 1+int64(len(change.Event.Message)/weighty))", "1",
	},
	{
		"drops an event when the queue is full", "internal/inbox/inbox.go",
		"\t\tif err := i.room.Acquire(ctx, weight); err != nil {\n\t\t\treturn err\n\t\t}\n", "\t\treturn ctx.Err()\n",
	},
	{
		"drops what is queued behind the end of a list", "internal/inbox/inbox.go",
		"i.changes = i.changes[:left]", "i.changes = i.changes[:0]",
	},
	{
		"takes the end of a list and what comes after it in one batch", "internal/inbox/inbox.go",
		"ended = i.changes[taken].Kind == watch.ListEnded", "ended = false",
	},
	{
		"wakes for a full queue alone", "internal/inbox/inbox.go",
		"wake := len(i.changes) > 0", "wake := i.fullLocked()",
	},
}

var inLedger = []mutant{
	{
		"forgets a deleted event at once", "internal/ledger/ledger.go",
		"\tl.bury(k, last, now)\n", "\t_ = now\n\tl.drop(k)\n",
	},
	{
		"remembers a deleted event for a minute", "internal/ledger/ledger.go",
		"RememberDeleted = 24 * time.Hour", "RememberDeleted = time.Minute",
	},
	{
		"remembers a deleted event for an hour", "internal/ledger/ledger.go",
		"RememberDeleted = 24 * time.Hour", "RememberDeleted = time.Hour",
	},
	{
		"counts a relabelled event", "internal/ledger/ledger.go",
		"\t\treturn int64(seen.count) // A new event under an old name.\n\t}\n\treturn 0", "\t\treturn int64(seen.count)\n\t}\n\tif seen.isNewerThan(known) {\n\t\treturn 1\n\t}\n\treturn 0",
	},
	{
		"ignores another object under an old name", "internal/ledger/ledger.go",
		"if seen.uid != known.uid {\n\t\treturn int64(seen.count) // A new event under an old name.\n\t}\n\treturn 0", "return 0",
	},
	{
		"counts an event wholly that was created again after a day", "internal/ledger/ledger.go",
		"created.Sub(first) > outlived", "created.Sub(first) > 24*outlived",
	},
	{
		"lets a count go down and up again", "internal/ledger/ledger.go",
		"\tif known.uid == seen.uid {\n\t\tseen.count = max(seen.count, known.count)\n\t}\n", "",
	},
	{
		"counts an earlier object of the same name again", "internal/ledger/ledger.go",
		"if known.uid != seen.uid && !seen.isNewerThan(known) {\n\t\treturn 0 // An earlier object of that name, handed over again.\n\t}", "",
	},
	{
		"counts only the occurrences above what a deleted event had", "internal/ledger/ledger.go",
		"return firstSight(ev, int64(seen.count))", "return 1",
	},
	{
		"does not count what is new in a first list that begins again", "internal/ledger/ledger.go",
		"\tif _, ok := l.entries[k]; ok {\n\t\treturn l.Observe(namespace, ev)\n\t}\n\tl.Observe(namespace, ev)", "\t_ = k\n\tl.Observe(namespace, ev)",
	},
	{
		"takes each list for the first", "receiver.go",
		"\t\ts.Listed = true\n", "",
	},
	{
		"ignores a deletion that a list shows", "internal/ledger/ledger.go",
		"if e.scope == s.id && e.pass != s.pass && !e.isGone() {", "if e.scope == s.id && e.pass > s.pass && !e.isGone() {",
	},
	{
		"forgets the events that a new list does not show", "internal/ledger/ledger.go",
		"\t\t\tl.bury(k, e, now)\n", "\t\t\t_ = now\n\t\t\tl.drop(k)\n",
	},
	{
		"ignores the count of a series", "internal/event/event.go",
		"n = max(n, int64(ev.Series.Count))", "n = max(n, 1)",
	},
	{
		"takes an event's name for its identity without the namespace", "internal/event/event.go",
		"types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name}", "types.NamespacedName{Name: ev.Name}",
	},
	{
		"saves no deletions", "internal/ledger/snapshot.go",
		"\t\tif known.isGone() == e.isGone() {\n\t\t\tknown.pass = e.pass\n\t\t}\n", "\t\tknown.pass = e.pass\n",
	},
	{
		"restores a deleted event as one that exists", "internal/ledger/snapshot.go",
		"\t\te.pass = gone\n\t\tl.deleted.at[k] = at\n", "\t\tl.deleted.at[k] = at\n",
	},
}

var inDedup = []mutant{
	{
		"never flushes a dedup window at shutdown", "receiver.go",
		"\tif !more {\n\t\trecords = append(records, r.windows.Flush()...)\n\t}\n", "\t_ = more\n",
	},
	{
		"does not add up what a dedup window holds", "internal/repeat/repeat.go",
		"\t\tmerged.Occurrences += w.held.Occurrences\n", "",
	},
	{
		"delivers the oldest state that a dedup window holds", "internal/repeat/repeat.go",
		"\t\tmerged.SeenAt = w.held.SeenAt\n", "\t\tmerged.SeenAt = w.held.SeenAt\n\t\tmerged.Event = w.held.Event\n",
	},
	{
		"does not open a dedup window for what an earlier one held", "internal/repeat/repeat.go",
		"\t\t\tw.open(window.event, now)\n", "",
	},
	{
		"does not save what a dedup window holds", "internal/repeat/snapshot.go",
		"\tw.held[k] = open\n\tw.changed.Note(k)\n", "\tw.held[k] = open\n",
	},
	{
		"does not save that a dedup window is empty", "internal/repeat/snapshot.go",
		"\tdelete(w.held, k)\n\tw.changed.Note(k)\n", "\tdelete(w.held, k)\n",
	},
	{
		"wakes at the end of no dedup window", "receiver.go",
		"\tif end, open := r.windows.NextEnd(); open {\n\t\tdue = end\n\t}\n", "",
	},
	{
		"opens a dedup window for a reason instead of an event", "internal/repeat/repeat.go",
		"\t\tname := event.Name(o.Event)\n\t\tif open, ok", "\t\tname := event.Name(o.Event)\n\t\tname.Name = o.Event.Reason\n\t\tif open, ok",
	},
	{
		"drops what a dedup window held when it ends", "internal/repeat/repeat.go",
		"records = append(records, w.release(window))\n\t\t\tw.open", "_ = w.release(window)\n\t\t\tw.open",
	},
	{
		"begins with empty dedup windows after a restart", "saving.go",
		"err = r.windows.Restore(rest, value)", "err = nil",
	},
	{
		"does not order restored dedup windows by their end", "internal/repeat/snapshot.go",
		"\tslices.SortFunc(w.order, func(a, b *window) int { return a.end.Compare(b.end) })\n", "\tslices.SortFunc(w.order, func(a, b *window) int { return b.end.Compare(a.end) })\n",
	},
	{
		"ends no dedup window whose content was offered before a crash", "internal/repeat/snapshot.go",
		"\t\t\topen.end = time.Time{}\n", "\t\t\topen.joins = true\n",
	},
}

var inTally = []mutant{
	{
		"does not restore the sums", "saving.go",
		"err = r.tally.Restore(rest, value)", "err = nil",
	},
	{
		"lets restored sums count from the new start", "internal/tally/snapshot.go",
		"p := &point{start: r.Start,", "p := &point{start: t.epoch,",
	},
	{
		"emits sums that are not saved", "internal/tally/metrics.go",
		"\t\treturn p.durable\n", "\t\treturn p.occurrences\n",
	},
	{
		"sums events of all types in one series", "internal/tally/tally.go",
		"pk := pointKey{o.Event.Reason, o.Event.Type,", "pk := pointKey{o.Event.Reason, \"\",",
	},
	{
		"sums workloads of one name in one series", "internal/tally/tally.go",
		"key.apiVersion, key.kind, key.name, key.uid = workload.APIVersion, workload.Kind, workload.Name, string(workload.UID)", "key.name = workload.Name",
	},
	{
		"sums pods with different labels in one series", "internal/tally/tally.go",
		"\tkey.tags = tags.String()\n", "",
	},
	{
		"makes a series for each pod", "internal/tally/tally.go",
		"\t\treturn &barePod\n", "\t\treturn end\n",
	},
	{
		"starts a new series at its first occurrence's time of an older one", "internal/tally/tally.go",
		"p := &point{start: t.epoch}\n\tr.points", "p := &point{start: t.epoch, occurrences: o.Occurrences}\n\tr.points",
	},
	{
		"counts records instead of occurrences", "internal/tally/tally.go",
		"p.occurrences += o.Occurrences", "p.occurrences++",
	},
	{
		"lets a series that expired go on with its old start", "internal/tally/tally.go",
		"\t\t\t\tt.epoch = now\n", "",
	},
	{
		"does not note that a series has moved", "internal/tally/tally.go",
		"\t\tp.moved = now\n", "",
	},
	{
		"does not count what goes beyond max_series", "internal/tally/tally.go",
		"\tif t.series >= t.config.MaxSeries {\n\t\treturn t.overflowLocked()", "\tif t.series >= t.config.MaxSeries {\n\t\treturn &point{}",
	},
	{
		"emits no last sums at shutdown", "lifecycle.go",
		"\t\t// The last sums, which nothing would carry otherwise.\n\t\tr.emitMetrics(work)\n", "",
	},
	{
		"takes all sums for saved when a save fails", "internal/tally/snapshot.go",
		"\tt.saved.works = false\n\tt.saved.changed.Note(keys...)\n", "\tt.saved.works = false\n",
	},
	{
		"counts in the metric what is not delivered yet", "receiver.go",
		"\t\tr.announce(r.duty.stop, r.duty.work, records)\n", "\t\tr.announce(r.duty.stop, r.duty.work, records)\n\t\tif r.metrics != nil {\n\t\t\tr.tally.Add(counted, time.Now())\n\t\t\tcounted = nil\n\t\t}\n",
	},
	{
		"drops a series whose last value was not emitted", "internal/tally/tally.go",
		"if p.moved.Before(oldest) && p.emitted == p.occurrences {", "if p.moved.Before(oldest) {",
	},
	{
		"emits two points for one moment", "internal/tally/metrics.go",
		"\t\tnow = soonest\n", "\t\t_ = soonest\n",
	},
	{
		"does not count restored series against max_series", "internal/tally/snapshot.go",
		"\tt.series++\n\tt.saved.know(p, found, pk)", "\tt.saved.know(p, found, pk)",
	},
	{
		"takes a metric for emitted that the pipeline rejected", "receiver.go",
		"\tif err == nil {\n\t\tr.tally.Emitted()", "\tif err == nil || points > 0 {\n\t\tr.tally.Emitted()",
	},
}

var inCheckpoint = []mutant{
	{
		"saves the position before delivery", "receiver.go",
		"\t\tr.announce(r.duty.stop, r.duty.work, records)\n", "\t\tr.announce(r.duty.stop, r.duty.work, records)\n\t\tr.moveTo(r.batch)\n\t\tr.saveIfDue(r.duty.work, time.Now())\n",
	},
	{
		"does not save the positions of the streams", "saving.go",
		"state{Streams: r.streams, Scopes:", "state{Scopes:",
	},
	{
		"takes the first list after a restart for the first ever", "saving.go",
		"r.streams[namespace] = saved.Streams[namespace]", "r.streams[namespace] = streamState{ResourceVersion: saved.Streams[namespace].ResourceVersion}",
	},
	{
		"forgets what could not be saved", "saving.go",
		"\t\tr.ledger.PutBack(entries)\n", "\t\t_ = entries\n",
	},
	{
		"forgets which dedup windows could not be saved", "saving.go",
		"\t\tr.windows.PutBack(windows)\n", "\t\t_ = windows\n",
	},
	{
		"forgets which entries are gone when it merges some runs", "internal/checkpoint/checkpoint.go",
		"all := len(runs) == len(next.runs)", "all := true",
	},
	{
		"restores older values over newer ones", "internal/checkpoint/run.go",
		"h.runs = append(h.runs, r)", "h.runs = append([]run{r}, h.runs...)",
	},
	{
		"reads only the first chunk of a run", "internal/checkpoint/run.go",
		"\t\tfor chunk := range int(r.values) {", "\t\tfor chunk := range min(1, int(r.values)) {",
	},
	{
		"leaves the note of what was offered when it is saved", "internal/checkpoint/checkpoint.go",
		"storage.SetOperation(headKey, next.encode()), storage.DeleteOperation(noteKey))", "storage.SetOperation(headKey, next.encode()))",
	},
	{
		"does not read which records were offered before a crash", "saving.go",
		"range [][]byte{saved.Offers, note}", "range [][]byte{saved.Offers, note[:0]}",
	},
	{
		"forgets offered records at the next save", "saving.go",
		"range [][]byte{saved.Offers, note}", "range [][]byte{nil, note}",
	},
	{
		"does not note which records it offers", "receiver.go",
		"\t\tr.announce(r.duty.stop, r.duty.work, records)\n", "",
	},
	{
		"notes which records it offers over a note that is still needed", "saving.go",
		"if r.saving == nil || r.saving.behind || r.logs == nil", "if r.saving == nil || r.logs == nil",
	},
	{
		"makes one record of what was offered as several", "internal/offer/offer.go",
		"if next.count <= told || next.count > count || next.count == count && next.uid != whole.Event.UID {", "if next.count != count || next.uid != whole.Event.UID {",
	},
	{
		"forgets all offers of an event with the first", "internal/offer/offer.go",
		"return of.resourceVersion <= reached", "return of.resourceVersion <= reached || reached > 0",
	},
	{
		"saves once a minute", "saving.go",
		"if !now.Before(r.saving.again) && r.mayEmit() {", "if !now.Before(r.saving.again) && r.mayEmit() && now.Sub(r.saving.last) > time.Minute {",
	},
	{
		"does not save when only the position has moved", "saving.go",
		"return r.saving != nil && (r.saving.moved || r.ledger", "return r.saving != nil && (r.ledger",
	},
	{
		"goes on from its own memory in a later term", "lifecycle.go",
		"\tr.restore(stop)\n", "\tif r.ledger == nil {\n\t\tr.restore(stop)\n\t}\n",
	},
	{
		"saves while another process leads", "saving.go",
		"if !now.Before(r.saving.again) && r.mayEmit() {", "if !now.Before(r.saving.again) {",
	},
	{
		"asks a storage that cannot be read only once", "saving.go",
		"loadAttempts = 3", "loadAttempts = 1",
	},
	{
		"does not save at the end what could not be saved before", "receiver.go",
		"\tif r.unsaved() && r.mayEmit() {\n", "\tif r.saving != nil && r.saving.again.IsZero() && r.unsaved() && r.mayEmit() {\n",
	},
}

var inDelivery = []mutant{
	{
		"drops a batch when a retryable error comes", "delivery.go",
		"return consumererror.IsPermanent(err) || !retry.Enabled", "return err != nil || !retry.Enabled",
	},
	{
		"retries a permanent error", "delivery.go",
		"return consumererror.IsPermanent(err) || !retry.Enabled", "return !retry.Enabled",
	},
	{
		"gives up after five minutes of retryable errors", "factory.go",
		"\tretry.MaxElapsedTime = 0\n", "",
	},
	{
		"does not retry the rest after a partial error", "delivery.go",
		"\t\tlogs = r.remaining(err, records)\n", "\t\tif logs = r.remaining(err, records); logs.LogRecordCount() < len(records) {\n\t\t\treturn true\n\t\t}\n",
	},
	{
		"offers data again that a pipeline has changed", "delivery.go",
		"\t\tlogs = r.remaining(err, records)\n", "\t\tif partial := r.remaining(err, records); partial.LogRecordCount() < logs.LogRecordCount() {\n\t\t\tlogs = partial\n\t\t}\n",
	},
	{
		"delivers only the first part of a large batch", "delivery.go",
		"\t\tif !r.deliverPart(stop, work, part) {\n\t\t\treturn false\n\t\t}\n", "\t\treturn r.deliverPart(stop, work, part)\n",
	},
	{
		"takes a batch for delivered when it stops while the pipeline rejects it", "delivery.go",
		"zap.Int(\"records\", count), zap.Error(err))\n\t\t\treturn false\n", "zap.Int(\"records\", count), zap.Error(err))\n\t\t\treturn true\n",
	},
	{
		"forgets at shutdown what is in the queue", "receiver.go",
		"\tif !more {\n\t\tr.drain()\n\t}\n\treturn r.batch, more", "\tif !more {\n\t\tr.batch = r.batch[:0]\n\t}\n\treturn r.batch, more",
	},
	{
		"cancels a delivery when it is shut down", "delivery.go",
		"err := r.offer(work, logs)", "err := r.offer(stop, logs)",
	},
	{
		"delivers the newest records first", "delivery.go",
		"\tlogs := r.convert(records)\n\tpause", "\tslices.Reverse(records)\n\tlogs := r.convert(records)\n\tpause",
	},
	{
		"retries without a pause", "delivery.go",
		"if !sleep(stop, pause.NextBackOff()) {", "if !sleep(stop, time.Duration(0*pause.NextBackOff())) {",
	},
	{
		"does not commit a batch that gives no record", "receiver.go",
		"\t\tr.commit(r.duty.work, counted)\n", "\t\tif len(records) > 0 {\n\t\t\tr.commit(r.duty.work, counted)\n\t\t}\n",
	},
	{
		"waits longer and longer between two attempts", "delivery.go",
		"MaxInterval:         retry.MaxInterval", "MaxInterval:         100 * retry.MaxInterval",
	},
}

var inElection = []mutant{
	{
		"emits metrics as a standby", "receiver.go",
		"\tif !r.mayEmit() {\n\t\treturn\n\t}\n", "",
	},
	{
		"holds too little as a standby", "lifecycle.go",
		"leadership.lease + electionDelay + r.config.RepeatInterval", "leadership.lease",
	},
	{
		"holds nothing as a standby", "standby.go",
		"\ts.held = append(s.held, records...)\n", "\ts.held = records\n",
	},
	{
		"does not emit what it held when it begins to lead", "duty.go",
		"\trecords = r.standby.release(now)\n", "\trecords = nil\n\t_ = r.standby.release(now)\n",
	},
	{
		"emits what it held in each batch of a term", "standby.go",
		"\theld := s.held\n\ts.held = nil\n", "\theld := s.held\n",
	},
	{
		"emits what it held before it knows its owners", "duty.go",
		"\tresolve(records)\n", "",
	},
	{
		"does not wake when it is elected", "leadership.go",
		"\tl.doubtful = time.Time{}\n\tl.announceLocked()\n", "\tl.doubtful = time.Time{}\n",
	},
	{
		"holds an event for the time since it happened instead of since it was seen", "standby.go",
		"s.held[old].SeenAt.Before(oldest)", "s.held[old].Event.CreationTimestamp.Time.Before(oldest)",
	},
	{
		"does not hold what it could not deliver when its term ended", "duty.go",
		"\tr.standby.hold(records, time.Now())\n\treturn true", "\treturn true",
	},
	{
		"lists only when it is elected", "duty.go",
		"return r.leadership != nil && r.saving == nil }", "return false }",
	},
	{
		"does not report that no leader can be elected", "election.go",
		"\t\tcase errors.As(err, &trouble):\n\t\t\tr.status.failed(", "\t\tcase errors.As(err, &trouble) && false:\n\t\t\tr.status.failed(",
	},
	{
		"begins with what is new since it leads", "standby.go",
		"\toldest := now.Add(-s.horizon)\n", "\toldest := now.Add(-s.horizon / 2)\n",
	},
	{
		"emits as a standby", "duty.go",
		"\treturn r.duty.leave != nil\n}\n\nfunc (r *eventsReceiver) enterDuty", "\tif r.duty.leave == nil {\n\t\tr.duty = duty{stop: stop, work: work}\n\t}\n\treturn true\n}\n\nfunc (r *eventsReceiver) enterDuty",
	},
	{
		"goes on leading when it has lost its lease", "election.go",
		"l.started() }, l.stopped)", "l.started() }, func() {})",
	},
	{
		"stops leading before its work has ended", "leadership.go",
		"\tif ended != nil {\n\t\t<-ended\n\t}\n", "\t_ = ended\n",
	},
	{
		"takes an elected leader for a failed election", "internal/lease/lease.go",
		"unchanged := l.looked && version == l.resourceVersion", "unchanged := l.looked",
	},
	{
		"reports an error of a term that has ended", "status.go",
		"if _, failed := s.failing[part]; failed {\n\t\tdelete", "if _, failed := s.failing[part]; failed && namespace != \"\" {\n\t\tdelete",
	},
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

// addOverlap lets processes overlap in one plan in four of those with storage and no elector.
// In another cluster, or one that went back, nobody knows which of both notices it first.
func (p *Plan) addOverlap() {
	r := draw(p.Seed, "overlap", 0)
	if p.Mode != storageAlone || p.TwoReceivers || !chance(r, 4) {
		return
	}
	p.drop(func(f Fault) bool { return f.is(BackupRestored, ClusterNew) })
	for range 1 + r.IntN(2) {
		from := between(r, calm, p.Active)
		p.Faults = append(p.Faults, Fault{
			Kind: Replaced, From: from,
			To: from + oneOf(r, between(r, 0, 5*time.Second), between(r, 5*time.Second, time.Minute)),
		})
	}
}

// overlap reports whether two processes of one storage ran at once. The contract: "both deliver. The
// one that started last continues from the checkpoint and saves." So records are repeated, and are
// not the same byte for byte.
func (e *environment) overlap() bool { return e.plan.has(Replaced) }

// checkOneWriter checks what a process wrote to storage after a later one had begun to write.
func (e *environment) checkOneWriter(p *process) {
	taken := e.takenFrom(p)
	if taken.IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	writes := 0
	for _, s := range p.saves {
		if !s.failed && s.began.After(taken) {
			writes++
		}
	}
	if writes > 1 {
		e.violate(oneWriter, "", "%s wrote %d times after a later process had written to its storage", p.name, writes)
	}
}

// takenFrom returns when a later process had surely taken the storage over; zero: none has. "This does
// not hold if the storage could not be written when the later one started."
func (e *environment) takenFrom(p *process) (taken time.Time) {
	if e.plan.has(StorageUnwritable, StorageTorn, StorageLate, StorageSlow, StorageAnswerLost, StorageUnreadable) {
		return taken
	}
	for _, other := range e.allProcesses() {
		if other.number > p.number && (taken.IsZero() || other.firstSave().Before(taken)) {
			taken = other.firstSave()
		}
	}
	return taken
}

// isTakenByEarlier reports whether a process that started before claimed the storage at the same time
// or later, because its first read hung. The later one cannot know when that one has ended: "A restart
// takes the storage over again".
func (e *environment) isTakenByEarlier(p *process) bool {
	return e.plan.Storage && slices.ContainsFunc(e.allProcesses(), func(other *process) bool {
		first := other.firstSave()
		return other.number < p.number && !first.IsZero() && !first.Before(p.firstSave())
	})
}

// checkReportsTakenOver checks that a process reports that a later one has taken its storage over.
// It learns this from its next write, and it writes before each delivery.
func (e *environment) checkReportsTakenOver(p *process) {
	taken, now := e.takenFrom(p), time.Now()
	delays := func(f *Fault) bool { return f.delaysRecords() && !f.is(Replaced) }
	if taken.IsZero() || p.isDead() || e.disturbed(taken.Add(-lookBack), now, delays) {
		return
	}
	isLate := func(d delivery) bool {
		return d.process == p && d.at.After(taken.Add(promptly)) && d.at.Before(now.Add(-time.Second))
	}
	for _, x := range e.exporters {
		if slices.ContainsFunc(x.all(), isLate) && p.failing(0) == 0 {
			e.violate(oneWriter, "", "%s delivers after a later process has taken over its storage, and its status is no error", p.name)
			return
		}
	}
}

// firstSave returns when the process first wrote to storage; zero: it has not.
func (p *process) firstSave() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.saves {
		if !s.failed {
			return s.ended
		}
	}
	return time.Time{}
}

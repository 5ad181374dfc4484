// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// noted is how old the progress in the ConfigMap may be, and saved that in storage, if nothing is
// wrong: each is noted in the background, in two seconds and in one.
const (
	noted = 5 * time.Second
	saved = 2 * time.Second
)

// note is a write to storage, or of the ConfigMap.
type note struct {
	began, ended time.Time
	failed       bool
}

// noted notes a write of progress.
func (p *process) noted(began time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, note{began, time.Now(), err != nil})
}

// notesSurely reports whether a write within the time surely has what was delivered before it: it began
// after that, or another write did, which had to end before it.
func (p *process) notesSurely(begin, end time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	served := 0
	for _, n := range p.notes {
		switch {
		case n.failed || n.ended.After(end):
		case n.began.After(begin) && p.storage != nil:
			return true
		case n.ended.After(begin):
			served++ // When a request began, the API server does not know.
		}
	}
	return served > 1
}

// settledAt returns when no pipeline of the process could still accept the record.
func (p *process) settledAt(r *record) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if settled, ok := p.dealtWith[r.uid]; ok {
		return later(settled.at, r.at)
	}
	return r.at
}

// endOf returns when the session ended in which the process was at a time, and whether this was its
// orderly end; zero: it lasted until the end of the run. A kill may come during an orderly end.
func (p *process) endOf(t time.Time) (ended time.Time, orderly bool) {
	if !p.replica.env.plan.Elector {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.died, false
	}
	for _, term := range p.allTerms() {
		if !term.began.After(t) && (term.ended.IsZero() || !term.ended.Before(t)) {
			return term.ended, term.orderly
		}
	}
	return t, false
}

// isUnnoted reports whether a later session may not know that a record was delivered. The contract: "a
// crash repeats what was delivered since the last note, with the same log.record.uid".
func (a *account) isUnnoted(r *record) bool {
	settled := r.process.settledAt(r)
	ended, orderly := r.process.endOf(r.at) // The record may be settled again in a later term.
	if ended.IsZero() {
		return false
	}
	if a.env.plan.Elector { // Windows hold the progress back.
		settled = settled.Add(a.env.plan.Dedup)
	}
	fails := func(f *Fault) bool {
		return f.Kind.isOfPipelines() || f.reachesProgress() || f.mayLoseCheckpoints() || f.is(LeaseForbidden, ListNeverEnds)
	}
	if orderly && !a.env.disturbed(ended.Add(-lookBack), ended.Add(promptly), fails) {
		return false
	}
	until := ended.Add(promptly)
	if next := r.process.termAt(until); next.After(ended) { // The notes of the next term show nothing of this one.
		until = next
	}
	return !r.process.notesSurely(settled, until)
}

// isCombined reports whether a record has several states of an event, because its process had
// listed what another saw one by one. The contract: "occurrences from before the progress of an event
// that also changed after it may be counted twice".
func (a *account) isCombined(r *record) bool {
	if !a.env.plan.Elector || r.occurrences < 2 {
		return false
	}
	p := r.process
	p.mu.Lock()
	defer p.mu.Unlock()
	relisted := p.lists[a.env.plan.stream(a.truth.names[r.eventUID].Namespace)].relisted
	return !relisted.IsZero() && !r.at.Before(relisted)
}

// mayRepeat returns how many occurrences of an event may be counted again, in records with another
// log.record.uid: if etcd was compacted, a list shows several states at once.
func (a *account) mayRepeat(name types.NamespacedName) (n int64) {
	for _, r := range a.byEvent[name] {
		switch {
		case a.isUnnoted(r):
			n += r.occurrences
		case a.isCombined(r):
			n += r.occurrences - 1
		}
	}
	return n
}

// checkRepeats checks that a session repeats only what the one before had delivered in its last
// moments.
func (a *account) checkRepeats() {
	if a.env.plan.Mode == neither {
		return
	}
	delays := func(f *Fault) bool {
		return f.reachesProgress() || f.Kind.isOfPipelines() || f.mayLoseCheckpoints() || f.is(BackupRestored, ClusterNew)
	}
	for _, r := range a.all {
		first := a.first[a.keyOf(r)]
		if sameTerm(first, r) || a.overlap(first, r) || a.env.disturbed(first.at.Add(-lookBack), r.at, delays) ||
			len(a.truth.states[r.uid]) > 1 { // Without a new occurrence, but with a version above the progress.
			continue
		}
		ended, _ := first.process.endOf(first.at)
		if !ended.IsZero() && first.at.Before(ended.Add(-a.mostAge())) || !a.isUnnoted(first) {
			a.violate(fewRepeated, a.truth.eventOf(r), "got %s again at %v from %s, and at %v from %s, whose session ended at %v",
				r.uid, a.env.sinceStart(r.at), r.process.name, a.env.sinceStart(first.at), first.process.name, a.env.sinceStart(ended))
		}
	}
}

// overlap reports whether two processes led at once. The contract: "two leaders can overlap".
func (a *account) overlap(first, r *record) bool {
	return a.env.plan.Elector && first.process != r.process && !r.process.termAt(r.at).After(first.at)
}

// mostAge is how old the progress may be that a session goes on from, if nothing is wrong.
func (a *account) mostAge() time.Duration {
	if a.env.plan.Elector {
		return noted + a.env.plan.Dedup
	}
	return saved
}

// isRepeated reports whether a record may repeat what another session has delivered.
func (a *account) isRepeated(before, r *record, earlier []*record) bool {
	return !sameTerm(before, r) && (a.isUnnoted(before) || a.isCombined(before) || a.isInCombined(r, earlier))
}

// isInCombined reports whether another process had delivered the occurrences of a record in one that
// combines several states: the record is a repeat, however much came in between.
func (a *account) isInCombined(r *record, before []*record) bool {
	return slices.ContainsFunc(before, func(c *record) bool {
		return !sameTerm(c, r) && c.eventUID == r.eventUID &&
			c.count-c.occurrences < r.count && r.count <= c.count && (a.isCombined(c) || a.isUnnoted(c))
	})
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// published is how old the leader's position may be: it is published every two seconds, by a
// request.
const published = 5 * time.Second

// save is a write to storage.
type save struct {
	began, ended time.Time
	failed       bool
}

// saved notes a write to storage.
func (p *process) saved(began time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saves = append(p.saves, save{began, time.Now(), err != nil})
}

// savedBetween reports whether a write to storage succeeded between two moments.
func (p *process) savedBetween(begin, end time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.saves, func(s save) bool {
		return !s.failed && s.began.After(begin) && s.ended.Before(end)
	})
}

// unsaved returns until when what the process delivered at a time was not saved, because writes to
// storage failed: the receiver repeats the write that failed, and the next one has what came after
// it. It returns zero if no write failed, and the end of the run if none succeeded since.
func (p *process) unsaved(at time.Time) (until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var since time.Time
	succeeded := 0
	for _, s := range p.saves {
		switch {
		case s.failed && since.IsZero():
			since, succeeded = s.began, 0
		case s.failed:
			succeeded = 0
		default:
			succeeded++
		}
		if succeeded == 2 {
			if !since.IsZero() && !at.Before(since) && at.Before(s.ended) {
				return s.ended
			}
			since = time.Time{}
		}
	}
	if !since.IsZero() && !at.Before(since) {
		return time.Now()
	}
	return time.Time{}
}

// isUnsaved reports whether another process, or term, may not have known of a record. The contract:
// "If storage cannot be written, the receiver […] delivers without saving. A crash in this state
// repeats what was delivered since the last save, and a repeat may combine several records under a
// new log.record.uid."
func (a *account) isUnsaved(r *record) bool {
	if !a.env.plan.Storage {
		return false
	}
	until := r.process.unsaved(r.at)
	return !until.IsZero() && slices.ContainsFunc(a.all, func(next *record) bool {
		return !sameTerm(next, r) && next.at.After(r.at) && !next.at.After(until)
	})
}

// diedUnsaved reports whether the process of a record was killed before it was saved. Nobody repeats
// it if the filters of later processes exclude it.
func (a *account) diedUnsaved(r *record) bool {
	r.process.mu.Lock()
	died, stopped := r.process.died, r.process.stopped
	r.process.mu.Unlock()
	until := r.process.unsaved(r.at)
	return !died.IsZero() && stopped.IsZero() && !until.IsZero() && !died.After(until)
}

// unsavedRecords returns the records of which another process may not have known.
func (a *account) unsavedRecords() (all []*record) {
	for _, r := range a.first {
		if a.isUnsaved(r) || a.diedUnsaved(r) {
			all = append(all, r)
		}
	}
	return all
}

// isLastOfTerm reports whether a record was delivered so shortly before the leader died that its
// successor repeats it. The contract: "with dedup_interval, an elector and no storage, a leader
// that dies repeats up to one interval, and repeats may be grouped differently, so that
// log.record.uid does not show all of them. A leader that stops in an orderly way repeats nothing."
// What not all pipelines had accepted is not delivered, though, and the position of an orderly end
// may not get through.
func (a *account) isLastOfTerm(r *record) bool {
	if !a.env.plan.alone() || a.env.plan.longestDedup() == 0 {
		return false
	}
	delays := func(f *Fault) bool { return f.Kind.isOfPipelines() || f.reachesPosition() }
	return slices.ContainsFunc(r.process.allTerms(), func(t term) bool {
		repeats := !t.orderly || a.env.disturbed(t.ended.Add(-lookBack), t.ended, delays)
		return !t.ended.IsZero() && repeats && !r.at.Before(t.began) && !r.at.After(t.ended) &&
			r.at.After(a.env.knownUntil(t.ended).Add(-a.env.plan.longestDedup()))
	})
}

// knownUntil returns up to when a leader whose term ends had surely delivered everything, and
// published it.
func (e *environment) knownUntil(ended time.Time) time.Time {
	known := ended.Add(-published)
	for again := true; again; {
		again = false
		for i := range e.plan.Faults {
			f := &e.plan.Faults[i]
			before := e.began.Add(f.From - published)
			reaches := f.covers(e.sinceStart(known.Add(-lookBack)), e.sinceStart(ended))
			if (f.reachesPosition() || f.Kind.isOfPipelines()) && reaches && before.Before(known) {
				known, again = before, true
			}
		}
	}
	return known
}

// isCombined reports whether a record has several states of an event, because its process had
// listed what another saw one by one. Nobody knows which of them the other had delivered, and the
// contract has a new leader emit "everything that the last leader is not known to have delivered".
func (a *account) isCombined(r *record) bool {
	if !a.env.plan.alone() || r.occurrences < 2 {
		return false
	}
	p := r.process
	p.mu.Lock()
	defer p.mu.Unlock()
	relisted := p.lists[p.configured().stream(a.truth.names[r.eventUID].Namespace)].relisted
	return !relisted.IsZero() && !r.at.Before(relisted)
}

// mayRepeat returns how many occurrences of an event may be counted again, in records with another
// log.record.uid.
func (a *account) mayRepeat(name types.NamespacedName) (n int64) {
	for _, r := range a.byEvent[name] {
		switch {
		case a.isUnsaved(r), a.isLastOfTerm(r):
			n += r.occurrences
		case a.isCombined(r):
			n += r.occurrences - 1
		}
	}
	return n
}

// isInOutbox reports whether a record that is delivered again may still have been in the outbox of
// the process that delivered it last at the given time: no write to storage removed it. A batch is
// in flight until then, and is delivered in requests, one after the other. The last write of an
// orderly end keeps what is not delivered.
func (a *account) isInOutbox(r *record, by *process, last time.Time) bool {
	until := r.at
	by.mu.Lock()
	if !by.stopped.IsZero() && by.stopped.Before(until) {
		until = by.stopped
	}
	by.mu.Unlock()
	return !by.savedBetween(last, until)
}

// checkFailovers checks that a new leader without storage repeats only what the last one delivered
// in its last moments.
func (a *account) checkFailovers() {
	if !a.env.plan.alone() {
		return
	}
	delays := func(f *Fault) bool { return f.reachesPosition() || f.Kind.isOfPipelines() }
	for _, r := range a.all {
		first := a.first[a.keyOf(r)]
		if first.process == r.process || a.env.disturbed(first.at.Add(-lookBack), r.at, delays) {
			continue
		}
		if len(a.truth.states[r.uid]) > 1 {
			continue // Without a new occurrence, but with a version above the leader's position.
		}
		for _, t := range first.process.allTerms() {
			known := t.ended.Add(-published - a.env.plan.longestDedup())
			if t.orderly {
				known = t.ended
			}
			isOfTerm := !first.at.Before(t.began) && !first.at.After(t.ended)
			if isOfTerm && !first.at.After(known) {
				a.violate(fewRepeated, a.truth.eventOf(r), "got %s again at %v from %s, and at %v "+
					"from %s, which led until %v", r.uid, a.env.sinceStart(r.at), r.process.name,
					a.env.sinceStart(first.at), first.process.name, a.env.sinceStart(t.ended))
			}
		}
	}
}

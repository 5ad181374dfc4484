// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// account is what one exporter got.
type account struct {
	env      *environment
	truth    *truth
	exporter *exporter
	all      []*record                          // in the order of delivery
	first    map[string]*record                 // by keyOf
	byEvent  map[types.NamespacedName][]*record // of first
}

func newAccount(e *environment, t *truth, x *exporter) *account {
	a := &account{
		env: e, truth: t, exporter: x,
		first: map[string]*record{}, byEvent: map[types.NamespacedName][]*record{},
	}
	observer := e.firstObserver()
	for _, r := range records(x.all()) {
		if e.plan.Mode == neither && r.process != observer {
			continue // Without storage and elector, every start is a first start.
		}
		a.all = append(a.all, r)
		if key := a.keyOf(r); a.first[key] == nil {
			a.first[key] = r
			name := t.names[r.eventUID]
			a.byEvent[name] = append(a.byEvent[name], r)
		}
	}
	return a
}

// keyOf returns the log.record.uid. If etcd was restored from a backup, a count may be reached
// again: this is another record.
func (a *account) keyOf(r *record) string {
	if a.truth.recurs[r.uid] {
		return fmt.Sprint(r.uid, "@", a.env.epochAt(r.at))
	}
	return r.uid
}

// violate notes that the exporter's records break a promise.
func (a *account) violate(promise *Promise, event, format string, args ...any) {
	a.env.violate(promise, event, "exporter %d %s", a.exporter.number, fmt.Sprintf(format, args...))
}

// checkRecords compares each record with the states that the API server held.
func (a *account) checkRecords() {
	for _, r := range a.all {
		event := a.truth.eventOf(r)
		a.env.story.add(r.at, r.process.name, event, "exporter %d got %s: %d new of %d, %s",
			a.exporter.number, r.uid, r.occurrences, r.count, r.resolution())
		a.checkRecord(r, event)
		first := a.first[a.keyOf(r)]
		if first != r && !sameContent(first, r) && !a.mayDiffer(first, r) {
			a.violate(sameBytes, event, "got %s twice, and not the same", r.uid)
		}
	}
}

// mayDiffer reports whether the process, or term, that repeats a record may not have known the
// first.
func (a *account) mayDiffer(first, r *record) bool {
	isOther := !sameTerm(first, r)
	return isOther && (a.isUnsaved(first) || a.env.haveTwoLed() || a.env.isUnnoticed()) ||
		a.env.beganUnsaved(r.at)
}

// sameTerm reports whether one process delivered both records, and with an elector in one term.
func sameTerm(a, b *record) bool {
	return a.process == b.process && a.process.termAt(a.at).Equal(b.process.termAt(b.at))
}

func (a *account) checkRecord(r *record, event string) {
	states := a.truth.states[r.uid]
	// With dedup_interval, a record may sum several objects of one name.
	tooMany := r.occurrences > r.count && a.env.plan.longestDedup() == 0
	switch {
	case len(states) == 0:
		a.violate(nothingInvented, event, "got %s, which the API server never held", r.uid)
	case r.occurrences < 1 || tooMany:
		a.violate(nothingInvented, event, "got a record of %d new occurrences of %d",
			r.occurrences, r.count)
	case !slices.ContainsFunc(a.env.configurationsOf(r), func(c *Configured) bool { return c.wants(states[0]) }):
		a.violate(nothingInvented, event, "got a record that the filters exclude")
	default:
		if problem := a.unfaithful(r, states); problem != "" {
			a.violate(faithful, event, "got %s, but %s", r.uid, problem)
		}
	}
}

// checkOrder checks the order of each event's first deliveries.
func (a *account) checkOrder() {
	for name, of := range a.byEvent {
		for i := 1; i < len(of); i++ {
			before, r := of[i-1], of[i]
			isRepeated := before.process != r.process &&
				(a.isLastOfTerm(before) || a.isUnsaved(before) || a.isCombined(before) || a.isInCombined(r, of[:i]) || a.env.overlap())
			if r.eventUID == before.eventUID && r.count < before.count && !isRepeated &&
				!a.wentBack(before, r) {
				a.violate(inOrder, name.String(), "got count %d after %d", r.count, before.count)
			}
		}
	}
}

// isInCombined reports whether another process had delivered the occurrences of a record in one that
// combines several states: the record is a repeat, however much came in between.
func (a *account) isInCombined(r *record, before []*record) bool {
	return slices.ContainsFunc(before, func(c *record) bool {
		return c.process != r.process && c.eventUID == r.eventUID &&
			c.count-c.occurrences < r.count && r.count <= c.count && a.isCombined(c)
	})
}

// checkRepeats checks that a process does not deliver a record of an earlier process again, if the
// earlier one had delivered other records since. What a pipeline accepts late is no such repeat, if
// its process had offered it before the other one delivered it: it was in flight all the time.
func (a *account) checkRepeats() {
	since, lastOf, newest := a.env.sinceStart, map[string]time.Time{}, map[*process]time.Time{}
	for _, r := range a.all {
		if first := a.first[a.keyOf(r)]; first.process == r.process {
			lastOf[a.keyOf(r)] = r.at
			if first == r {
				newest[r.process] = r.at
			}
		}
	}
	for _, r := range a.all {
		first := a.first[a.keyOf(r)]
		before, last := first.process, lastOf[a.keyOf(r)]
		if before == r.process || !newest[before].After(last) || !r.began.After(first.at) ||
			a.isUnsaved(first) || a.isInOutbox(r, before, last) || a.env.haveTwoLed() || a.env.isUnnoticed() ||
			a.env.disturbed(first.at.Add(-lookBack), r.at, (*Fault).mayLoseCheckpoints) {
			continue
		}
		a.violate(inFlightOnly, a.truth.eventOf(r),
			"got %s again at %v, after %s had delivered it at %v and more at %v",
			r.uid, since(r.at), before.name, since(last), since(newest[before]))
	}
}

// checkTotals compares the occurrences in the records of each event with what an ideal observer
// counts.
func (a *account) checkTotals() {
	requiredFrom, allowedFrom := a.env.baselines()
	required, allowed := a.env.ideal(requiredFrom, true), a.env.ideal(allowedFrom, false)
	forgotten, seen := required, required
	if a.env.isRestoredAtStart() { // It may remember what the list showed that did not end.
		seen = a.env.ideal(allowedFrom, true)
	}
	if r := a.env.lastRestore(); r != nil && r.isNew && (!a.env.plan.Storage || a.env.isUnnoticed()) {
		// The contract does not say whether a running process begins from scratch in another
		// cluster. With storage it does, but only where the versions show that it is another one.
		forgotten = a.env.leastInNewCluster(!a.env.plan.Storage, requiredFrom)
	}
	for name, want := range required {
		least := min(want.total, forgotten[name].totalOrZero(), seen[name].totalOrZero())
		if got := a.total(name); got < least && !a.env.isReplacedAtStart() {
			a.violate(nothingLost, name.String(), "has %d of the %d occurrences of %s", got, least, name)
		}
	}
	if !a.env.isDecided() {
		return
	}
	for name, of := range a.byEvent {
		most := max(required[name].totalOrZero(), allowed[name].totalOrZero())
		switch got := a.total(name); {
		case most == 0 && a.truth.states[of[0].uid] != nil:
			a.violate(nothingInvented, name.String(),
				"got a record of %s, which existed before the first start", name)
		case got > most+a.mayRepeat(name):
			a.violate(duplicates, name.String(), "has %d occurrences of %s in records with "+
				"different log.record.uid, but there were %d, and %d may be repeated",
				got, name, most, a.mayRepeat(name))
		}
	}
}

// wentBack reports whether etcd may have been restored from a backup between two records.
func (a *account) wentBack(before, r *record) bool { return a.env.mayHaveGoneBack(before.at, r.at) }

func (a *account) total(name types.NamespacedName) (sum int64) {
	for _, r := range a.byEvent[name] {
		sum += r.occurrences
	}
	return sum
}

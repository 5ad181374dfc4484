// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

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
			name := t.groups.groupOf(t.names[r.eventUID])
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
	}
}

// sameTerm reports whether one process delivered both records, and with an elector in one term.
func sameTerm(a, b *record) bool {
	return a.process == b.process && a.process.termAt(a.at).Equal(b.process.termAt(b.at))
}

func (a *account) checkRecord(r *record, event string) {
	states := a.truth.states[r.uid]
	// With dedup_interval, a record may sum several objects of one name.
	tooMany := r.occurrences > r.count && a.env.plan.Dedup == 0
	switch {
	case len(states) == 0:
		a.violate(nothingInvented, event, "got %s, which the API server never held", r.uid)
	case r.occurrences < 1 || tooMany:
		a.violate(nothingInvented, event, "got a record of %d new occurrences of %d",
			r.occurrences, r.count)
	case !a.env.plan.wants(states[0]):
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
			if r.eventUID == before.eventUID && r.count < before.count && !a.isRepeated(before, r, of[:i]) &&
				!a.wentBack(before, r) {
				a.violate(inOrder, name.String(), "got count %d after %d", r.count, before.count)
			}
		}
	}
}

// checkTotals compares the occurrences in the records of each event with what an ideal observer
// counts.
func (a *account) checkTotals() {
	if !a.env.isDecided() {
		return
	}
	requiredFrom, allowedFrom := a.env.baselines()
	ideal := func(from baseline, least bool) map[types.NamespacedName]*expected {
		return a.truth.groups.sum(a.env.ideal(from, least))
	}
	required, allowed := ideal(requiredFrom, true), ideal(allowedFrom, false)
	seen := required
	if a.env.isRestoredAtStart() { // It may remember what the list showed that did not end.
		seen = ideal(allowedFrom, true)
	}
	for name, want := range required {
		least := min(want.total, seen[name].totalOrZero())
		if got := a.total(name); got < least {
			a.violate(nothingLost, name.String(), "has %d of the %d occurrences of %s", got, least, name)
		}
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

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// account is what one exporter got.
type account struct {
	env      *environment
	truth    *truth
	exporter *exporter
	all      []*record            // in the order of delivery
	first    map[string]*record   // by log.record.uid
	byEvent  map[string][]*record // of first, by the event's namespace/name
}

func newAccount(e *environment, t *truth, x *exporter) *account {
	a := &account{env: e, truth: t, exporter: x, first: map[string]*record{}, byEvent: map[string][]*record{}}
	observer := e.firstObserver()
	for _, r := range records(x.all()) {
		if e.plan.Mode == (Mode{}) && r.process != observer {
			continue // Without storage and elector, every start is a first start.
		}
		a.all = append(a.all, r)
		if a.first[r.uid] == nil {
			a.first[r.uid] = r
			name := t.names[r.eventUID].String()
			a.byEvent[name] = append(a.byEvent[name], r)
		}
	}
	return a
}

// checkRecords compares each record with the states that the API server held.
func (a *account) checkRecords() {
	for _, r := range a.all {
		event := a.truth.names[r.eventUID].String()
		a.env.story.lines = append(a.env.story.lines, line{r.at, r.process.name, event, "exporter %d got %s: %d new of %d, %s", []any{a.exporter.number, r.uid, r.occurrences, r.count, text(r.log.Attributes(), "k8s.owner.resolution")}})
		states := a.truth.states[r.uid]
		switch {
		case len(states) == 0:
			a.env.violate(nothingInvented, event, "exporter %d got a record of %s, which the API server never held", a.exporter.number, r.uid)
		case r.occurrences < 1 || r.occurrences > r.count && a.env.plan.Dedup == 0: // A window may sum several objects of one name.
			a.env.violate(nothingInvented, event, "exporter %d got a record of %d new occurrences of %d", a.exporter.number, r.occurrences, r.count)
		case !a.env.plan.wants(states[0]):
			a.env.violate(nothingInvented, event, "exporter %d got a record that the filters exclude", a.exporter.number)
		default:
			again := a.env.plan.Storage && r.process != a.env.firstObserver()
			if problem := a.unfaithful(r, states); problem != "" && !(again && a.env.exempt("r")) {
				a.env.violate(faithful, event, "exporter %d got %s, but %s", a.exporter.number, r.uid, problem)
			}
		}
		if first := a.first[r.uid]; first != r && !sameContent(first, r) && !a.env.exempt("r") {
			a.env.violate(sameBytes, event, "exporter %d got %s twice, and not the same", a.exporter.number, r.uid)
		}
	}
	for event, of := range a.byEvent {
		for i := 1; i < len(of); i++ {
			if of[i].eventUID == of[i-1].eventUID && of[i].count < of[i-1].count {
				a.env.violate(inOrder, event, "exporter %d got count %d after %d", a.exporter.number, of[i].count, of[i-1].count)
			}
		}
	}
}

// checkRepeats checks that a process delivers nothing again that one before it had dealt with: it
// had delivered other records since.
func (a *account) checkRepeats() {
	lastOf, newest := map[string]time.Time{}, map[*process]time.Time{}
	for _, r := range a.all {
		if first := a.first[r.uid]; first.process == r.process {
			lastOf[r.uid] = r.at
			if first == r {
				newest[r.process] = r.at
			}
		}
	}
	for _, r := range a.all {
		first := a.first[r.uid]
		if first.process == r.process || !newest[first.process].After(lastOf[r.uid]) {
			continue
		}
		saved := !a.env.plan.disturbed(first.at.Sub(a.env.began)-lookBack, r.at.Sub(a.env.began), func(f *Fault) bool {
			return f.Kind == StorageUnwritable || f.Kind == StorageUnreadable || f.Kind == StorageSlow || f.Kind == StorageTorn || f.Kind == StorageAnswerLost
		})
		if saved {
			a.env.violate(inFlightOnly, a.truth.names[r.eventUID].String(), "exporter %d got %s again at %v, after %s had delivered it at %v and more at %v", a.exporter.number,
				r.uid, r.at.Sub(a.env.began), first.process.name, lastOf[r.uid].Sub(a.env.began), newest[first.process].Sub(a.env.began))
		}
	}
}

func sameContent(a, b *record) bool {
	return a.resource.Equal(b.resource) && a.log.Attributes().Equal(b.log.Attributes()) && a.log.Body().Equal(b.log.Body()) &&
		a.log.Timestamp() == b.log.Timestamp() && a.log.ObservedTimestamp() == b.log.ObservedTimestamp()
}

// checkTotals compares the occurrences in the records of each event with what an ideal observer counts.
func (a *account) checkTotals() {
	if a.env.plan.has(BackupRestored, ClusterNew) {
		a.checkAfterRestore() // What is new is then decided by lists whose versions only the receiver knows.
		return
	}
	requiredFrom, allowedFrom := a.env.baselines()
	required, allowed := a.env.ideal(requiredFrom), a.env.ideal(allowedFrom)
	for name, want := range required {
		if got := a.total(name.String()); got < want.total {
			a.env.violate(nothingLost, name.String(), "exporter %d has %d of the %d occurrences of %s", a.exporter.number, got, want.total, name)
		}
	}
	for name := range a.byEvent {
		var most int64
		for _, want := range []*expected{required[nameOf(name)], allowed[nameOf(name)]} {
			if want != nil {
				most = max(most, want.total)
			}
		}
		switch got := a.total(name); {
		case most == 0 && a.truth.states[a.byEvent[name][0].uid] != nil:
			a.env.violate(nothingInvented, name, "exporter %d got a record of %s, which existed before the first start", a.exporter.number, name)
		case got > most:
			a.env.violate(duplicates, name, "exporter %d has %d occurrences of %s in records with different log.record.uid, but there were %d", a.exporter.number, got, name, most)
		}
	}
}

// checkAfterRestore checks that what was written when the restored, or the new, cluster had been
// watched for a while is delivered: the newest state of each event.
func (a *account) checkAfterRestore() {
	newest := map[string]step{}
	for _, w := range a.env.server.History() {
		if restored := a.env.restored; w.Type != watch.Deleted && a.env.plan.wants(w.Event) && !restored.IsZero() && w.At.Sub(restored) > lookBack {
			name := w.Event.Namespace + "/" + w.Event.Name
			if s := (step{w.At, w.Event.UID, countOf(w.Event), 0}); newest[name].uid != s.uid || newest[name].count < s.count {
				newest[name] = s
			}
		}
	}
	for event, s := range newest {
		if !slices.ContainsFunc(a.byEvent[event], func(r *record) bool { return r.eventUID == s.uid && r.count >= s.count }) {
			a.env.violate(nothingLost, event, "exporter %d lacks count %d of %s, which was written after the restore", a.exporter.number, s.count, event)
		}
	}
}

func (a *account) total(event string) (sum int64) {
	for _, r := range a.byEvent[event] {
		sum += r.occurrences
	}
	return sum
}

func nameOf(event string) types.NamespacedName {
	namespace, name, _ := strings.Cut(event, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

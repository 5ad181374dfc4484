// SPDX-License-Identifier: Apache-2.0

// Package offer remembers which records were offered to the pipeline and are in no checkpoint yet. After a crash nobody
// knows whether the pipeline took them, so they are offered again: with the counts that they had, from which their
// log.record.uid is made, also where the event has moved on and its states in between can no longer be read.
package offer

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// Offers are records that may have been taken, by event. The zero value holds none. It is not safe for concurrent use.
type Offers struct {
	byEvent map[types.NamespacedName][]offered // by resource version
}

// offered is one record: the event's UID and count make its log.record.uid, the resource version gives its place among the
// states of all objects that had the event's name.
type offered struct {
	uid             types.UID
	count           int64
	resourceVersion uint64
}

func offeredAs(ev *corev1.Event) offered {
	return offered{ev.UID, event.Count(ev), event.ResourceVersion(ev)}
}

// Precedes says whether a state of an event comes before one that was offered. It says nothing then: its occurrences
// belong to the record that was offered.
func (o *Offers) Precedes(ev *corev1.Event) bool {
	next := o.byEvent[event.Name(ev)]
	return len(next) > 0 && event.ResourceVersion(ev) < next[0].resourceVersion
}

// Awaits says whether a state of the event was offered that is still to be seen.
func (o *Offers) Awaits(name types.NamespacedName) bool { return len(o.byEvent[name]) > 0 }

// Split appends an observation to those in to. Occurrences in it that were offered become observations of their own, with
// the count that they were offered with, marked Again; their offers are redeemed.
func (o *Offers) Split(to []observation.Observation, whole observation.Observation) []observation.Observation {
	name, count := event.Name(whole.Event), event.Count(whole.Event)
	told := count - whole.Occurrences // what came before this observation
	for _, next := range o.byEvent[name] {
		if next.count <= told || next.count > count || next.count == count && next.uid != whole.Event.UID {
			continue // Told before, not reached yet, or of an object whose count this one only happens to share.
		}
		part := whole
		part.Again = true
		part.Occurrences = next.count - told
		if next.count != count {
			part.Event = stateAt(whole.Event, next)
		}
		to = append(to, part)
		told = next.count
	}
	o.redeem(whole.Event)
	if told < count {
		whole.Occurrences = count - told
		to = append(to, whole)
	}
	return to
}

// redeem forgets the offers of an event up to a state of it.
func (o *Offers) redeem(ev *corev1.Event) {
	name, reached := event.Name(ev), event.ResourceVersion(ev)
	left := slices.DeleteFunc(o.byEvent[name], func(of offered) bool { return of.resourceVersion <= reached })
	if len(left) == 0 {
		delete(o.byEvent, name)
		return
	}
	o.byEvent[name] = left
}

// stateAt is the event as it was when it was offered, as far as that is known: by its UID, resource version and count.
func stateAt(now *corev1.Event, then offered) *corev1.Event {
	ev := *now
	ev.UID = then.uid
	ev.ResourceVersion = strconv.FormatUint(then.resourceVersion, 10)
	ev.Count = int32(then.count)
	if ev.Series != nil {
		series := *ev.Series
		series.Count = ev.Count
		ev.Series = &series
	}
	return &ev
}

// Redeem says whether exactly this state of an event was offered, and forgets the offer.
func (o *Offers) Redeem(ev *corev1.Event) bool {
	if !slices.Contains(o.byEvent[event.Name(ev)], offeredAs(ev)) {
		return false
	}
	o.redeem(ev)
	return true
}

// Withdraw forgets the offers of an event that was deleted: they do not come any more.
func (o *Offers) Withdraw(deleted *corev1.Event) { o.redeem(deleted) }

// WithdrawAll forgets the offers of a namespace's events, or with an empty namespace all: what exists of them was listed.
func (o *Offers) WithdrawAll(namespace string) {
	for name := range o.byEvent {
		if namespace == "" || name.Namespace == namespace {
			delete(o.byEvent, name)
		}
	}
}

// Len is how many records are still to be offered again.
func (o *Offers) Len() (records int) {
	for _, of := range o.byEvent {
		records += len(of)
	}
	return records
}

func (o *Offers) add(name types.NamespacedName, of offered) {
	if o.byEvent == nil {
		o.byEvent = map[types.NamespacedName][]offered{}
	}
	at, found := slices.BinarySearchFunc(o.byEvent[name], of, func(a, b offered) int {
		return cmp.Compare(a.resourceVersion, b.resourceVersion)
	})
	if !found {
		o.byEvent[name] = slices.Insert(o.byEvent[name], at, of)
	}
}

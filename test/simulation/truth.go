// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// truth is what the API server held.
type truth struct {
	env      *environment
	names    map[types.UID]types.NamespacedName
	states   map[string][]*corev1.Event // by log.record.uid
	groups   *groups
	recurs   map[string]bool // log.record.uids that were written again after a restore
	subjects map[subjectKey]*object
}

func newTruth(e *environment) *truth {
	t := &truth{
		env: e, names: map[types.UID]types.NamespacedName{},
		states: map[string][]*corev1.Event{}, subjects: map[subjectKey]*object{},
		recurs: map[string]bool{}, groups: newGroups(e),
	}
	epochs := map[string]int{}
	for _, w := range e.server.History() {
		if w.Type != watch.Deleted {
			t.names[w.Event.UID] = nameOf(w.Event)
			uid := recordUID(w.Event)
			t.states[uid] = append(t.states[uid], w.Event)
			if epoch, known := epochs[uid]; known && epoch != w.Epoch {
				t.recurs[uid] = true
			}
			epochs[uid] = w.Epoch
		}
	}
	t.addRestored()
	for _, a := range e.apps {
		for _, o := range slices.Concat(a.objects, a.existing()) {
			t.subjects[subjectOf(o)] = o
		}
	}
	return t
}

// addRestored adds the events that were deleted after a backup, and that the restore brought back.
func (t *truth) addRestored() {
	t.env.mu.Lock()
	defer t.env.mu.Unlock()
	for epoch, r := range t.env.restores {
		for _, w := range t.env.server.History() {
			if w.Epoch != epoch || w.Version <= r.version || w.Type != watch.Deleted {
				continue
			}
			for _, ev := range r.events {
				if nameOf(ev) == nameOf(w.Event) {
					t.recurs[recordUID(ev)] = true
				}
			}
		}
	}
}

// eventOf returns the namespace/name of the event that a record is about.
func (t *truth) eventOf(r *record) string { return t.names[r.eventUID].String() }

var verbs = map[watch.EventType]string{
	watch.Added: "is created", watch.Modified: "is changed", watch.Deleted: "is deleted",
}

// addToStory adds what was written to the story.
func (t *truth) addToStory() {
	for _, w := range t.env.server.History() {
		ev, name := w.Event, nameOf(w.Event).String()
		t.env.story.add(w.At, "API server", name, "event %s %s: version %d, uid %s, count %d, %s",
			name, verbs[w.Type], w.Version, ev.UID, countOf(ev), ev.Reason)
	}
}

// subjectKey names an involved object. It leaves out a Node's UID: kubelets write the name there.
type subjectKey struct{ kind, namespace, name, uid string }

func subjectOf(o *object) subjectKey {
	if o.kind == "Node" {
		return subjectKey{kind: o.kind, name: o.name}
	}
	return subjectKey{
		attributeOf(o.kind), attributeOf(o.namespace), attributeOf(o.name),
		attributeOf(string(o.uid)),
	}
}

func subjectOfRecord(r *record) subjectKey {
	key := subjectKey{
		text(r.resource, "k8s.object.kind"), text(r.resource, "k8s.namespace.name"),
		text(r.resource, "k8s.object.name"), text(r.resource, "k8s.object.uid"),
	}
	if key.kind == "Node" {
		key.uid = ""
	}
	return key
}

// subject returns what a record is about; nil: nothing that exists. An object without a UID has the
// key of a reference to another kind of its name.
func (t *truth) subject(r *record) *object {
	o := t.subjects[subjectOfRecord(r)]
	if states := t.states[r.uid]; o != nil && len(states) > 0 {
		version := states[0].InvolvedObject.APIVersion
		if !slices.Contains([]string{"", o.apiVersion, versionsGone[o.kind]}, version) {
			return nil
		}
	}
	return o
}

func nameOf(ev *corev1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name}
}

// newest is the time of an event's newest occurrence.
func newest(ev *corev1.Event) time.Time {
	var last time.Time
	if ev.Series != nil {
		last = ev.Series.LastObservedTime.Time
	}
	return firstFit(last, ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time,
		ev.CreationTimestamp.Time)
}

// oldest is the time of an event's first occurrence. It may be created later.
func oldest(ev *corev1.Event) time.Time {
	created := ev.CreationTimestamp.Time
	if last := newest(ev); last.Before(created) {
		created = last
	}
	return firstFit(ev.FirstTimestamp.Time, ev.EventTime.Time, created)
}

// firstFit returns the first time that OTLP can hold. The contract: "The receiver skips times
// outside 1970 to 2554".
func firstFit(times ...time.Time) time.Time {
	for _, t := range times {
		if t.Unix() > 0 && t.Year() <= 2554 {
			return t
		}
	}
	return time.Time{}
}

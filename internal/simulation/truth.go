// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
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
	subjects map[subjectKey]*object
}

func newTruth(e *environment) *truth {
	t := &truth{env: e, names: map[types.UID]types.NamespacedName{}, states: map[string][]*corev1.Event{}, subjects: map[subjectKey]*object{}}
	for _, w := range e.server.History() {
		if w.Type != watch.Deleted {
			t.names[w.Event.UID] = types.NamespacedName{Namespace: w.Event.Namespace, Name: w.Event.Name}
			uid := recordUID(w.Event)
			t.states[uid] = append(t.states[uid], w.Event)
		}
	}
	for _, a := range e.apps {
		for _, o := range slices.Concat(a.objects, a.existing()) {
			t.subjects[subjectOf(o)] = o
		}
	}
	return t
}

// tell adds what was written to the story.
func (t *truth) tell() {
	for _, w := range t.env.server.History() {
		verb, ev := map[watch.EventType]string{watch.Added: "is created", watch.Modified: "is changed", watch.Deleted: "is deleted"}[w.Type], w.Event
		name := ev.Namespace + "/" + ev.Name
		t.env.story.mu.Lock()
		t.env.story.lines = append(t.env.story.lines, line{w.At, "API server", name, "event %s %s: version %d, uid %s, count %d, %s", []any{name, verb, w.Version, ev.UID, countOf(ev), ev.Reason}})
		t.env.story.mu.Unlock()
	}
}

// subjectKey names an involved object. A Node's UID says nothing: kubelets write the name there.
type subjectKey struct{ kind, namespace, name, uid string }

func subjectOf(o *object) subjectKey {
	if o.kind == "Node" {
		return subjectKey{kind: o.kind, name: o.name}
	}
	return subjectKey{o.kind, o.namespace, o.name, string(cmp.Or(o.manifest, o.uid))}
}

func subjectOfRecord(r *record) subjectKey {
	key := subjectKey{text(r.resource, "k8s.object.kind"), text(r.resource, "k8s.namespace.name"), text(r.resource, "k8s.object.name"), text(r.resource, "k8s.object.uid")}
	if key.kind == "Node" {
		key.uid = ""
	}
	return key
}

// newest is the time of an event's newest occurrence.
func newest(ev *corev1.Event) time.Time {
	switch {
	case ev.Series != nil && !ev.Series.LastObservedTime.IsZero():
		return ev.Series.LastObservedTime.Time
	case !ev.LastTimestamp.IsZero():
		return ev.LastTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	default:
		return ev.CreationTimestamp.Time
	}
}

// oldest is the time of an event's first occurrence.
func oldest(ev *corev1.Event) time.Time {
	switch {
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	default:
		return ev.CreationTimestamp.Time
	}
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"strings"
)

// Model is what is known of rollouts. The zero value knows nothing.
type Model struct {
	// Workloads are by cluster, namespace and UID: a cluster-scoped object can own objects in several namespaces.
	Workloads map[string]*Workload `json:"w,omitempty"`
	bytes     int                  // that the model takes, about; only Join counts them
}

// Workload is an object without an owner, such as a Deployment, and what it rolled out in a namespace.
type Workload struct {
	Cluster   string `json:"c,omitempty"`
	Namespace string `json:"s,omitempty"`
	UID       string `json:"u"`
	Kind      string `json:"k,omitempty"`
	Name      string `json:"n,omitempty"`
	// Activations are the times at which a revision was scaled up from zero, by UIDs of records.
	Activations map[string]Activation `json:"a,omitempty"`
	// Names has the pods that the workload itself created and deleted. Such records name no revision.
	Names     Names                `json:"p,omitzero"`
	Revisions map[string]*Revision `json:"r,omitempty"`
	// lacks reports that records lack attributes, so that it is not known which pods the revisions
	// have. It is not saved: a restart can have repaired this.
	lacks bool
}

// Activation is a scale-up of a revision from zero.
type Activation struct {
	Revision   string `json:"r"`
	Controller string `json:"o,omitempty"` // of the revision, which the model can forget first
	At         int64  `json:"t"`
	Repeated   bool   `json:"x,omitempty"` // the Event has occurred before
	Replaces   bool   `json:"p,omitempty"` // another revision, which is now forgotten, had pods then
}

// Names has times at which pods were created and deleted, by their names. A StatefulSet uses a name
// several times.
type Names struct {
	Created map[string][]int64 `json:"c,omitempty"`
	Deleted map[string][]int64 `json:"d,omitempty"`
	bytes   int
}

// Last returns the latest time; 0: there is none.
func (n *Names) Last() (last int64) {
	for _, names := range []map[string][]int64{n.Created, n.Deleted} {
		for _, times := range names {
			last = max(last, times[len(times)-1])
		}
	}
	return last
}

// Revision is one version of a workload's pods, such as a ReplicaSet.
type Revision struct {
	// Controller is the object that makes the revision, such as a Deployment, in the form of kubectl. A
	// custom resource can own several.
	Controller string `json:"o,omitempty"`
	// Attributes become the resource of the spans.
	Attributes map[string]string `json:"a,omitempty"`
	// Events are those of the objects above the pods, by UID.
	Events map[string]Event `json:"e,omitempty"`
	// Steps are the times at which the revision was scaled.
	Steps map[Step]bool   `json:"z,omitempty"`
	Names Names           `json:"n,omitzero"`
	Pods  map[string]*Pod `json:"p,omitempty"` // by UID; Join replaces a Pod that changes
	// Links are the trace contexts of records.
	Links map[Link]bool `json:"l,omitempty"`
	// Sent has the keys of the parts that were delivered.
	Sent map[string]bool `json:"s,omitempty"`
	// First is the time of the first record of a controller or a scheduler that shows that the revision
	// started; 0: there is none. The clock of a node can be hours behind theirs, or ahead.
	First int64 `json:"f,omitempty"`
	// News is when the process last had news of the revision.
	News int64 `json:"w,omitempty"`
	// Closed reports that all parts that are known were delivered.
	Closed      bool `json:"x,omitempty"`
	bytes, pods int  // of all, and of the pods
}

// Link is the trace context of a record, in hexadecimal form.
type Link struct{ Trace, Span string }

// MarshalText makes it possible that a link is a key in JSON.
func (l Link) MarshalText() ([]byte, error) { return []byte(l.Trace + "-" + l.Span), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Link) UnmarshalText(text []byte) error {
	l.Trace, l.Span, _ = strings.Cut(string(text), "-")
	return nil
}

// Pod has the events about one pod.
type Pod struct {
	Name   string           `json:"n,omitempty"`
	Node   string           `json:"h,omitempty"`
	Placed int64            `json:"s,omitempty"` // the first time of a scheduler; 0: there is none
	Seen   int64            `json:"k,omitempty"` // the first time of the kubelet, before the end; likewise
	News   int64            `json:"w,omitempty"` // when the process last had news of the pod
	Events map[string]Event `json:"e,omitempty"` // by UID
}

// Event is what is known of one Event: kubelets repeat an Event, and drop repeats.
type Event struct {
	Reason    string `json:"r"`
	Kind      string `json:"k,omitempty"` // what the model tells apart by the message; empty: the reason
	Container string `json:"c,omitempty"`
	Init      bool   `json:"i,omitempty"`
	Warning   bool   `json:"w,omitempty"`
	First     int64  `json:"f"` // nanoseconds since 1970
	Last      int64  `json:"l"`
	Count     int64  `json:"n"`
	Message   string `json:"m,omitempty"` // only if a span needs it
}

// kind returns what the phases depend on.
func (e *Event) kind() string { return cmp.Or(e.Kind, e.Reason) }

// note notes the time of an Event.
func (p *Pod) note(e Event) {
	switch e.kind() {
	case ReasonScheduled, reasonUnplaced:
		p.Placed = earliest(p.Placed, e.First)
	case kindStopping:
	default:
		p.Seen = earliest(p.Seen, e.First)
	}
}

// earliest returns the earlier time; 0 is no time.
func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// began returns when the pod began; 0: nothing shows that it did. Only if neither its owner nor a
// scheduler has a record of it, the clock of its node decides.
func (r *Revision) began(p *Pod) int64 {
	at := p.Placed
	if created := r.Names.Created[p.Name]; len(created) > 0 {
		at = earliest(at, created[0])
	}
	return cmp.Or(at, p.Seen)
}

// start returns when the revision began; 0: nothing shows that it did.
func (r *Revision) start() int64 {
	at := r.First
	for _, p := range r.Pods {
		at = earliest(at, r.began(p))
	}
	return at
}

// Key identifies a revision in a Model.
type Key struct{ Workload, Revision string }

// Revision returns the revision with this key, and its workload; nil: there is none.
func (m *Model) Revision(key Key) (*Workload, *Revision) {
	w := m.Workloads[key.Workload]
	if w == nil {
		return nil, nil
	}
	return w, w.Revisions[key.Revision]
}

// ReceivedAt notes when the process got what the model says. Join then notes it for what was news.
func (m *Model) ReceivedAt(now int64) {
	for _, w := range m.Workloads {
		for _, r := range w.Revisions {
			r.News = now
			for _, p := range r.Pods {
				p.News = now
			}
		}
	}
}

// Clone returns a copy that later calls of Join do not change.
func (w *Workload) Clone() *Workload {
	c := *w
	c.Activations, c.Names = maps.Clone(w.Activations), w.Names.clone()
	c.Revisions = make(map[string]*Revision, len(w.Revisions))
	for name, r := range w.Revisions {
		copied := *r
		copied.Attributes, copied.Events, copied.Steps = maps.Clone(r.Attributes), maps.Clone(r.Events), maps.Clone(r.Steps)
		copied.Names, copied.Pods = r.Names.clone(), maps.Clone(r.Pods)
		copied.Links, copied.Sent = maps.Clone(r.Links), maps.Clone(r.Sent)
		c.Revisions[name] = &copied
	}
	return &c
}

func (n Names) clone() Names {
	n.Created, n.Deleted = maps.Clone(n.Created), maps.Clone(n.Deleted)
	return n
}

// Mark returns a model that has only what was delivered of a revision.
func (w *Workload) Mark(key Key) *Model {
	known := w.Revisions[key.Revision]
	marked := *w
	marked.Activations, marked.Names = nil, Names{}
	marked.Revisions = map[string]*Revision{key.Revision: {Sent: maps.Clone(known.Sent), Closed: known.Closed}}
	return &Model{Workloads: map[string]*Workload{key.Workload: &marked}}
}

// MarkSent notes that a part was delivered.
func (r *Revision) MarkSent(part string) { put(&r.Sent, part, true) }

func (m *Model) workload(key string) *Workload {
	w := m.Workloads[key]
	if w == nil {
		w = &Workload{}
		put(&m.Workloads, key, w)
	}
	return w
}

func (w *Workload) revision(name string) *Revision {
	r := w.Revisions[name]
	if r == nil {
		r = &Revision{}
		put(&w.Revisions, name, r)
	}
	return r
}

func (r *Revision) pod(uid string) *Pod {
	p := r.Pods[uid]
	if p == nil {
		p = &Pod{}
		put(&r.Pods, uid, p)
	}
	return p
}

// put puts a value into a map that can be nil.
func put[K comparable, V any](in *map[K]V, key K, value V) {
	if *in == nil {
		*in = map[K]V{}
	}
	(*in)[key] = value
}

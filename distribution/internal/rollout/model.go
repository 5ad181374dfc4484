// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
)

// Model is what is known of rollouts. The zero value knows nothing.
type Model struct {
	// Workloads are by cluster and UID.
	Workloads map[string]*Workload `json:"w,omitempty"`
}

// Workload is an object without an owner, such as a Deployment, and what it rolled out.
type Workload struct {
	Cluster string `json:"c,omitempty"`
	UID     string `json:"u"`
	Kind    string `json:"k,omitempty"`
	Name    string `json:"n,omitempty"`
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
}

// Last returns the latest time; 0: there is none.
func (n *Names) Last() (last int64) {
	for _, names := range []map[string][]int64{n.Created, n.Deleted} {
		for _, times := range names {
			last = max(last, slices.Max(times))
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
	Pods  map[string]*Pod `json:"p,omitempty"` // by UID
	// Links are the trace contexts of records.
	Links map[Link]bool `json:"l,omitempty"`
	// Sent has a hash of each part that was delivered, so that a part that has not changed is not
	// delivered again.
	Sent map[string]uint64 `json:"s,omitempty"`
	// First is the time of the first record of a controller or a scheduler that shows that the revision
	// started; 0: there is none. The clock of a node can be hours behind theirs, or ahead.
	First int64 `json:"f,omitempty"`
	// News is when the process last had news of the revision.
	News int64 `json:"w,omitempty"`
	// Closed reports that all parts that were known were delivered, or did not need to be.
	Closed bool `json:"x,omitempty"`
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

// HasStarts reports whether there is a start of a container.
func (r *Revision) HasStarts() bool {
	for _, p := range r.Pods {
		for _, e := range p.Events {
			if e.kind() == reasonStarted {
				return true
			}
		}
	}
	return false
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

// Forget removes a revision, and its workload if it was the last one.
func (m *Model) Forget(key Key) {
	w, r := m.Revision(key)
	if r == nil {
		return
	}
	if delete(w.Revisions, key.Revision); len(w.Revisions) == 0 {
		delete(m.Workloads, key.Workload)
		return
	}
	w.forgetNames(r)
	for uid, a := range w.Activations {
		a.Replaces = a.Replaces || r.hadPodsAt(key.Revision, a)
		w.Activations[uid] = a
	}
}

// forgetNames removes the names of a revision's pods that no other revision uses: those of a StatefulSet
// do.
func (w *Workload) forgetNames(r *Revision) {
	if len(w.Names.Created)+len(w.Names.Deleted) == 0 {
		return
	}
	used := map[string]bool{}
	for _, other := range w.Revisions {
		for _, pod := range other.Pods {
			used[pod.Name] = true
		}
	}
	for _, pod := range r.Pods {
		if !used[pod.Name] {
			delete(w.Names.Created, pod.Name)
			delete(w.Names.Deleted, pod.Name)
		}
	}
}

// Mark returns a model that has only what was delivered of a revision.
func (w *Workload) Mark(key Key, sent map[string]uint64) *Model {
	r := &Revision{Sent: sent, Closed: w.Revisions[key.Revision].Closed}
	of := &Workload{Cluster: w.Cluster, UID: w.UID, Revisions: map[string]*Revision{key.Revision: r}}
	return &Model{Workloads: map[string]*Workload{key.Workload: of}}
}

func (m *Model) workload(key string) *Workload {
	if m.Workloads == nil {
		m.Workloads = map[string]*Workload{}
	}
	w := m.Workloads[key]
	if w == nil {
		w = &Workload{}
		m.Workloads[key] = w
	}
	return w
}

func (w *Workload) revision(name string) *Revision {
	if w.Revisions == nil {
		w.Revisions = map[string]*Revision{}
	}
	r := w.Revisions[name]
	if r == nil {
		r = &Revision{}
		w.Revisions[name] = r
	}
	return r
}

func (r *Revision) pod(uid string) *Pod {
	if r.Pods == nil {
		r.Pods = map[string]*Pod{}
	}
	p := r.Pods[uid]
	if p == nil {
		p = &Pod{}
		r.Pods[uid] = p
	}
	return p
}

// kind returns what the phases depend on.
func (e *Event) kind() string { return cmp.Or(e.Kind, e.Reason) }

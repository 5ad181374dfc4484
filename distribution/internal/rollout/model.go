// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// Model holds what is known of rollouts. The zero value knows nothing.
type Model struct {
	// Workloads are by cluster, namespace and UID: a cluster-scoped object can own objects in
	// several namespaces.
	Workloads map[string]*Workload `json:"w,omitempty"`
	// Lacks has the attributes that records did not have, so that they say nothing. Read sets it.
	Lacks []string `json:"-"`
	bytes int      // that the model takes, about
}

// Workload is an object without an owner, such as a Deployment, and what it rolled out in a
// namespace.
type Workload struct {
	Cluster   string `json:"c,omitempty"`
	Namespace string `json:"s,omitempty"`
	UID       string `json:"u"`
	Kind      string `json:"k,omitempty"`
	Name      string `json:"n,omitempty"`
	// Activations are the times at which a revision was scaled up from zero, by UIDs of records.
	Activations map[string]Activation `json:"a,omitempty"`
	// Templates are what records say about the templates of new revisions, by UIDs of records.
	Templates map[string]Template `json:"d,omitempty"`
	// Names has the pods that the workload itself created and deleted. Such records name no
	// revision.
	Names     Names                `json:"p,omitzero"`
	Revisions map[string]*Revision `json:"r,omitempty"`
}

// Activation is a scale-up of a revision from zero.
type Activation struct {
	Revision   string `json:"r"`
	Controller string `json:"o,omitempty"` // of the revision, which the model can forget first
	At         int64  `json:"t"`
	Repeated   bool   `json:"x,omitempty"` // the revision is older
}

// Template is what the pod template of a new revision changed, and who deployed it.
type Template struct {
	Revision   string   `json:"r,omitempty"` // empty: the record of a StatefulSet or DaemonSet does not name it
	Controller string   `json:"o,omitempty"` // what the record is about
	At         int64    `json:"t"`
	Changes    []string `json:"c,omitempty"`
	Tool       string   `json:"d,omitempty"` // the object of the tool that deployed it; empty: not known
	ChangedBy  string   `json:"b,omitempty"` // the manager that changed it last; empty: not known
}

// IsOnlyRestart reports whether a rollout changed nothing but annotations: it is the consequence of
// something else. False: it changed more, or nothing is known.
func (t *Template) IsOnlyRestart() bool {
	isOther := func(change string) bool {
		return !strings.HasPrefix(change, "restart by hand") && !strings.HasPrefix(change, "annotation ")
	}
	return len(t.Changes) > 0 && !slices.ContainsFunc(t.Changes, isOther)
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
	// Controller is the object that makes the revision, such as a Deployment, in the form of
	// kubectl. A custom resource can own several.
	Controller string `json:"o,omitempty"`
	// Attributes become the resource of the spans.
	Attributes map[string]string `json:"a,omitempty"`
	// Events are those of the objects above the pods, by UID.
	Events map[string]Event `json:"e,omitempty"`
	// Steps are the times at which the revision was scaled.
	Steps map[Step]bool   `json:"z,omitempty"`
	Names Names           `json:"n,omitzero"`
	Pods  map[string]*Pod `json:"p,omitempty"` // by UID; Join replaces a Pod that changes
	// Sent has the keys of the parts that were delivered.
	Sent map[string]bool `json:"s,omitempty"`
	// First is the time of the first record that shows that the revision started; 0: there is none.
	First int64 `json:"f,omitempty"`
	// News is the time at which the process last had news of the revision.
	News int64 `json:"w,omitempty"`
	// Closed reports that all parts that are known were delivered.
	Closed      bool `json:"x,omitempty"`
	bytes, pods int  // of all, and of the pods
}

// Pod has the events about one pod.
type Pod struct {
	Name   string           `json:"n,omitempty"`
	Node   string           `json:"h,omitempty"`
	First  int64            `json:"f,omitempty"` // the time of the first record that does not show its end; 0: there is none
	News   int64            `json:"w,omitempty"` // when the process last had news of the pod
	Events map[string]Event `json:"e,omitempty"` // by UID
}

// Event holds what is known of one Event: kubelets repeat an Event, and drop repeats.
type Event struct {
	Reason    string `json:"r"`
	Kind      string `json:"k,omitempty"` // what the model tells apart by the message; empty: the reason
	Container string `json:"c,omitempty"`
	Init      bool   `json:"i,omitempty"`
	Warning   bool   `json:"w,omitempty"`
	Harmless  bool   `json:"h,omitempty"` // it is a warning, and no problem
	First     int64  `json:"f"`           // nanoseconds since 1970
	Last      int64  `json:"l"`
	Count     int64  `json:"n"`
	Message   string `json:"m,omitempty"` // only if a span needs it
	// Ended is the newest end of the container before the Event; nil: not known.
	Ended *record.Ended `json:"d,omitempty"`
}

// kind returns what the phases depend on.
func (e *Event) kind() string { return cmp.Or(e.Kind, e.Reason) }

// earliest returns the earlier time; 0 is no time.
func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// began returns when the pod began; 0: nothing shows that it did.
func (r *Revision) began(p *Pod) int64 {
	if created := r.Names.Created[p.Name]; len(created) > 0 {
		return earliest(p.First, created[0])
	}
	return p.First
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
	c.Activations, c.Templates, c.Names = maps.Clone(w.Activations), maps.Clone(w.Templates), w.Names.clone()
	c.Revisions = make(map[string]*Revision, len(w.Revisions))
	for name, r := range w.Revisions {
		copied := *r
		copied.Attributes, copied.Events, copied.Steps = maps.Clone(r.Attributes), maps.Clone(r.Events), maps.Clone(r.Steps)
		copied.Names, copied.Pods = r.Names.clone(), maps.Clone(r.Pods)
		copied.Sent = maps.Clone(r.Sent)
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
	marked.Activations, marked.Templates, marked.Names = nil, nil, Names{}
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

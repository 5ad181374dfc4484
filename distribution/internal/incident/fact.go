// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// maxMoments bounds the moments of a fact.
const maxMoments = 32

// Object is a Kubernetes object with the name that kubectl uses.
type Object = record.Object

// Key identifies a workload by its name: one that was deleted and created again is the same. The
// namespace of an object without one is empty.
type Key struct {
	Cluster, Namespace string
	Top                Object
}

// ID returns an id for addresses.
func (k Key) ID() string {
	return idOf("w", k.Cluster, k.Namespace, k.Top.Kind, k.Top.Group, k.Top.Name)
}

// keyJSON are the parts of a Key, and its id.
type keyJSON struct {
	ID        string `json:"id"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Name      string `json:"name"`
}

// MarshalJSON writes the parts of the key, and its id.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyJSON{k.ID(), k.Cluster, k.Namespace, k.Top.Kind, k.Top.Group, k.Top.Name})
}

// UnmarshalJSON reads the parts of the key.
func (k *Key) UnmarshalJSON(text []byte) error {
	var parts keyJSON
	err := json.Unmarshal(text, &parts)
	*k = Key{parts.Cluster, parts.Namespace, Object{Kind: parts.Kind, Group: parts.Group, Name: parts.Name}}
	return err
}

// Fact is one Event in its newest state.
type Fact struct {
	record.Record // the newest one, without the attributes of its resource
	Key           Key
	Node          string
	Last          time.Time
	// Resource has the attributes of the resource that say more of the workload than its Key; nil: nobody
	// asked for them.
	Resource map[string]string
	Moments  []Moment // when records said that it occurred, the oldest first

	before   *forgotten      // of its workload, if it was stored; nil: another fact has it, or there is nothing
	subject  string          // the pod's UID, or the name of another object
	symptom  *symptom        // of the problem that it shows; nil: it shows none
	change   *row            // the change that it shows; nil: it shows none
	text     string          // of the change
	names    []name          // what it names, if a tool that deploys has written it
	scaling  *record.Scaling // nil: it shows none
	deleted  string          // the name of the pod that an owner deleted
	succeeds bool            // it shows that the object has done its work
}

// Moment is a time at which an Event occurred, so many times since the moment before.
type Moment struct {
	At     time.Time
	N      int64
	Until  time.Time // it is several moments, of which this is the last one; zero: it is one
	record string    // log.record.uid, if a rollout can have its id
	// details are what the receiver read then; nil: nothing. Those of other moments are about other runs,
	// or other revisions.
	details *record.Details
}

// FactOf returns the fact that a record shows. None is in the future: the clock of a producer can be
// ahead. It may be called concurrently.
func FactOf(r *record.Record, now time.Time) *Fact {
	f := &Fact{Record: *r, Node: r.NodeOfPod(), Key: Key{Cluster: r.Cluster, Namespace: r.Namespace, Top: r.Chain[0]}, Last: earlier(r.At, now)}
	f.Attributes, f.Details = pcommon.Map{}, nil
	f.First, f.Moments = earlier(r.First, now), []Moment{{At: f.Last, N: r.N, details: r.Details}}
	if f.Reason == rollout.ReasonScaled {
		f.Moments[0].record = f.ID
	}
	f.judge()
	return f
}

// judge computes what the Event shows.
func (f *Fact) judge() {
	f.subject = cmp.Or(f.Pod, f.Object().String())
	f.symptom, f.change = symptomOf(f), rowOf(f)
	f.succeeds = !f.IsWarning() && f.Pod == "" && isSuccess(f.Reason+" "+f.Message)
	switch scaling, ok := record.ScalingOf(f.Message); {
	case f.Reason == "SuccessfulDelete":
		_, f.deleted = record.NamedIn(f.Message)
	case ok && f.Reason == rollout.ReasonScaled:
		f.scaling = &scaling
	}
	if f.change != nil {
		f.text = f.change.describe(f)
	}
	if f.change != nil && f.change.shows == deployed {
		f.names = namesIn(f)
	}
}

// join adds a newer record of the same Event. One with a count that is known repeats a record.
func (f *Fact) join(newer *Fact) (isNew bool) {
	if newer.Count <= f.Count {
		return false
	}
	first, moments := f.First, slices.Concat(f.Moments, newer.Moments)
	if newer.First.Before(first) {
		first = newer.First
	}
	last := f.Last
	*f = *newer
	f.Attributes = pcommon.Map{}
	f.First, f.Moments = first, moments
	if last.After(f.Last) {
		f.Last = last
	}
	if len(f.Moments) > maxMoments {
		f.Moments = f.withoutOne()
	}
	return true
}

// end returns when the last occurrence of a moment was.
func (m *Moment) end() time.Time { return later(m.At, m.Until) }

// withoutOne returns the moments with one less. Those of the last hour stay apart as well as they can. What is older is
// one moment, if the problem went on all the time: an Event that is repeated for a day shows no pause that was none.
func (f *Fact) withoutOne() []Moment {
	all := f.Moments
	if all[len(all)-1].At.Sub(all[1].At) < Horizon {
		return withoutNearest(all)
	}
	if all[1].At.Sub(all[0].end()) > f.quiet() {
		return all[1:]
	}
	return join(all, 1)
}

// quiet returns after which time without a repeat the problem that an Event shows is over.
func (f *Fact) quiet() time.Duration {
	switch {
	case f.symptom != nil:
		return f.symptom.quiet
	case f.Reason == reasonStarted:
		return restarted.quiet
	}
	return 0
}

// withoutNearest joins the two moments with the shortest time between them, so that no pause
// appears that was none.
func withoutNearest(moments []Moment) []Moment {
	nearest := 1
	for i := 2; i < len(moments); i++ {
		if moments[i].At.Sub(moments[i-1].At) < moments[nearest].At.Sub(moments[nearest-1].At) {
			nearest = i
		}
	}
	return join(moments, nearest)
}

// join joins a moment with the one before it.
func join(moments []Moment, i int) []Moment {
	into, from := &moments[i-1], &moments[i]
	into.N, into.Until = into.N+from.N, from.end()
	into.details = cmp.Or(from.details, into.details)
	return slices.Delete(moments, i, i+1)
}

// success matches what controllers write when they have done their work, and failure what is none.
var success, failure = says(`\bsucce|Succe`), says(`(?i)\b(?:not|never|no )|n't\b`)

func isSuccess(text string) bool {
	return success.MatchString(text) && !failure.MatchString(text)
}

// shows reports whether the Event shows a problem of a class.
func (f *Fact) shows(class string) bool { return f.symptom != nil && f.symptom.class == class }

// isAboutNode reports whether the object is a node.
func (f *Fact) isAboutNode() bool { return f.Object().GroupKind() == "node" && !f.IsForeign() }

// isGone reports whether the receiver did not find the pod: a receiver that starts lists Events about pods that were
// deleted before.
func (f *Fact) isGone() bool {
	return f.Pod != "" && f.Resolution == "not_found" && len(f.Chain) == 1
}

// rolloutObject returns the object below the workload that rolls out by itself, of a custom
// resource that owns several; zero: there is none.
func (f *Fact) rolloutObject() (part Object) {
	if len(f.Chain) > 2 && slices.Contains([]string{"deployment.apps", "statefulset.apps", "daemonset.apps"}, f.Chain[1].GroupKind()) {
		return f.Chain[1]
	}
	return part
}

// revision returns the revision that the Event is about; empty: none.
func (f *Fact) revision() string {
	if f.scaling != nil {
		return f.scaling.Revision
	}
	return f.Revision
}

// size is about how many bytes the fact takes in memory. Facts of one record share its subject.
func (f *Fact) size() int {
	size := 800 + 72*len(f.Moments) + 64*len(f.names)
	for _, m := range f.Moments {
		size += m.details.Size()
	}
	for _, text := range []string{
		f.Message, f.Event, f.ID, f.Workload.UID, f.Revision, f.Controller, f.Type, f.Reason, f.Kind, f.Reporter, f.Related, f.Container, f.Node,
		f.Key.Cluster, f.Key.Namespace, f.Pod, f.Manifest, f.text,
	} {
		size += len(text)
	}
	for _, o := range f.Chain {
		size += 48 + len(o.Name) + len(o.Group) + len(o.Kind)
	}
	return size
}

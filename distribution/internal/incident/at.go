// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// At is what a Query chooses of a Model, as of a time. It is valid until the Model changes.
type At struct {
	*cut
	query Query
	from  time.Time
}

// At returns what the Query chooses, as it was known at the end of its time. Questions about the
// same time share what they need to compute. After the context has ended, it is empty.
func (m *Model) At(ctx context.Context, now time.Time, q Query) *At {
	from, until := q.Window(now)
	v := m.newest
	if v == nil || !v.now.Equal(until) {
		v = m.cutAt(ctx, until)
	}
	if ctx.Err() != nil {
		return &At{&cut{model: m, now: until}, q, from}
	}
	m.newest = v
	return &At{v, q, from}
}

// cut is a Model without what happened after a time.
type cut struct {
	model     *Model
	now       time.Time
	workloads map[Key]*workloadAt
	in        map[space][]*Change // the oldest first
	naming    map[name][]*Change  // whose records name an object, the oldest first
	byTool    map[name][]*Change  // of an object of a tool that deploys, the oldest first
	rescaled  map[space][]*Fact   // what autoscalers set
	podNamed  map[string]*Fact    // a fact about each pod, by its UID
	onsets    map[string][]onset  // of all problems by cluster, but those of nodes, the oldest first
	problems  []*Problem          // those that are one of several workloads as one; nil: not computed
	// explainedToJoin counts the problems of each namespace that were explained to see whether they are one with others.
	explainedToJoin map[space]int
}

// workloadAt is what is known of a workload at the time of a cut.
type workloadAt struct {
	*cut
	key   Key
	id    string
	facts []*Fact // the oldest first
	*states
	before   forgotten
	times    map[sign][]time.Time   // see timesOf
	scaled   []scaled               // the oldest first
	older    int                    // scalings that were not looked at
	deleted  map[string]bool        // the names of pods that their controller deleted
	events   map[string][]*Fact     // see eventsOf
	limited  map[string][]time.Time // see limitedAt
	uids     map[string]time.Time   // when the objects with its name appeared
	appeared []time.Time            // those times, in order
	problems []*Problem
	changes  []*Change
}

// states are what facts show of rollouts and their pods.
type states struct {
	pods     map[string]*rollout.PodState
	rolled   []rollout.Rollout
	replicas map[string]int
	nodes    []string // of its pods
	unread   int      // older repeats of Events, which were not looked at
}

func (s *states) size() int { return 180*len(s.pods) + 300*len(s.rolled) }

// maxScalings bounds the scalings of a workload, and maxRevisions its revisions, the newest ones.
const (
	maxScalings  = 500
	maxRevisions = 200
)

// sign is something that shows that a problem is over, or why a container ended: the reason of an
// Event that is no warning, or one of those below.
type sign struct{ subject, container, reason string }

const (
	anyContainer = "*"
	// What several Events show.
	signAvailable = "(available)" // of a revision
	signZero      = "(zero)"      // of a revision
	signEvicted   = "(evicted)"
	signSuccess   = "(success)"
)

// timesOf returns when a sign was seen, in order. Only problems and states ask for it, and most workloads have none.
func (w *workloadAt) timesOf(s sign) []time.Time {
	if w.times != nil {
		return w.times[s]
	}
	w.times = make(map[sign][]time.Time, 2*len(w.facts))
	for _, f := range w.facts {
		w.addSigns(f)
	}
	for _, r := range w.rolled {
		if available := (sign{r.Revision, anyContainer, signAvailable}); r.Available != 0 {
			w.times[available] = append(w.times[available], timeAt(r.Available))
		}
	}
	for _, times := range w.times {
		slices.SortFunc(times, time.Time.Compare)
	}
	return w.times[s]
}

// eventsOf returns the Events about a pod, the oldest first. Few pods need them.
func (w *workloadAt) eventsOf(pod string) []*Fact {
	if w.events == nil {
		w.events = map[string][]*Fact{}
		for _, f := range w.facts {
			if f.Pod != "" {
				w.events[f.Pod] = append(w.events[f.Pod], f)
			}
		}
	}
	return w.events[pod]
}

// addSigns notes when a fact occurred, by what it shows. The subject of what another object of the
// workload shows is empty, if it has happened for the first time.
func (w *workloadAt) addSigns(f *Fact) {
	add := func(subject, container, reason string) {
		s := sign{subject, container, reason}
		times := w.times[s]
		for _, m := range f.Moments {
			times = append(times, m.At)
		}
		w.times[s] = times
	}
	subject := f.subject
	if !f.IsWarning() {
		add(subject, f.Container, f.Reason)
		add(subject, anyContainer, f.Reason)
		if f.Count == 1 && slices.Contains(workloadSigns, f.Reason) {
			add("", anyContainer, f.Reason)
		}
		if f.succeeds {
			add(subject, anyContainer, signSuccess)
		}
	}
	if f.change != nil && f.change.shows == podEvicted {
		add(subject, anyContainer, signEvicted)
	}
	if f.Pod == "" && f.scaling != nil && f.scaling.To == 0 {
		add(f.scaling.Revision, anyContainer, signZero)
	}
}

func (m *Model) cutAt(ctx context.Context, now time.Time) *cut {
	v := &cut{
		model: m, now: now, workloads: map[Key]*workloadAt{}, in: map[space][]*Change{}, rescaled: map[space][]*Fact{},
		podNamed: map[string]*Fact{}, naming: map[name][]*Change{}, byTool: map[name][]*Change{}, onsets: map[string][]onset{},
		explainedToJoin: map[space]int{},
	}
	for key, w := range m.workloads {
		if ctx.Err() != nil {
			return v
		}
		if known := v.workloadAt(w); len(known.facts) > 0 {
			v.workloads[key] = known
		}
	}
	for _, w := range v.workloads {
		if ctx.Err() != nil {
			return v
		}
		w.changes = v.changesOf(w)
		v.addChanges(w)
		w.problems = w.findProblems()
		for _, p := range w.problems {
			if p.Class != classNode {
				v.onsets[w.key.Cluster] = append(v.onsets[w.key.Cluster], onset{p.Onset, p.Key})
			}
		}
	}
	for in := range v.in {
		slices.SortFunc(v.in[in], compareChanges)
	}
	for _, of := range []map[name][]*Change{v.naming, v.byTool} {
		for n := range of {
			slices.SortFunc(of[n], compareChanges)
		}
	}
	for _, onsets := range v.onsets {
		slices.SortFunc(onsets, func(a, b onset) int { return a.at.Compare(b.at) })
	}
	return v
}

// addChanges adds the changes of a workload to those that can matter to others.
func (v *cut) addChanges(w *workloadAt) {
	in := space{w.key.Cluster, w.key.Namespace}
	for _, c := range w.changes {
		if w.key.Namespace != "" && ofOthers[c.what] {
			v.in[in] = append(v.in[in], c)
		}
		if c.what == deployed {
			tool := name{cluster: w.key.Cluster, name: c.Object}
			v.byTool[tool] = append(v.byTool[tool], c)
		}
		for _, n := range c.names {
			v.naming[n] = append(v.naming[n], c)
		}
	}
}

func (v *cut) workloadAt(w *workload) *workloadAt {
	k := &workloadAt{
		cut: v, key: w.key, id: w.id, facts: make([]*Fact, 0, len(w.facts)), before: w.before, deleted: map[string]bool{},
		limited: map[string][]time.Time{}, uids: map[string]time.Time{},
	}
	for _, f := range w.facts {
		if f = f.until(v.now); f != nil {
			k.facts = append(k.facts, f)
		}
	}
	// In a fixed order: what ends a problem is the first Event that shows it.
	slices.SortFunc(k.facts, func(a, b *Fact) int { return -newestFirst(a, b) })
	k.states = v.statesOf(w, k.facts)
	for _, f := range k.facts {
		k.index(f)
	}
	k.appeared = slices.SortedFunc(maps.Values(k.uids), time.Time.Compare)
	slices.SortFunc(k.scaled, func(a, b scaled) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.fact.ID, b.fact.ID))
	})
	k.older = max(0, len(k.scaled)-maxScalings)
	k.scaled = k.scaled[k.older:]
	return k
}

// statesOf returns what facts show of rollouts and their pods. Some time after the last of them, this
// does not change any more.
func (v *cut) statesOf(w *workload, facts []*Fact) *states {
	isSettled := v.now.Sub(w.last) >= soon
	if isSettled && w.settled != nil {
		return w.settled
	}
	s := &states{pods: map[string]*rollout.PodState{}, replicas: map[string]int{}}
	nodes := map[string]bool{}
	read, unread := rolloutsIn(facts)
	s.unread = unread
	for _, key := range slices.Sorted(maps.Keys(read.Workloads)) {
		r := read.Workloads[key]
		rolled, pods := r.States(rollout.Options{Now: v.now})
		for _, pod := range pods {
			s.pods[pod.UID] = &pod
			nodes[pod.Node] = true
		}
		s.rolled = append(s.rolled, rolled...)
		maps.Copy(s.replicas, r.Replicas())
	}
	s.nodes = slices.Sorted(maps.Keys(nodes))
	slices.SortStableFunc(s.rolled, func(a, b rollout.Rollout) int { return cmp.Compare(a.Start, b.Start) })
	if isSettled {
		v.model.keep(w, s)
	}
	return s
}

// rolloutsIn returns the rollouts that facts show, and how many repeats it left out. Of what has
// happened to a pod, the first and the last time count.
func rolloutsIn(facts []*Fact) (read *rollout.Model, unread int) {
	var records []*record.Record
	repeats, revisions := maxScalings, map[string]bool{}
	for _, f := range slices.Backward(facts) {
		revision := f.revision()
		if revisions[revision] = true; len(revisions) > maxRevisions {
			delete(revisions, revision)
			unread++
			continue
		}
		moments, count := f.Moments, f.Count
		if f.Pod != "" || repeats < len(moments) {
			moments = moments[len(moments)-1:]
		}
		repeats -= len(moments) - 1
		if f.Pod == "" {
			unread += len(f.Moments) - len(moments)
		}
		for _, m := range slices.Backward(moments) {
			r := f.Record
			r.At, r.Count, r.ID, r.Attributes, r.Details = m.At, count, cmp.Or(m.record, f.ID), noAttributes, m.details
			records, count = append(records, &r), max(1, count-m.N)
		}
	}
	read, _ = rollout.Read(records, &rollout.Model{})
	return read, unread
}

// noAttributes: no span is written with those of the resource.
var noAttributes = pcommon.NewMap()

// until returns the fact as it was known at a time; nil: it was not known.
func (f *Fact) until(t time.Time) *Fact {
	if !f.Last.After(t) {
		return f
	}
	if f.First.After(t) {
		return nil
	}
	known := *f
	known.Moments = nil
	for _, m := range f.Moments {
		if m.At.After(t) {
			known.Count -= m.N
			continue
		}
		if m.Until.After(t) {
			m.Until = t
		}
		known.Moments = append(known.Moments, m)
	}
	if len(known.Moments) == 0 {
		known.Moments = []Moment{{At: f.First, N: 1}}
	}
	known.Last, known.Count = known.Moments[len(known.Moments)-1].end(), max(1, known.Count)
	return &known
}

// index notes what answers ask for often.
func (w *workloadAt) index(f *Fact) {
	if at, ok := w.uids[f.Workload.UID]; f.Workload.UID != "" && (!ok || f.First.Before(at)) {
		w.uids[f.Workload.UID] = f.First
	}
	if f.Pod != "" {
		if f.Resolution == "complete" { // Else anybody can have written the UID.
			w.podNamed[f.Pod] = f
		}
		return
	}
	switch {
	case f.scaling != nil:
		for _, m := range f.Moments { // An Event that repeats is a scaling each time.
			w.scaled = append(w.scaled, scaled{*f.scaling, f, m.At})
		}
	case f.Reason == "SuccessfulRescale":
		in := space{w.key.Cluster, w.key.Namespace}
		w.rescaled[in] = append(w.rescaled[in], f)
	case f.deleted != "":
		w.deleted[f.deleted] = true
	}
}

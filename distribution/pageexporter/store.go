// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The bounds of the store. What exceeds them still counts in the chart and the totals of the whole
// page.
const (
	maxWorkloads = 200
	maxObjects   = 100 // of a workload
	// maxCounts is the number of counts, by time and traits, of a workload's objects. If there are
	// more, the store drops the quietest objects.
	maxCounts    = 4_000
	maxEvents    = 100    // of a workload
	maxTraits    = 1_000  // in a slot of time of the whole page
	maxOwnTraits = 32     // in a slot of time of a workload or object
	maxDelivered = 20_000 // recent records, to ignore repeats
	maxFormer    = 5_000  // workloads that were dropped, of which the store knows what changed
	maxTypes     = 20     // of events; Kubernetes has two
)

// store keeps what the page shows: the last hour. It may be used concurrently.
type store struct {
	now     func() time.Time
	standby atomic.Bool // the receiver does not emit

	// Readers hold reading before mu, so that records wait for one reader at most, however many requests
	// there are.
	reading sync.Mutex

	mu        sync.Mutex
	overall   timeline
	workloads map[workloadKey]*workload
	// former are workloads that were dropped, with what changed only: their first warning can still come.
	former    *lru.Cache[workloadKey, *workload]
	appeared  int // workloads so far
	types     map[string]struct{}
	delivered *lru.Cache[string, struct{}]
	forgotten time.Time // the time up to which forget has run
	watchers  map[chan struct{}]struct{}
	rollouts  rollout.Model
	elsewhere []notice // changes of nodes and autoscalers, in the order of time
}

// workloadKey identifies a workload by name: one that was deleted and created again is the same.
type workloadKey struct {
	cluster, namespace string
	top                object
}

// workload has everything that happened to it and to the objects that it owns.
type workload struct {
	workloadKey
	id          string
	clusterName string
	order       int // workloads are numbered as they appear
	last        time.Time
	timeline    timeline
	objects     map[string]*member // by their paths
	events      []*eventState      // one for each UID; the newest is the last

	uid, rollouts string   // of the object that was created last; see entry
	lives         []life   // of objects of this name
	warned        []record // the first records of warnings, in the order in which these began
	changed       []record // those that can show a change, in the order of time
}

// member is an object that belongs to a workload, or the workload itself.
type member struct {
	chain      []object
	path       string // the chain as one string
	resolution string
	last       time.Time
	timeline   timeline
	placed     []placement // of a pod, in the order of time
	// said are the events that count instead of the timeline, if the filter looks for a text.
	said statesOf
}

// eventState is an event in its newest state.
type eventState struct {
	entry
	taken   int64 // occurrences that the page has counted
	traits  unique.Handle[traits]
	moments moments
}

func newStore(now func() time.Time) *store {
	delivered, _ := lru.New[string, struct{}](maxDelivered) // fails for a size of 0 only
	former, _ := lru.New[workloadKey, *workload](maxFormer)
	return &store{
		now: now, workloads: map[workloadKey]*workload{}, former: former, types: map[string]struct{}{}, delivered: delivered,
		watchers: map[chan struct{}]struct{}{},
	}
}

// add puts entries into the store. It ignores entries that are older than the horizon, and repeats:
// if another exporter rejects a batch, the receiver delivers it to all exporters again.
func (s *store) add(entries []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	now := s.now()
	for i := range entries {
		e := &entries[i]
		e.written = e.at
		if e.at.After(now) {
			e.at = now // the producer's clock is ahead
		}
		if e.at.Before(now.Add(-horizon)) || s.isDelivered(e.id) {
			continue
		}
		s.boundType(e)
		s.overall.add(e, maxTraits)
		w := s.workloadOf(e)
		w.add(e)
		w.keep(e, s.elsewhere)
		if e.of[traitReason] == rollout.ReasonScaled {
			w.changed = withRevisions(w.changed, s.rolloutsOf(w)) // Other rollouts can displace this one.
		}
		s.note(e)
	}
	// Only now: makeRoom needs the rollouts of the workloads that it drops.
	s.rollouts.Evict(maxRollouts<<16, func(rollout.Key, *rollout.Revision) {})
	for watcher := range s.watchers {
		select {
		case watcher <- struct{}{}:
		default: // The watcher has not read the last change yet.
		}
	}
}

// otherType is the type of events whose types exceed the bound. It counts as a warning.
const otherType = "(other)"

// boundType bounds the number of different types: anybody may write any type into an event.
func (s *store) boundType(e *entry) {
	name := e.of[traitType]
	if _, known := s.types[name]; !known && len(s.types) >= maxTypes {
		e.of[traitType] = otherType
		return
	}
	s.types[name] = struct{}{}
}

func (s *store) isDelivered(id string) bool {
	if id == "" {
		return false
	}
	delivered, _ := s.delivered.ContainsOrAdd(id, struct{}{})
	return delivered
}

func (s *store) workloadOf(e *entry) *workload {
	key := workloadKey{e.cluster, e.of[traitNamespace], e.chain[0]}
	w, ok := s.workloads[key]
	if !ok {
		s.makeRoom()
		s.appeared++
		w = s.newWorkload(e, key)
		w.order = s.appeared
		s.workloads[key] = w
	}
	return w
}

// newWorkload returns a workload with what is known of it from before it was dropped.
func (s *store) newWorkload(e *entry, key workloadKey) *workload {
	w := &workload{workloadKey: key, id: idOf(key), objects: map[string]*member{}}
	if before, ok := s.former.Peek(key); ok {
		w.uid, w.rollouts, w.lives, w.changed = before.uid, before.rollouts, before.lives, before.changed
		s.former.Remove(key)
	}
	w.live(e)
	for _, known := range s.rolloutsOf(w) {
		for name, r := range known.Revisions {
			r.Closed = rollout.IsJob(name) // The others are shown again.
		}
	}
	return w
}

// makeRoom drops the workload that has been quiet for the longest time, of the crowd if there is
// one: first one with neither a warning nor a change, then one with a change, and one with a
// warning last. Except of a crowd, it keeps the records of what changed: the first warning can
// still come.
func (s *store) makeRoom() {
	if len(s.workloads) < maxWorkloads {
		return
	}
	all := slices.Collect(maps.Values(s.workloads))
	crowd := crowdIn(all, maxWorkloads)
	quietest := slices.MinFunc(all, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.rank(crowd), b.rank(crowd)), cmp.Compare(a.matters(), b.matters()), a.last.Compare(b.last))
	})
	delete(s.workloads, quietest.workloadKey)
	if of := s.remains(quietest); len(of.changed) > 0 && quietest.group() != crowd {
		s.former.Add(quietest.workloadKey, of)
	}
}

// idOf returns the id of a workload in the page's address.
func idOf(key workloadKey) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Join([]string{key.cluster, key.namespace, key.top.String()}, "\n")))
	return "w" + strconv.FormatUint(hash.Sum64(), 36)
}

func (w *workload) add(e *entry) {
	w.clusterName = cmp.Or(e.clusterName, w.clusterName)
	w.last = later(w.last, e.at)
	w.timeline.add(e, maxOwnTraits)
	m := w.memberOf(e)
	m.last, m.resolution = later(m.last, e.at), e.resolution
	m.timeline.add(e, maxOwnTraits)
	m.place(e)
	w.note(&eventState{entry: *e, taken: e.occurrences, traits: unique.Make(e.of), moments: moments{{e.at, e.occurrences}}})
}

// note replaces the last state of an event. A state that is older than the last one only adds its
// occurrences.
func (w *workload) note(e *eventState) {
	known := slices.IndexFunc(w.events, func(other *eventState) bool { return e.event != "" && other.event == e.event })
	if known >= 0 {
		last := w.events[known]
		w.events = slices.Delete(w.events, known, known+1)
		e.taken += last.taken
		e.moments = last.moments.with(e.moments[0])
		if last.at.After(e.at) {
			e.entry, e.traits = last.entry, last.traits
		}
	}
	// The position is behind events of the same time.
	place, _ := slices.BinarySearchFunc(w.events, e, func(other, e *eventState) int { return cmp.Or(other.at.Compare(e.at), -1) })
	w.events = slices.Insert(w.events, place, e)
	w.events = slices.Delete(w.events, 0, max(0, len(w.events)-maxEvents))
}

func (w *workload) memberOf(e *entry) *member {
	path := pathOf(e.chain)
	m, ok := w.objects[path]
	if !ok {
		if len(w.objects) >= maxObjects {
			w.dropQuietest()
		}
		m = &member{chain: e.chain, path: path}
		w.objects[path] = m
	}
	return m
}

func (w *workload) dropQuietest() (quietest *member) {
	quietest = slices.MinFunc(slices.Collect(maps.Values(w.objects)), func(a, b *member) int {
		return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.path, b.path))
	})
	delete(w.objects, quietest.path)
	return quietest
}

func pathOf(chain []object) string {
	parts := make([]string, len(chain))
	for i, o := range chain {
		parts[i] = o.String()
	}
	return strings.Join(parts, " ")
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forget drops what is older than the horizon, once for each slot of time.
func (s *store) forget() {
	now := s.now()
	before := now.Truncate(slotLength).Add(-horizon)
	if !before.After(s.forgotten) {
		return
	}
	s.forgotten = before
	s.overall.forget(before)
	s.forgetChanges(before)
	for key, w := range s.workloads {
		if w.forget(before); len(w.timeline.slots) == 0 {
			delete(s.workloads, key)
		}
	}
	for _, key := range s.former.Keys() {
		w, _ := s.former.Peek(key)
		if w.forgetChanges(before); len(w.changed) == 0 {
			s.former.Remove(key)
		}
	}
}

// forget drops what is older than before. It also drops the quietest objects while there are too
// many counts.
func (w *workload) forget(before time.Time) {
	w.timeline.forget(before)
	counts := 0
	maps.DeleteFunc(w.objects, func(_ string, m *member) bool {
		m.timeline.forget(before)
		counts += m.timeline.size()
		return len(m.timeline.slots) == 0
	})
	for counts > maxCounts && len(w.objects) > 1 {
		counts -= w.dropQuietest().timeline.size()
	}
	w.events = slices.DeleteFunc(w.events, func(e *eventState) bool {
		e.moments = e.moments.since(before)
		return e.at.Before(before)
	})
	w.forgetChanges(before)
}

// read locks the store for a reader, and forgets what is old. The reader calls unlock at its end.
func (s *store) read() (now time.Time, unlock func()) {
	s.reading.Lock()
	s.mu.Lock()
	s.forget()
	return s.now(), func() {
		s.mu.Unlock()
		s.reading.Unlock()
	}
}

// watch returns a channel that receives a value when the store has changed, until stop is called.
func (s *store) watch() (changed <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[watcher] = struct{}{}
	return watcher, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, watcher)
	}
}

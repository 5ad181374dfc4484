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
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// The bounds of what is kept. What goes beyond is still counted in the chart and the totals of the whole page.
const (
	maxWorkloads = 200
	maxObjects   = 100    // of a workload
	maxCounts    = 4_000  // of a workload's objects, by time and traits; beyond it, the quietest objects go
	maxEvents    = 100    // of a workload
	maxTraits    = 1_000  // in a slot of time of the whole page
	maxOwnTraits = 32     // in a slot of time of a workload or object
	maxDelivered = 20_000 // records that would be recognised if they were delivered again
)

// board is what the page shows: the last hour. It may be used concurrently.
type board struct {
	now func() time.Time

	mu        sync.Mutex
	overall   timeline
	workloads map[workloadKey]*workload
	appeared  int // workloads so far
	delivered *lru.Cache[string, struct{}]
	forgotten time.Time // up to when
	watchers  map[chan struct{}]struct{}
}

// workloadKey tells workloads apart as people do: one that was deleted and made again is the same.
type workloadKey struct {
	cluster, namespace string
	top                object
}

// workload is one with what happened to all that it owns.
type workload struct {
	workloadKey
	id       string
	order    int // of its appearance
	last     time.Time
	timeline timeline
	objects  map[string]*member // by their paths
	events   []*entry           // by their UID; the newest is the last
}

// member is an object that belongs to a workload, or the workload itself.
type member struct {
	chain      []object
	path       string // the chain as one
	resolution string
	last       time.Time
	timeline   timeline
}

// entry is an event in its newest state.
type entry struct {
	sighting
	taken int64 // occurrences that the page knows of
}

func newBoard(now func() time.Time) *board {
	delivered, _ := lru.New[string, struct{}](maxDelivered) // fails for a size of 0 only
	return &board{now: now, workloads: map[workloadKey]*workload{}, delivered: delivered, watchers: map[chan struct{}]struct{}{}}
}

// add puts sightings on the board. Older ones than the horizon are passed over, as are those that are there already: a
// batch that another exporter refuses is delivered to all of them again.
func (b *board) add(sightings []sighting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	now := b.now()
	for i := range sightings {
		s := &sightings[i]
		if s.at.After(now) {
			s.at = now // by a clock that is ahead
		}
		if s.at.Before(now.Add(-horizon)) || b.isDelivered(s.id) {
			continue
		}
		b.overall.add(s, maxTraits)
		b.workloadOf(s).add(s)
	}
	for watcher := range b.watchers {
		select {
		case watcher <- struct{}{}:
		default: // It has not looked since it was told last.
		}
	}
}

func (b *board) isDelivered(id string) bool {
	if id == "" {
		return false
	}
	delivered, _ := b.delivered.ContainsOrAdd(id, struct{}{})
	return delivered
}

func (b *board) workloadOf(s *sighting) *workload {
	key := workloadKey{s.cluster, s.of[traitNamespace], s.chain[0]}
	w, ok := b.workloads[key]
	if !ok {
		b.makeRoom()
		b.appeared++
		w = &workload{workloadKey: key, id: idOf(key), order: b.appeared, objects: map[string]*member{}}
		b.workloads[key] = w
	}
	return w
}

// makeRoom drops the workload that has been quiet for the longest time.
func (b *board) makeRoom() {
	if len(b.workloads) < maxWorkloads {
		return
	}
	quietest := slices.MinFunc(slices.Collect(maps.Values(b.workloads)), func(a, b *workload) int { return a.last.Compare(b.last) })
	delete(b.workloads, quietest.workloadKey)
}

// idOf is a workload's name in the page's address.
func idOf(key workloadKey) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Join([]string{key.cluster, key.namespace, key.top.String()}, "\n")))
	return "w" + strconv.FormatUint(hash.Sum64(), 36)
}

func (w *workload) add(s *sighting) {
	w.last = later(w.last, s.at)
	w.timeline.add(s, maxOwnTraits)
	m := w.memberOf(s)
	m.last, m.resolution = later(m.last, s.at), s.resolution
	m.timeline.add(s, maxOwnTraits)
	w.note(&entry{sighting: *s, taken: s.occurrences})
}

// note puts an event among the others, in the place of its last state. What was observed before that is counted only.
func (w *workload) note(e *entry) {
	known := slices.IndexFunc(w.events, func(other *entry) bool { return e.event != "" && other.event == e.event })
	if known >= 0 {
		last := w.events[known]
		w.events = slices.Delete(w.events, known, known+1)
		e.taken += last.taken
		if last.at.After(e.at) {
			e.sighting = last.sighting
		}
	}
	// Behind those of the same time.
	place, _ := slices.BinarySearchFunc(w.events, e, func(other, e *entry) int { return cmp.Or(other.at.Compare(e.at), -1) })
	w.events = slices.Insert(w.events, place, e)
	w.events = slices.Delete(w.events, 0, max(0, len(w.events)-maxEvents))
}

func (w *workload) memberOf(s *sighting) *member {
	path := pathOf(s.chain)
	m, ok := w.objects[path]
	if !ok {
		if len(w.objects) >= maxObjects {
			w.dropQuietest()
		}
		m = &member{chain: s.chain, path: path}
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
func (b *board) forget() {
	now := b.now()
	before := now.Truncate(slotLength).Add(-horizon)
	if !before.After(b.forgotten) {
		return
	}
	b.forgotten = before
	b.overall.forget(before)
	for key, w := range b.workloads {
		if w.forget(before); len(w.timeline.slots) == 0 {
			delete(b.workloads, key)
		}
	}
}

// forget drops what is older, and the quietest objects while all of them have too many counts.
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
	w.events = slices.DeleteFunc(w.events, func(e *entry) bool { return e.at.Before(before) })
}

// watch returns a channel that tells when the board has changed, until stop is called.
func (b *board) watch() (changed <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[watcher] = struct{}{}
	return watcher, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, watcher)
	}
}

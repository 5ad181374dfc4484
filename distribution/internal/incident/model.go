// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/evict"
)

// Horizon is the time for which a Model keeps records.
const Horizon = time.Hour

// The bounds of a Model. If it is full, it drops what belongs to the namespace that takes most, so
// that one namespace cannot displace what smaller ones have.
const (
	maxBytes = 32 << 20
	maxFacts = 10_000 // of a workload: a DaemonSet has some for each node
)

// Model holds what is known of the last hour.
type Model struct {
	created   time.Time
	since     time.Time // from then on records are complete
	forgotten time.Time
	workloads map[Key]*workload
	drops     map[space]*Dropped
	bytes     int
	newest    *cut // what the last question was about; nil: there are records since
}

// workload has the facts of a workload and of what it owns.
type workload struct {
	key   Key
	id    string // of the key
	facts map[string]*Fact
	last  time.Time
	bytes int
	// resource has the attributes of the newest record's resource that AddRecords got; nil: it got none.
	resource map[string]string
	// settled is what the facts show of rollouts, if time does not change it any more; nil: it is to
	// be computed.
	settled *states
	before  forgotten
}

// forgotten is what facts of a workload showed that are forgotten, while newer ones are known.
type forgotten struct {
	begun  map[string]bool // the revisions that began before what is known of them
	scaled time.Time       // the last time that one was scaled; zero: none was
}

// join adds what was stored.
func (b *forgotten) join(stored *forgotten) {
	if b.begun == nil {
		b.begun = map[string]bool{}
	}
	maps.Copy(b.begun, stored.begun)
	b.scaled = later(b.scaled, stored.scaled)
}

// firstList is the time after the start in which older records show that the receiver reads what
// exists. Later, an old time shows nothing: anybody may write one. Within this minute, nothing tells the two apart.
const firstList = time.Minute

// space is a namespace of a cluster.
type space struct{ cluster, namespace string }

// NewModel returns a Model that knows nothing of the time before now.
func NewModel(now time.Time) *Model {
	return &Model{created: now, since: now, workloads: map[Key]*workload{}, drops: map[space]*Dropped{}}
}

// Begin notes that records are complete from a time on. NewModel assumes its own. What the first list has shown a moment
// before stays.
func (m *Model) Begin(at time.Time) {
	if isListed := m.since.Before(m.created) && at.Sub(m.created) < firstList; !isListed {
		m.since = at
	}
	m.created, m.newest = at, nil
}

// Since returns from when on records are complete.
func (m *Model) Since(now time.Time) time.Time { return later(m.since, now.Add(-Horizon)) }

// Size returns about how many bytes the Model takes.
func (m *Model) Size() int { return m.bytes }

// Dropped returns what there was no room for in a namespace; empty: in all of them.
func (m *Model) Dropped(namespace string) (all Dropped) {
	for in, d := range m.drops {
		if namespace == "" || namespace == in.namespace || namespace == ClusterScoped && in.namespace == "" {
			all.Workloads += d.Workloads
			all.Facts += d.Facts
		}
	}
	return all
}

// AddFacts adds facts, and takes them over. Those that it has already, and those that are older than the Horizon,
// change nothing.
func (m *Model) AddFacts(facts []*Fact, now time.Time) {
	m.forget(now)
	m.newest = nil
	for _, f := range facts {
		if !f.Last.Before(now.Add(-Horizon)) {
			m.add(f)
			if now.Sub(m.created) < firstList {
				m.since = earlier(m.since, f.Last)
			}
		}
	}
	m.bound()
}

// replay adds facts that were stored, at the time at which they came: what is too old now shows which revisions began
// before.
func (m *Model) replay(facts []*Fact, now time.Time) {
	since, last := m.since, time.Time{}
	for _, f := range facts {
		last = later(last, f.Last)
		if !f.Last.Before(now.Add(-Horizon)) {
			since = earlier(since, f.Last)
		}
	}
	m.AddFacts(facts, earlier(last, now))
	m.since = since
}

func (m *Model) add(f *Fact) {
	w := m.workloads[f.Key]
	if w == nil {
		w = &workload{key: f.Key, id: f.Key.ID(), facts: map[string]*Fact{}}
		m.workloads[f.Key] = w
	}
	w.last = later(w.last, f.Last)
	if f.Resource != nil {
		m.account(w, sizeOf(f.Resource)-sizeOf(w.resource))
		w.resource, f.Resource = f.Resource, nil
	}
	if f.before != nil {
		w.before.join(f.before)
		f.before = nil
	}
	if known := w.facts[f.Event]; known != nil {
		m.account(w, -known.size())
		known.join(f)
		f = known
	} else {
		w.facts[f.Event] = f
	}
	m.account(w, f.size())
	if len(w.facts) > maxFacts {
		m.thin(w, maxFacts/10)
	}
}

func (w *workload) space() space { return space{w.key.Cluster, w.key.Namespace} }

// account notes that what is kept of a workload has changed by a number of bytes.
func (m *Model) account(w *workload, bytes int) {
	if w.settled != nil {
		bytes -= w.settled.size()
		w.settled = nil
	}
	w.bytes, m.bytes = w.bytes+bytes, m.bytes+bytes
}

// keep notes what all facts of a workload show of rollouts, if there is room for it.
func (m *Model) keep(w *workload, s *states) {
	if m.bytes+s.size() <= maxBytes {
		m.account(w, s.size())
		w.settled = s
	}
}

// thin drops facts of a workload: those that are no warnings first, the oldest first.
func (m *Model) thin(w *workload, count int) {
	ids := slices.SortedFunc(maps.Keys(w.facts), func(a, b string) int {
		x, y := w.facts[a], w.facts[b]
		return cmp.Or(compareBools(x.IsWarning(), y.IsWarning()), x.Last.Compare(y.Last), cmp.Compare(a, b))
	})
	for _, id := range ids[:count] {
		m.forgetFact(w, id)
	}
	w.forgetRevisions()
	m.dropped(w).Facts += count
}

// bound drops what can be read again, and then the workloads that have been quiet for the longest
// time, of the namespace that takes most.
func (m *Model) bound() {
	if m.bytes <= maxBytes {
		return
	}
	for _, w := range m.workloads {
		m.account(w, 0)
	}
	if m.bytes <= maxBytes {
		return
	}
	all := slices.SortedFunc(maps.Values(m.workloads), func(a, b *workload) int {
		return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.id, b.id))
	})
	entries := make([]evict.Entry[*workload], 0, len(all))
	for _, w := range all {
		entries = append(entries, evict.Entry[*workload]{Namespace: w.key.Cluster + "/" + w.key.Namespace, Bytes: w.bytes, Value: w})
	}
	evict.Largest(entries, m.bytes-maxBytes+maxBytes/20, func(w *workload) int {
		m.dropped(w).Workloads++
		m.remove(w)
		return w.bytes
	})
}

// dropped returns what was dropped of the namespace of a workload.
func (m *Model) dropped(w *workload) *Dropped {
	d := m.drops[w.space()]
	if d == nil {
		d = &Dropped{}
		m.drops[w.space()] = d
	}
	return d
}

func (m *Model) remove(w *workload) {
	m.bytes -= w.bytes
	delete(m.workloads, w.key)
}

// forgetEvery is the time between two passes in which a Model forgets.
const forgetEvery = 10 * time.Second

// forget drops what is older than the Horizon.
func (m *Model) forget(now time.Time) {
	if now.Sub(m.forgotten) < forgetEvery {
		return
	}
	m.forgotten = now
	before := now.Add(-Horizon)
	for _, w := range m.workloads {
		if m.forgetIn(w, before); len(w.facts) == 0 {
			m.remove(w)
		}
	}
	used := map[space]bool{}
	for _, w := range m.workloads {
		used[w.space()] = true
	}
	maps.DeleteFunc(m.drops, func(in space, _ *Dropped) bool { return !used[in] })
}

// forgetIn drops the facts of a workload that are older than a time, and notes what they showed of revisions that have
// newer ones. Else the rest of a rollout would look like another one.
func (m *Model) forgetIn(w *workload, before time.Time) {
	known := len(w.facts)
	for id, f := range w.facts {
		if f.Last.Before(before) {
			m.forgetFact(w, id)
		}
	}
	if len(w.facts) < known {
		w.forgetRevisions()
	}
}

// forgetFact drops a fact of a workload, and notes what it showed.
func (m *Model) forgetFact(w *workload, id string) {
	f := w.facts[id]
	m.account(w, -f.size())
	delete(w.facts, id)
	if w.before.begun == nil {
		w.before.begun = map[string]bool{}
	}
	w.before.begun[f.revision()] = true
	if f.scaling != nil {
		w.before.scaled = later(w.before.scaled, f.Last)
	}
}

// forgetRevisions forgets that revisions began of which nothing is known any more.
func (w *workload) forgetRevisions() {
	left := map[string]bool{}
	for _, f := range w.facts {
		left[f.revision()] = true
	}
	maps.DeleteFunc(w.before.begun, func(revision string, _ bool) bool { return !left[revision] })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

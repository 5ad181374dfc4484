// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/evict"
)

// What entries take, in bytes, without their texts: about what Go needs for them.
const (
	workloadBytes = 500
	revisionBytes = 600
	podBytes      = 400
	eventBytes    = 250
	nameBytes     = 120
	entryBytes    = 100 // a step, an attribute, an activation
)

func (w *Workload) bytes() int {
	size := w.Names.bytes + 2*entryBytes*len(w.Activations)
	for _, t := range w.Templates {
		size += 3*entryBytes + len(t.Revision) + len(t.Controller) + len(t.Tool) + len(t.ChangedBy)
		for _, change := range t.Changes {
			size += 16 + len(change)
		}
	}
	return size
}

func (r *Revision) size(name string) int {
	size := revisionBytes + len(name) + r.pods + r.Names.bytes + sizeOf(r.Events) + entryBytes*(len(r.Steps)+len(r.Sent))
	for name, value := range r.Attributes {
		size += entryBytes + len(name) + len(value)
	}
	return size
}

func (p *Pod) size(uid string) int {
	return podBytes + len(uid) + len(p.Name) + len(p.Node) + sizeOf(p.Events)
}

func sizeOf(events map[string]Event) (size int) {
	for uid, e := range events {
		size += eventBytes + len(uid) + len(e.Reason) + len(e.Container) + len(e.Message)
		if e.Ended != nil {
			size += entryBytes
		}
	}
	return size
}

// measure counts the bytes of a model that was not joined.
func (m *Model) measure() {
	for _, w := range m.Workloads {
		m.bytes += workloadBytes + w.bytes()
		for name, r := range w.Revisions {
			for uid, p := range r.Pods {
				r.pods += p.size(uid)
			}
			r.bytes = r.size(name)
			m.bytes += r.bytes
		}
	}
}

// Size returns about how many bytes the model takes.
func (m *Model) Size() int { return m.bytes }

// Revisions returns how many revisions the model has.
func (m *Model) Revisions() (count int) {
	for _, w := range m.Workloads {
		count += len(w.Revisions)
	}
	return count
}

// maxRevisions bounds the revisions of a workload: what is computed for one of them depends on all.
const maxRevisions = 256

// Evict forgets revisions while the model takes more than a number of bytes: always one of the
// namespace that takes the most, so that nobody displaces the rollouts of others. It calls
// forgotten with each revision.
func (m *Model) Evict(most int, forgotten func(Key, *Revision)) {
	forget := func(key Key) {
		_, r := m.Revision(key)
		m.Forget(key)
		if r != nil {
			forgotten(key, r)
		}
	}
	for key, w := range m.Workloads {
		if len(w.Revisions) > maxRevisions {
			for _, key := range m.leastUsed(key)[:maxRevisions/8] {
				forget(key)
			}
		}
	}
	if m.bytes <= most {
		return
	}
	var entries []evict.Entry[Key]
	for key, w := range m.Workloads {
		for i, k := range m.keysOf(key) {
			e := evict.Entry[Key]{Namespace: w.Cluster + "/" + w.Namespace, Value: k}
			if r := w.Revisions[k.Revision]; r != nil {
				e.Bytes = r.bytes
			}
			if i == 0 {
				e.Bytes += workloadBytes + w.bytes()
			}
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b evict.Entry[Key]) int { return m.compareUse(a.Value, b.Value) })
	evict.Largest(entries, m.bytes-most+most/20, func(key Key) int { // So that it does not begin again with the next record.
		before := m.bytes
		forget(key)
		return before - m.bytes
	})
}

// keysOf returns the keys of a workload's revisions. A workload that has none has a key of its own.
func (m *Model) keysOf(workload string) (keys []Key) {
	for name := range m.Workloads[workload].Revisions {
		keys = append(keys, Key{workload, name})
	}
	if len(keys) == 0 {
		keys = []Key{{Workload: workload}}
	}
	return keys
}

func (m *Model) leastUsed(workload string) []Key {
	return slices.SortedFunc(slices.Values(m.keysOf(workload)), m.compareUse)
}

// compareUse orders by what is forgotten first: a workload without a revision, a revision that was
// delivered, and of two the one that had no news for longer.
func (m *Model) compareUse(a, b Key) int {
	rank := func(key Key) (rank int, news int64) {
		_, r := m.Revision(key)
		if r == nil {
			return 0, 0
		}
		if r.Closed {
			return 1, r.News
		}
		return 2, r.News
	}
	rankA, newsA := rank(a)
	rankB, newsB := rank(b)
	return cmp.Or(cmp.Compare(rankA, rankB), cmp.Compare(newsA, newsB), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Revision, b.Revision))
}

// Forget removes a revision, and its workload if it was the last one.
func (m *Model) Forget(key Key) {
	w, r := m.Revision(key)
	if w == nil {
		return
	}
	if r != nil {
		m.bytes -= r.bytes
		delete(w.Revisions, key.Revision)
	}
	if len(w.Revisions) == 0 {
		m.bytes -= workloadBytes + w.bytes()
		delete(m.Workloads, key.Workload)
		return
	}
	before := w.bytes()
	w.forgetNames(r)
	m.bytes -= before - w.bytes()
}

// forgetNames removes the names of a revision's pods that no other revision uses: those of a
// StatefulSet do.
func (w *Workload) forgetNames(r *Revision) {
	used := map[string]bool{}
	for _, other := range w.Revisions {
		for _, pod := range other.Pods {
			used[pod.Name] = true
		}
	}
	for _, pod := range r.Pods {
		for _, names := range []map[string][]int64{w.Names.Created, w.Names.Deleted} {
			if _, ok := names[pod.Name]; ok && !used[pod.Name] {
				w.Names.bytes -= nameBytes + len(pod.Name)
				delete(names, pod.Name)
			}
		}
	}
}

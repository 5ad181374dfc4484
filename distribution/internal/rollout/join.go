// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// The bounds of what the model keeps of one object. Which entries it keeps does not depend on the
// order of arrival. It keeps the earliest ones, unless the comment says otherwise. Evict bounds the
// rest, in bytes.
const (
	maxEvents      = 64 // of a pod, or above the pods of a revision
	maxSteps       = 64 // of a revision, half of them the first ones, and half the last ones
	maxActivations = 64 // of a workload, the newest
	maxTemplates   = 64 // of a workload, the newest
	maxTimes       = 8  // of a name, the newest
	maxAttributes  = 64 // those whose names are the first ones in the alphabet
)

// Join adds what another model knows, and returns the revisions for which it had news: an Event, a
// pod, a name or a scaling that was not known. What happens to a pod again changes the revision,
// but is no news: otherwise, the rollout of a container that crashes forever would never end.
func (m *Model) Join(in *Model) []Key {
	var news []Key
	for key, w := range in.Workloads {
		if m.Workloads[key] == nil {
			m.bytes += workloadBytes
		}
		bytes, revisions := m.workload(key).join(w)
		m.bytes += bytes
		for _, revision := range revisions {
			news = append(news, Key{key, revision})
		}
	}
	return news
}

// join returns by how many bytes the workload has grown, and the revisions that had news.
func (w *Workload) join(in *Workload) (bytes int, news []string) {
	w.Cluster, w.Namespace, w.UID = in.Cluster, in.Namespace, in.UID
	w.Kind, w.Name = max(w.Kind, in.Kind), max(w.Name, in.Name)
	before := w.bytes()
	for uid, a := range in.Activations {
		put(&w.Activations, uid, a)
	}
	for uid, t := range in.Templates {
		put(&w.Templates, uid, t)
	}
	w.Names.join(in.Names)
	for name, r := range in.Revisions {
		_, known := w.Revisions[name]
		own := w.revision(name)
		bytes -= own.bytes
		if own.join(r) || !known && !r.Closed {
			news = append(news, name)
		}
		own.bytes = own.size(name)
		bytes += own.bytes
	}
	for len(w.Activations) > maxActivations {
		delete(w.Activations, w.activations()[0].activation)
	}
	for len(w.Templates) > maxTemplates {
		delete(w.Templates, w.oldestTemplate())
	}
	return bytes + w.bytes() - before, news
}

// join reports whether there were news.
func (r *Revision) join(in *Revision) bool {
	r.Controller = max(r.Controller, in.Controller)
	for name, value := range in.Attributes {
		r.joinAttribute(name, value)
	}
	news := joinEvents(&r.Events, in.Events)
	news = r.joinSteps(in.Steps) || news
	news = r.Names.join(in.Names) || news
	for uid, p := range in.Pods {
		news = r.joinPod(uid, p) || news
	}
	r.First = earliest(r.First, in.First)
	if news {
		r.News = max(r.News, in.News)
	}
	for key := range in.Sent {
		put(&r.Sent, key, true)
	}
	r.Closed = in.Closed || r.Closed && !news
	return news && !in.Closed
}

func (r *Revision) joinAttribute(name, value string) {
	put(&r.Attributes, name, max(r.Attributes[name], value))
	if len(r.Attributes) > maxAttributes {
		delete(r.Attributes, slices.Max(slices.Collect(maps.Keys(r.Attributes))))
	}
}

// joinPod reports whether the pod had news. It replaces the pod, so that copies of the revision
// stay as they are.
func (r *Revision) joinPod(uid string, in *Pod) (news bool) {
	known, next := r.Pods[uid], in
	news = known == nil
	if known != nil {
		r.pods -= known.size(uid)
		next, news = known.with(in)
	}
	r.pods += next.size(uid)
	put(&r.Pods, uid, next)
	return news
}

// with adds what is known of the same pod. News are an Event of another kind, or about another
// container. One of a known kind is no news: the messages of some, such as Pulled, differ each
// time, and so the Events do.
func (p *Pod) with(in *Pod) (next *Pod, news bool) {
	var added []string
	for uid, e := range in.Events {
		if !hasKind(p.Events, e) {
			added = append(added, uid)
		}
	}
	next = &Pod{
		Name: max(p.Name, in.Name), Node: max(p.Node, in.Node), News: p.News, Events: maps.Clone(p.Events),
		First: earliest(p.First, in.First),
	}
	joinEvents(&next.Events, in.Events)
	if news = hasAny(next.Events, added); news {
		next.News = max(p.News, in.News)
	}
	return next, news
}

func hasKind(events map[string]Event, like Event) bool {
	for _, e := range events {
		if e.kind() == like.kind() && e.Container == like.Container {
			return true
		}
	}
	return false
}

// hasAny reports whether one of the Events was kept. One that was dropped is no news: it would be
// new each time it comes.
func hasAny(events map[string]Event, uids []string) bool {
	return slices.ContainsFunc(uids, func(uid string) bool {
		_, kept := events[uid]
		return kept
	})
}

// joinEvents reports whether an Event is new.
func joinEvents(events *map[string]Event, in map[string]Event) bool {
	var added []string
	for uid, e := range in {
		if known, ok := (*events)[uid]; ok {
			e = known.join(e)
		} else {
			added = append(added, uid)
		}
		put(events, uid, e)
	}
	if len(*events) > maxEvents {
		dropLatest(*events)
	}
	return hasAny(*events, added)
}

func dropLatest(events map[string]Event) {
	uids := slices.SortedFunc(maps.Keys(events), func(x, y string) int {
		return cmp.Or(cmp.Compare(events[x].First, events[y].First), cmp.Compare(x, y))
	})
	for _, uid := range uids[maxEvents:] {
		delete(events, uid)
	}
}

// join keeps the earliest and the latest time, the text of the state with the highest count, and the
// newest end.
func (e Event) join(in Event) Event {
	newer := cmp.Or(cmp.Compare(in.Count, e.Count), cmp.Compare(in.Last, e.Last), cmp.Compare(in.Message, e.Message))
	first, last, ended := min(e.First, in.First), max(e.Last, in.Last), newestEnd(e.Ended, in.Ended)
	if newer > 0 {
		e = in
	}
	e.First, e.Last, e.Ended = first, last, ended
	return e
}

// newestEnd returns the later end. Of two in the same second, which differ only if a clock was set, it
// does not depend on the order which one it is.
func newestEnd(a, b *record.Ended) *record.Ended {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case cmp.Or(a.At.Compare(b.At), cmp.Compare(a.String(), b.String())) < 0:
		return b
	}
	return a
}

// join reports whether a name or a time is new.
func (n *Names) join(in Names) bool {
	created, deleted := n.joinTimes(&n.Created, in.Created), n.joinTimes(&n.Deleted, in.Deleted)
	return created || deleted
}

func (n *Names) joinTimes(names *map[string][]int64, in map[string][]int64) (news bool) {
	for name, times := range in {
		known, ok := (*names)[name]
		if !ok {
			n.bytes += nameBytes + len(name)
		}
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(known, times))))
		all = all[max(0, len(all)-maxTimes):]
		news = news || !slices.Equal(known, all)
		put(names, name, all)
	}
	return news
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
)

// The bounds of what the model keeps of one object. Which entries it keeps does not depend on the order of arrival. It
// keeps the earliest ones, unless the comment says otherwise.
const (
	maxEvents      = 64 // of a pod, or above the pods of a revision
	maxSteps       = 64 // of a revision, half of them the first ones, and half the last ones
	maxActivations = 64 // of a workload, preferably those that began a rollout
	maxTimes       = 8  // of a name, the newest
	maxNames       = 20_000
	maxAttributes  = 64
	maxLinks       = 16
)

// Join adds what another model knows, and returns the revisions for which it had news: an Event, a
// pod, a name or a scaling that was not known. What happens to a pod again changes the revision, but is no news:
// otherwise, the rollout of a container that crashes forever would never end.
func (m *Model) Join(in *Model) []Key {
	var news []Key
	for key, w := range in.Workloads {
		for _, revision := range m.workload(key).join(w) {
			news = append(news, Key{key, revision})
		}
	}
	return news
}

func (w *Workload) join(in *Workload) (news []string) {
	w.Cluster, w.UID = in.Cluster, in.UID
	w.Kind, w.Name = max(w.Kind, in.Kind), max(w.Name, in.Name)
	w.lacks = w.lacks || in.lacks
	for uid, a := range in.Activations {
		w.activate(uid, a)
	}
	w.Names.join(in.Names)
	for name, r := range in.Revisions {
		_, known := w.Revisions[name]
		if w.revision(name).join(r) || !known && !r.Closed {
			news = append(news, name)
		}
	}
	for len(w.Activations) > maxActivations {
		w.forgetActivation()
	}
	return news
}

func (w *Workload) activate(uid string, a Activation) {
	if w.Activations == nil {
		w.Activations = map[string]Activation{}
	}
	a.Replaces = a.Replaces || w.Activations[uid].Replaces
	w.Activations[uid] = a
}

// forgetActivation removes the oldest activation that begins no rollout, because no id depends on it. If all begin one,
// it removes the oldest.
func (w *Workload) forgetActivation() {
	begin := map[string]bool{}
	for e := range w.begun() {
		begin[e.activation] = true
	}
	all := w.activations()
	i := slices.IndexFunc(all, func(e episode) bool { return !begin[e.activation] })
	delete(w.Activations, all[max(i, 0)].activation)
}

// join reports whether there were news.
func (r *Revision) join(in *Revision) bool {
	r.Controller = max(r.Controller, in.Controller)
	r.joinAttributes(in.Attributes)
	news := joinEvents(&r.Events, in.Events)
	news = r.joinSteps(in.Steps) || news
	news = r.Names.join(in.Names) || news
	for uid, p := range in.Pods {
		news = r.pod(uid).join(p) || news
	}
	for link := range in.Links {
		r.link(link)
	}
	r.First = earliest(r.First, in.First)
	r.News = max(r.News, in.News)
	r.MarkSent(in.Sent)
	r.Closed = in.Closed || r.Closed && !news
	return news && !in.Closed
}

// MarkSent notes the hashes of parts that were delivered.
func (r *Revision) MarkSent(sent map[string]uint64) {
	if r.Sent == nil && len(sent) > 0 {
		r.Sent = make(map[string]uint64, len(sent))
	}
	maps.Copy(r.Sent, sent)
}

func (r *Revision) joinAttributes(in map[string]string) {
	for name, value := range in {
		r.joinAttribute(name, value)
	}
}

func (r *Revision) joinAttribute(name, value string) {
	known, ok := r.Attributes[name]
	if ok && known >= value || !ok && len(r.Attributes) >= maxAttributes {
		return
	}
	if r.Attributes == nil {
		r.Attributes = make(map[string]string, 14)
	}
	r.Attributes[name] = value
}

func (r *Revision) link(link Link) {
	if r.Links == nil {
		r.Links = map[Link]bool{}
	}
	r.Links[link] = true
	if len(r.Links) > maxLinks {
		delete(r.Links, slices.MaxFunc(slices.Collect(maps.Keys(r.Links)), compareLinks))
	}
}

func compareLinks(a, b Link) int {
	return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Span, b.Span))
}

// join reports whether an Event of another kind, or about another container, is new. One of a known
// kind is no news: the messages of some, such as Pulled, differ each time, and so the Events do.
func (p *Pod) join(in *Pod) bool {
	p.Name, p.Node = max(p.Name, in.Name), max(p.Node, in.Node)
	p.Placed, p.Seen = earliest(p.Placed, in.Placed), earliest(p.Seen, in.Seen)
	var added []string
	for uid, e := range in.Events {
		p.note(e) // What an older version has saved lacks the times.
		if !hasKind(p.Events, e) {
			added = append(added, uid)
		}
	}
	joinEvents(&p.Events, in.Events)
	return hasAny(p.Events, added)
}

func hasKind(events map[string]Event, of Event) bool {
	for _, e := range events {
		if e.kind() == of.kind() && e.Container == of.Container {
			return true
		}
	}
	return false
}

// hasAny reports whether one of the Events was kept. One that was dropped is no news: it would be new
// each time it comes.
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
		if *events == nil {
			*events = make(map[string]Event, 8)
		}
		(*events)[uid] = e
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

// join keeps the earliest and the latest time, and the text of the state with the highest count.
func (e Event) join(in Event) Event {
	newer := cmp.Or(cmp.Compare(in.Count, e.Count), cmp.Compare(in.Last, e.Last), cmp.Compare(in.Message, e.Message))
	first, last := min(e.First, in.First), max(e.Last, in.Last)
	if newer > 0 {
		e = in
	}
	e.First, e.Last = first, last
	return e
}

// join reports whether a name or a time is new.
func (n *Names) join(in Names) bool {
	created, deleted := joinTimes(&n.Created, in.Created), joinTimes(&n.Deleted, in.Deleted)
	return created || deleted
}

func joinTimes(names *map[string][]int64, in map[string][]int64) (news bool) {
	if *names == nil && len(in) > 0 {
		*names = make(map[string][]int64, len(in))
	}
	for name, times := range in {
		known, ok := (*names)[name]
		if !ok && len(*names) >= maxNames {
			continue
		}
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(known, times))))
		all = all[max(0, len(all)-maxTimes):]
		news = news || !slices.Equal(known, all)
		(*names)[name] = all
	}
	return news
}

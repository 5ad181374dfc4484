// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// expected is what an ideal observer counts of one event.
type expected struct {
	total int64
	steps []step
}

func (e *expected) totalOrZero() int64 {
	if e == nil {
		return 0
	}
	return e.total
}

// step is one write that brought occurrences.
type step struct {
	at          time.Time
	uid         types.UID
	count       int64
	occurrences int64
}

// remembered is what the contract lets an observer remember of an event.
type remembered struct {
	uid     types.UID
	count   int64
	deleted time.Time // zero: it exists
	// first is when the first state was written that counted, if nothing was remembered before;
	// zero: something was. counted is what has counted since.
	first   time.Time
	counted int64
}

const (
	// rememberDeleted is how long the contract lets deleted events be remembered.
	rememberDeleted = 24 * time.Hour
	// recreatedAfter: if the first occurrence is older than the object by this, the count is old.
	recreatedAfter = time.Hour
)

// baseline is the list in which an observer first sees what exists, by the event's namespace.
type baseline func(namespace string) listing

// has reports whether a write is older than the list of its namespace.
func (b baseline) has(w apiserver.Write) bool {
	list := b(w.Event.Namespace)
	return w.Epoch < list.epoch || w.Epoch == list.epoch && w.Version <= list.version
}

// observer counts what the API server holds.
type observer struct {
	env    *environment
	from   baseline
	begins int  // the epoch of its first list
	least  bool // counts the least that the contract promises, else the most that it allows
	counts map[types.NamespacedName]*expected
	memory map[types.NamespacedName]*remembered

	pending *list // after a restore; nil: it has listed
}

// ideal returns what an observer counts that begins with a list and then sees every write.
func (e *environment) ideal(from baseline, least bool) map[types.NamespacedName]*expected {
	return e.idealOf(&observer{least: least}, from)
}

func (e *environment) idealOf(o *observer, from baseline) map[types.NamespacedName]*expected {
	o.env, o.from, o.counts, o.memory = e, from, map[types.NamespacedName]*expected{}, map[types.NamespacedName]*remembered{}
	o.begins = from(e.plan.streams()[0]).epoch
	e.mu.Lock()
	restores := slices.Clone(e.restores)
	e.mu.Unlock()
	epoch := 0
	for _, w := range e.server.History() {
		for ; epoch < w.Epoch; epoch++ {
			o.restore(restores[epoch], epoch)
		}
		if e.plan.wants(w.Event) {
			o.see(w)
		}
	}
	for ; epoch < len(restores); epoch++ { // Nothing was written since.
		o.restore(restores[epoch], epoch)
	}
	o.finishList()
	return o.counts
}

// see takes in a write.
func (o *observer) see(w apiserver.Write) {
	name := nameOf(w.Event)
	known, inList := o.memory[name], o.from.has(w)
	if o.pending != nil && w.At.After(o.pending.until) {
		o.finishList()
		known = o.memory[name]
	}
	switch {
	case o.pending != nil:
		o.pending.see(w)
	case o.least && (o.env.isLost(w) && !inList || o.env.mayBeHeld(w)):
	case w.Type == watch.Deleted && inList:
		delete(o.memory, name)
		delete(o.counts, name)
	case w.Type == watch.Deleted:
		if known != nil {
			known.deleted = w.At
		}
	default:
		if known.isForgotten(w.At) {
			known = nil
		}
		if inList { // A list has the newest state only.
			delete(o.counts, name)
			known = nil
		}
		o.memory[name] = known.with(w.Event)
		if !inList || o.env.plan.FromBeginning {
			o.countNew(known, w)
		}
	}
}

// countNew counts the occurrences of a state beyond what was remembered of its event.
func (o *observer) countNew(known *remembered, w apiserver.Write) {
	next, n := o.memory[nameOf(w.Event)], known.newIn(w.Event)
	isNew := n > 0
	switch {
	case known == nil:
		next.first = w.At
	case !known.first.IsZero() && known.uid == w.Event.UID:
		next.first = known.first
		if o.env.mayMiss(known.first, w.At) {
			n = o.asFirst(known.counted+n, w.Event) - known.counted
		}
		next.counted = known.counted
	}
	next.counted += n
	if isNew || n != 0 {
		o.count(nameOf(w.Event), step{w.At, w.Event.UID, countOf(w.Event), n})
	}
}

// asFirst returns what counts of an event if this may be the first of its states that the receiver
// sees: an old first occurrence decides then, and each state may have another one.
func (o *observer) asFirst(total int64, ev *corev1.Event) int64 {
	if seen := (*remembered)(nil).newIn(ev); o.least == (seen < total) {
		return seen
	}
	return total
}

// mayMiss reports whether the receiver may not see what is written at a time before it sees what is
// written later: it was down, a fault delayed it, or a new leader lists it without its progress.
func (e *environment) mayMiss(at, next time.Time) bool {
	if e.plan.Elector && e.emitters() > 1 {
		return true
	}
	seen := at.Add(promptly)
	end := e.calmFrom(seen, lookBack)
	return end.After(seen) && next.Before(end)
}

func (o *observer) count(name types.NamespacedName, s step) {
	if o.counts[name] == nil {
		o.counts[name] = &expected{}
	}
	c := o.counts[name]
	c.total, c.steps = c.total+s.occurrences, append(c.steps, s)
}

func (k *remembered) isForgotten(now time.Time) bool {
	return k != nil && !k.deleted.IsZero() && now.Sub(k.deleted) > rememberDeleted
}

// newIn returns how many occurrences a state of an event has beyond what is remembered.
func (k *remembered) newIn(ev *corev1.Event) int64 {
	count := countOf(ev)
	switch {
	case k == nil:
		first := firstFit(ev.FirstTimestamp.Time, ev.EventTime.Time)
		if !first.IsZero() && ev.CreationTimestamp.Sub(first) > recreatedAfter {
			return 1
		}
	case count > k.count:
		return count - k.count
	case ev.UID == k.uid:
		return 0
	}
	return count
}

// with returns what is remembered after a state of an event was seen.
func (k *remembered) with(ev *corev1.Event) *remembered {
	count := countOf(ev)
	if k != nil && k.uid == ev.UID {
		count = max(count, k.count)
	}
	return &remembered{uid: ev.UID, count: count}
}

func countOf(ev *corev1.Event) int64 {
	n := max(1, int64(ev.Count))
	if ev.Series != nil {
		n = max(n, int64(ev.Series.Count))
	}
	return n
}

// baselines returns from where on everything is required, and from where on a record is allowed.
// Both are the same unless a first list had to restart.
func (e *environment) baselines() (required, allowed baseline) {
	p := e.firstObserver()
	list := func(of func(lists) listing) baseline {
		p := p
		return func(namespace string) listing {
			p.mu.Lock()
			defer p.mu.Unlock()
			return of(p.lists[e.plan.stream(namespace)])
		}
	}
	complete := func(l lists) listing { return l.complete }
	allowed = list(func(l lists) listing { return l.begun })
	return list(complete), allowed
}

// firstObserver returns the process whose first list decides what is new. With storage or an
// elector, it is the process that listed first, otherwise the last process.
func (e *environment) firstObserver() *process {
	all := e.allProcesses()
	if e.plan.Mode == neither {
		return all[len(all)-1]
	}
	first := all[0]
	for _, p := range all {
		p.mu.Lock()
		observes := p.observes
		p.mu.Unlock()
		if !observes.IsZero() && (first.observes.IsZero() || observes.Before(first.observes)) {
			first = p
		}
	}
	return first
}

// expectsFirst reports whether a process that gets this state may have to make a record of it:
// with start_at end, the states of its first list are only remembered.
func (e *environment) expectsFirst(p *process, ev *corev1.Event) bool {
	if e.plan.FromBeginning {
		return true
	}
	p.mu.Lock()
	listing := p.lists[e.plan.stream(ev.Namespace)].complete.version == 0
	p.mu.Unlock()
	if listing {
		e.mu.Lock()
		e.offered[recordUID(ev)] = true
		e.mu.Unlock()
	}
	return !listing
}

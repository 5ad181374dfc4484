// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

// expected is what an ideal observer counts of one event.
type expected struct {
	total int64
	steps []step
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
}

const (
	rememberDeleted = 24 * time.Hour // the contract's memory of deleted events
	recreatedAfter  = time.Hour      // a first occurrence so long before creation: the count belongs to the past
)

// baseline is the version up to which an observer has seen everything in its first list, by the
// event's namespace.
type baseline func(namespace string) int64

// ideal returns what an observer counts that begins with a list and then sees every write.
func (e *environment) ideal(from baseline) map[types.NamespacedName]*expected {
	counts, memory := map[types.NamespacedName]*expected{}, map[types.NamespacedName]*remembered{}
	for _, w := range e.server.History() {
		if !e.plan.wants(w.Event) {
			continue
		}
		name := types.NamespacedName{Namespace: w.Event.Namespace, Name: w.Event.Name}
		inList := w.Version <= from(name.Namespace)
		known := memory[name]
		switch {
		case w.Type == watch.Deleted && inList:
			delete(memory, name)
			delete(counts, name)
		case w.Type == watch.Deleted:
			if known != nil {
				known.deleted = w.At
			}
		default:
			if known != nil && !known.deleted.IsZero() && w.At.Sub(known.deleted) > rememberDeleted {
				known = nil
			}
			if inList { // A list shows the newest state alone.
				delete(counts, name)
				known = nil
			}
			memory[name] = known.observe(w.Event, counts, name, w, inList && !e.plan.FromBeginning)
		}
	}
	return counts
}

// observe counts what a state of an event says beyond what is remembered, and returns what is then
// remembered. Silent states are remembered and not counted.
func (k *remembered) observe(ev *corev1.Event, counts map[types.NamespacedName]*expected, name types.NamespacedName, w apiserver.Write, silent bool) *remembered {
	count := countOf(ev)
	occurrences := count
	switch {
	case k == nil:
		if first := ev.FirstTimestamp.Time; !first.IsZero() && ev.CreationTimestamp.Sub(first) > recreatedAfter {
			occurrences = 1
		}
	case count > k.count:
		occurrences = count - k.count
	case ev.UID == k.uid:
		occurrences = 0
	}
	if k != nil && k.uid == ev.UID {
		count = max(count, k.count)
	}
	if occurrences > 0 && !silent {
		if counts[name] == nil {
			counts[name] = &expected{}
		}
		counts[name].total += occurrences
		counts[name].steps = append(counts[name].steps, step{w.At, ev.UID, countOf(ev), occurrences})
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

// wants reports whether the configured filters let the event through.
func (p *Plan) wants(ev *corev1.Event) bool {
	if len(p.Watched) > 0 && !slices.Contains(p.Watched, ev.Namespace) {
		return false
	}
	if len(p.Types) > 0 && !slices.Contains(p.Types, ev.Type) {
		return false
	}
	if len(p.IncludeReasons) > 0 && !matches(p.IncludeReasons, ev.Reason) {
		return false
	}
	return !matches(p.ExcludeReasons, ev.Reason) && !matches(p.ExcludeSpaces, ev.InvolvedObject.Namespace)
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, _ := path.Match(glob, name)
		return matched
	})
}

// stream is the stream in which the receiver sees the events of a namespace.
func (p *Plan) stream(namespace string) string {
	if len(p.Watched) > 0 {
		return namespace
	}
	return ""
}

// baselines returns from where on everything is required, and from where on a record is allowed.
// Both are the same unless a first list had to begin again.
func (e *environment) baselines() (required, allowed baseline) {
	p := e.firstObserver()
	version := func(of func(lists) int64) baseline {
		return func(namespace string) int64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return of(p.lists[e.plan.stream(namespace)])
		}
	}
	return version(func(l lists) int64 { return l.complete }), version(func(l lists) int64 { return l.begun })
}

// firstObserver is the process whose first list decides what is new: the first that ever listed
// where something is remembered beyond a process, else the last process.
func (e *environment) firstObserver() *process {
	all := e.allProcesses()
	if e.plan.Mode == (Mode{}) {
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

// expectsFirst reports whether a process that is sent this state may have to make a record of it:
// with start_at end, what its first list shows is only remembered.
func (e *environment) expectsFirst(p *process, ev *corev1.Event) bool {
	if e.plan.FromBeginning {
		return true
	}
	p.mu.Lock()
	listing := p.lists[e.plan.stream(ev.Namespace)].complete == 0
	p.mu.Unlock()
	if listing {
		e.mu.Lock()
		e.offered[recordUID(ev)] = true
		e.mu.Unlock()
	}
	return !listing
}

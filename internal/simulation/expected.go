// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
}

const (
	// rememberDeleted is how long the contract lets deleted events be remembered.
	rememberDeleted = 24 * time.Hour
	// recreatedAfter: if the first occurrence is older than the object by this, the count is old.
	recreatedAfter = time.Hour
)

// baseline is the version up to which an observer has seen everything in its first list, by the
// event's namespace.
type baseline func(namespace string) int64

// ideal returns what an observer counts that begins with a list and then sees every write.
func (e *environment) ideal(from baseline) map[types.NamespacedName]*expected {
	counts := map[types.NamespacedName]*expected{}
	memory := map[types.NamespacedName]*remembered{}
	for _, w := range e.server.History() {
		if !e.plan.wants(w.Event) {
			continue
		}
		name := nameOf(w.Event)
		known, inList := memory[name], w.Version <= from(name.Namespace)
		switch {
		case w.Type == watch.Deleted && inList:
			delete(memory, name)
			delete(counts, name)
		case w.Type == watch.Deleted:
			if known != nil {
				known.deleted = w.At
			}
		default:
			if known.isForgotten(w.At) {
				known = nil
			}
			if inList { // A list has the newest state only.
				delete(counts, name)
				known = nil
			}
			memory[name] = known.with(w.Event)
			n := known.newIn(w.Event)
			if n == 0 || inList && !e.plan.FromBeginning {
				continue
			}
			if counts[name] == nil {
				counts[name] = &expected{}
			}
			c, s := counts[name], step{w.At, w.Event.UID, countOf(w.Event), n}
			c.total, c.steps = c.total+n, append(c.steps, s)
		}
	}
	return counts
}

func (k *remembered) isForgotten(now time.Time) bool {
	return k != nil && !k.deleted.IsZero() && now.Sub(k.deleted) > rememberDeleted
}

// newIn returns how many occurrences a state of an event has beyond what is remembered.
func (k *remembered) newIn(ev *corev1.Event) int64 {
	count := countOf(ev)
	switch {
	case k == nil:
		first := ev.FirstTimestamp.Time
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

// wants reports whether the configured filters let the event through.
func (p *Plan) wants(ev *corev1.Event) bool {
	included := (len(p.Watched) == 0 || slices.Contains(p.Watched, ev.Namespace)) &&
		(len(p.Types) == 0 || slices.Contains(p.Types, ev.Type)) &&
		(len(p.IncludeReasons) == 0 || matches(p.IncludeReasons, ev.Reason))
	return included && !matches(p.ExcludeReasons, ev.Reason) &&
		!matches(p.ExcludeSpaces, ev.InvolvedObject.Namespace)
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
// Both are the same unless a first list had to restart.
func (e *environment) baselines() (required, allowed baseline) {
	p := e.firstObserver()
	version := func(of func(lists) int64) baseline {
		return func(namespace string) int64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return of(p.lists[e.plan.stream(namespace)])
		}
	}
	complete := func(l lists) int64 { return l.complete }
	return version(complete), version(func(l lists) int64 { return l.begun })
}

// firstObserver is the process whose first list decides what is new: the first that ever listed
// where something is remembered beyond a process, else the last process.
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
	listing := p.lists[e.plan.stream(ev.Namespace)].complete == 0
	p.mu.Unlock()
	if listing {
		e.mu.Lock()
		e.offered[recordUID(ev)] = true
		e.mu.Unlock()
	}
	return !listing
}

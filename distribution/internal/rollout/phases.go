// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// occurrence is an Event with its UID.
type occurrence struct {
	Event
	uid string
}

// occurrences are in the order of their first times.
type occurrences []*occurrence

func inOrder(events map[string]Event) occurrences {
	all, copies := make(occurrences, 0, len(events)), make([]occurrence, 0, len(events))
	for uid, e := range events {
		copies = append(copies, occurrence{e, uid})
		all = append(all, &copies[len(copies)-1])
	}
	slices.SortFunc(all, func(a, b *occurrence) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.uid, b.uid)) })
	return all
}

func (o occurrences) which(condition func(*occurrence) bool) (chosen occurrences) {
	for _, e := range o {
		if condition(e) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

func (o occurrences) with(kinds ...string) occurrences {
	return o.which(func(e *occurrence) bool { return slices.Contains(kinds, e.kind()) })
}

func (o occurrences) without(kinds ...string) occurrences {
	return o.which(func(e *occurrence) bool { return !slices.Contains(kinds, e.kind()) })
}

// since returns those that occurred at a time or later, with times from then on.
func (o occurrences) since(at int64) (later occurrences) {
	for _, e := range o {
		if e.Last < at {
			continue
		}
		if e.First < at {
			again := *e
			again.First, e = e.Last, &again
		}
		later = append(later, e)
	}
	slices.SortStableFunc(later, func(a, b *occurrence) int { return cmp.Compare(a.First, b.First) })
	return later
}

func (o occurrences) in(container string) occurrences {
	return o.which(func(e *occurrence) bool { return e.Container == container })
}

func (o occurrences) warnings() occurrences {
	return o.which(func(e *occurrence) bool { return e.Warning })
}

// count returns how often all of them occurred.
func (o occurrences) count() (count int64) {
	for _, e := range o {
		count += e.Count
	}
	return count
}

// first returns the earliest time; 0: there is none.
func (o occurrences) first() int64 {
	if len(o) == 0 {
		return 0
	}
	return o[0].First
}

// last returns the latest time; 0: there is none.
func (o occurrences) last() (latest int64) {
	for _, e := range o {
		latest = max(latest, e.Last)
	}
	return latest
}

// containers returns the names of containers, in the order of their first Events. If no Event names
// one, it returns one without a name: simulated kubelets name none.
func (o occurrences) containers() (names []string) {
	for _, e := range o {
		if e.Container != "" && !slices.Contains(names, e.Container) {
			names = append(names, e.Container)
		}
	}
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// phase is a part of a pod's start.
type phase struct {
	name, container string
	start, end      int64
	warnings        occurrences
	failed          bool   // a warning did not recover
	late            bool   // it began long after the pod had started, so it is no part of the rollout
	missing         string // the Event that would end the phase; empty: the phase has ended
	image           string
	restarts        int64
	ended           *record.Ended // how the container ended last; nil: not known
}

// schedule is from the creation of the pod to the choice of its node. No record about the pod: no
// phase.
func schedule(all occurrences, created int64) (p phase, ok bool) {
	placed, unplaced := all.with(ReasonScheduled), all.with(reasonUnplaced)
	if len(placed)+len(unplaced) == 0 && created == 0 {
		return p, false
	}
	p = phase{name: "schedule", start: created, warnings: unplaced}
	if created == 0 {
		p.start = all.with(ReasonScheduled, reasonUnplaced).first()
	}
	later := all.without(ReasonScheduled, reasonUnplaced)
	switch {
	case len(placed) > 0:
		p.end = placed.first()
	case len(later) > 0:
		p.end = later.first()
	default:
		p.end, p.missing = unplaced.last(), ReasonScheduled
		p.failed = len(unplaced) > 0
	}
	return p.ordered(), true
}

// fail marks a phase that seemed to end well as failed, if failed is true.
func (p *phase) fail(failed bool) {
	if failed && p.missing == "" {
		p.missing, p.failed = reasonStarted, true
	}
}

// ordered keeps a phase from ending before it starts: the clocks of two producers can differ.
func (p phase) ordered() phase {
	if p.end == 0 {
		p.end = p.start
	}
	p.start = min(p.start, p.end)
	return p
}

// pull is from Pulling to Pulled. If the node had the image, there is no pull.
func pull(own occurrences, container string) (p phase, ok bool) {
	pulling, pulled, failures := own.with(reasonPulling), own.with(reasonPulled), own.with(record.KindPullFailed)
	if len(pulling)+len(pulled)+len(failures) == 0 {
		return p, false
	}
	p = phase{name: "pull", container: container, start: pulling.first(), warnings: failures}
	p.describe(pulling, pulled, failures)
	if p.start == 0 {
		p.start = p.startFrom(pulled, failures)
	}
	implied := own.with(record.KindPresent, reasonCreated, reasonStarted, reasonUnhealthy)
	switch {
	case len(pulled) > 0:
		p.end = pulled.first()
	case implied.last() >= failures.last() && len(implied) > 0:
		p.end = implied.first()
	default:
		p.end, p.missing = max(failures.last(), p.start), reasonPulled
		p.failed = len(failures) > 0
	}
	return p.ordered(), true
}

// startFrom returns the start of a pull whose Pulling is missing. Pulled has how long it took.
func (p *phase) startFrom(pulled, failures occurrences) int64 {
	if len(pulled) == 0 {
		return failures.first()
	}
	_, took := record.PullOf(pulled[0].Message)
	return pulled.first() - int64(took)
}

func (p *phase) describe(messages ...occurrences) {
	for _, some := range messages {
		for _, e := range some {
			name, _ := record.PullOf(e.Message)
			p.image = cmp.Or(p.image, name)
		}
	}
}

// restartKinds show that a container has started, and ended.
var restartKinds = []string{record.KindCrashed, record.KindRestarted}

// claimed are the kinds of warnings that the phases of a container show.
var claimed = []string{record.KindPullFailed, record.KindCrashed, reasonFailed}

// isClaimed reports whether a phase shows the warning. The pod shows others, such as those that
// name no container.
func isClaimed(warning *occurrence) bool {
	return warning.kind() == reasonUnplaced || warning.Container != "" && slices.Contains(claimed, warning.kind())
}

// start is from Created to Started, for the first time.
func start(own occurrences, container string) (p phase, ok bool) {
	created, started, failures := own.with(reasonCreated), own.with(reasonStarted), own.with(reasonFailed)
	again := own.with(restartKinds...)
	if len(failures) > 0 && len(started) == 0 {
		// A kubelet also backs off if it cannot start the container at all, for example without the
		// command.
		failures = own.with(reasonFailed, record.KindCrashed)
		again = own.with(record.KindRestarted)
	}
	probes := own.with(reasonUnhealthy) // Only a container that runs has them.
	if len(created)+len(started)+len(failures)+len(again)+len(probes) == 0 {
		return p, false
	}
	p = phase{name: "start", container: container, start: created.first(), end: started.first(), warnings: failures}
	if p.end == 0 {
		p.end = earliest(again.first(), probes.first())
	}
	if p.start == 0 {
		p.start = cmp.Or(own.with(reasonPulled, record.KindPresent).first(), failures.first(), p.end)
	}
	if p.end == 0 {
		p.end, p.missing = max(p.start, failures.last()), reasonStarted
		p.failed = len(failures) > 0
	}
	return p.ordered(), true
}

// restart is from the first time that a container that had started ended, to its last start.
func restart(own occurrences, container string) (p phase, ok bool) {
	again, started := own.with(restartKinds...), own.with(reasonStarted)
	neverStarted := len(started)+len(own.with(record.KindRestarted)) == 0 && len(own.with(reasonFailed)) > 0
	if len(again) == 0 || neverStarted {
		return p, false
	}
	p = phase{name: "restart", container: container, start: again.first(), warnings: again}
	for _, e := range again {
		p.ended = newestEnd(p.ended, e.Ended)
	}
	for _, e := range started {
		p.restarts, p.ended = max(p.restarts, e.Count-1), newestEnd(p.ended, e.Ended)
	}
	// Within a second, the end comes after the start: a back-off takes longer.
	if p.end = started.last(); p.end <= again.last() {
		p.end, p.missing, p.failed = again.last(), reasonStarted, true
	}
	return p.ordered(), true
}

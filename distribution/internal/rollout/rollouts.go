// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Result is what is known of a revision.
type Result struct {
	// Parts are to be delivered, those that have changed.
	Parts []Part
	// Complete reports that everything that was planned has started, in all rollouts of the revision.
	Complete bool
	// Settled reports that no more news are expected: the rollouts are complete, and the pods of older
	// revisions have ended.
	Settled bool
}

// Part is a tree of spans that is delivered as a whole: the span of a rollout, a pod, or the end of
// a pod.
type Part struct {
	Key   string // what Revision.Sent has its hash by
	Spans []Span
}

// The beginnings of keys. The rest is the UID of the pod, or of the record that began the rollout.
const (
	rootPart = "r/"
	podPart  = "p/"
	stopPart = "s/"
)

// IsStop reports whether the part is the end of a pod. The rollout that ended it can begin until
// StopWindow later.
func (p *Part) IsStop() bool { return strings.HasPrefix(p.Key, stopPart) }

// run is one rollout of a revision, with what belongs to it.
type run struct {
	episode
	end     int64 // of the first start of the last pod
	active  int64 // until when something happened that belongs to the rollout
	pods    []*view
	initial []*view // without those that a later scale-up made
	created int     // pods that were created in the rollout
	scaled  int     // pods that the owner scaled it up to; 0: not known
	wanted  int     // pods that it wanted, if scaled is not known
	raised  int64   // time of the last scale-up
	dropped int     // pods of it that the owner took back before they started
	before  int     // pods that it had before the first scale-up that is known
	events  occurrences
	last    int64       // the last time of an Event or a scaling
	late    occurrences // warnings that are no part of the rollout, such as those of a later scale-up
	begins  bool        // the first record is one that begins a rollout
	hasOwn  bool        // an Event above the pods shows that the rollout exists
}

// Spans returns the spans of a revision. There are none if it is not known which pods the revision
// has.
func (w *Workload) Spans(revision string, o Options) (result Result) {
	if w.lacks {
		return Result{Complete: true, Settled: true}
	}
	r := w.Revisions[revision]
	h := w.history()
	o.job = IsJob(revision)
	views := w.views(revision, o)
	result.Complete = true
	for _, e := range h {
		if e.revision != revision {
			continue
		}
		x := w.newRun(h, e, views, o)
		if !x.isKnown() {
			continue
		}
		result.Complete = result.Complete && x.isComplete()
		result.Parts = append(result.Parts, Part{rootPart + e.activation, []Span{w.rollout(r, x)}})
	}
	for i := range views {
		result.Parts = append(result.Parts, w.pod(h, revision, &views[i])...)
	}
	// A container that ended once can end again, and a probe that fails can succeed.
	changes := slices.ContainsFunc(views, func(v view) bool { return v.hasRestarted() || v.hasFailed() })
	result.Settled = result.Complete && !changes && !w.hasOlderPods(revision)
	return result
}

// views returns the pods of a revision, the first one first.
func (w *Workload) views(revision string, o Options) []view {
	r := w.Revisions[revision]
	views := make([]view, 0, len(r.Pods))
	for uid, pod := range r.Pods {
		views = append(views, viewOf(uid, pod, r, w.Names, o))
	}
	slices.SortFunc(views, func(a, b view) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.uid, b.uid)) })
	return views
}

// hasOlderPods reports whether a pod of an older revision is not known to have ended.
func (w *Workload) hasOlderPods(revision string) bool {
	for _, r := range w.older(revision, w.Revisions[revision].start()) {
		if s, ok := r.stepBefore(always); ok && s.To == 0 {
			continue
		}
		for _, pod := range r.Pods {
			_, deleted := r.Names.Deleted[pod.Name]
			if !deleted && !isStopping(pod) {
				return true
			}
		}
	}
	return false
}

// older returns the revisions whose pods a rollout that began at this time can replace. A Job replaces none.
func (w *Workload) older(than string, began int64) (all []*Revision) {
	for name, r := range w.Revisions {
		if !IsJob(than) && name != than && w.siblings(name, than) && r.start() < began {
			all = append(all, r)
		}
	}
	return all
}

// isStopping reports whether a kubelet killed the pod. If a container started later, the pod only got a new sandbox.
func isStopping(pod *Pod) bool {
	killed, started := int64(0), int64(0)
	for _, e := range pod.Events {
		switch e.kind() {
		case kindStopping:
			killed = max(killed, e.Last)
		case reasonStarted:
			started = max(started, e.Last)
		}
	}
	return killed != 0 && killed >= started
}

func (w *Workload) newRun(h history, e episode, views []view, o Options) *run {
	r := w.Revisions[e.revision]
	x := &run{episode: e, end: e.start, active: e.start}
	next := h.end(e)
	for i := range views {
		if v := &views[i]; v.start != 0 && h.at(e.revision, v.began) == e {
			x.pods = append(x.pods, v)
		}
	}
	w.addInitial(x, o)
	until := min(next, x.active+int64(o.Idle))
	x.created = countBetween(r.Names.Created, e.start-skew, until)
	for _, step := range r.steps() {
		if step.At >= e.start && step.At < until {
			x.addStep(step)
		}
	}
	for _, event := range inOrder(r.Events) {
		switch {
		case event.First < until && event.Last >= e.start, event.Warning && IsJob(e.revision):
			// A Job is not over when its pods have started: it can fail hours later.
			x.addEvent(event, next)
		case event.Warning && event.First >= until && event.First < next:
			x.late = append(x.late, event)
		}
	}
	if x.scaled == 0 {
		x.wanted = w.wanted(x, until)
	} else {
		w.noteEvicted(x)
		x.dropped = w.dropped(h, x)
	}
	// If the revision had pods before, its start is not known.
	x.begins = (x.begins || x.created > 0) && x.before == 0
	return x
}

// createPause is how long a controller waits at most before it tries again to create a pod: the greatest delay of
// client-go's workqueue.DefaultTypedControllerRateLimiter.
const createPause = int64(1000 * time.Second)

// addInitial finds the pods that started without a pause, or that replaced others. Pods that a scale-up makes
// hours later belong to the trace, but do not make the rollout longer. While the owner cannot create pods, it
// emits warnings: this is no pause. Neither is the time before the first pod.
func (w *Workload) addInitial(x *run, o Options) {
	warnings := inOrder(w.Revisions[x.revision].Events).warnings()
	for _, v := range x.pods {
		since, pause := x.active, int64(o.Idle)
		if failed := warnings.goOn(since, v.began, max(pause, createPause)); failed > since {
			since, pause = failed, max(pause, createPause)
		}
		if pauses := v.began > since+pause && len(x.initial) > 0; pauses && !w.replacesAt(x, v, o) {
			break
		}
		x.initial = append(x.initial, v)
		x.end, x.active = max(x.end, v.end), max(x.active, v.active)
		x.begins = x.begins || v.created != 0
	}
}

// replacesAt reports whether a pod of an older revision ended less than a minute before: then a new pod is part of
// an update, which can pause for hours. An end that comes later does not count: its record does not make the
// connector deliver this revision again.
func (w *Workload) replacesAt(x *run, v *view, o Options) bool {
	hasName := slices.ContainsFunc(x.initial, func(other *view) bool { return other.pod.Name == v.pod.Name })
	for _, r := range w.older(x.revision, x.start) {
		for uid, pod := range r.Pods {
			if !isStopping(pod) {
				continue
			}
			// A pod of a StatefulSet can take long to end, and the next one of its name waits for that.
			other := viewOf(uid, pod, r, w.Names, o)
			isFormer := pod.Name == v.pod.Name && !hasName && other.stopped >= x.start-skew && other.stopped <= v.began+skew
			if isFormer || other.makesRoom(v.began) {
				return true
			}
		}
	}
	return false
}

// makesRoom reports whether the end of the pod began less than StopWindow before: a pod that was created then can
// have its place.
func (v *view) makesRoom(at int64) bool {
	return v.stopped <= at+skew && at-v.stopped <= int64(StopWindow)
}

// goOn returns until when something happened from a time on without a pause.
func (o occurrences) goOn(from, until, pause int64) int64 {
	for _, e := range o {
		if e.First <= from+pause && e.Last > from {
			from = min(e.Last, until)
		}
	}
	return from
}

func (x *run) addEvent(e *occurrence, next int64) {
	x.events = append(x.events, e)
	x.hasOwn, x.last = x.hasOwn || e.Last < next, max(x.last, e.Last)
	x.begins = x.begins || e.Reason == ReasonCreatedPod
}

func (x *run) addStep(s Step) {
	x.last = max(x.last, s.At)
	if !s.Up {
		return
	}
	if x.scaled == 0 || s.From < x.before {
		x.before = s.From
	}
	x.hasOwn, x.scaled, x.raised = true, max(x.scaled, s.To), s.At
	x.begins = x.begins || s.From == 0
}

func countBetween(names map[string][]int64, from, until int64) (count int) {
	for times := range maps.Values(names) {
		if isBetween(times, from, until) {
			count++
		}
	}
	return count
}

func isBetween(times []int64, from, until int64) bool {
	return slices.ContainsFunc(times, func(at int64) bool { return at >= from && at < until })
}

// isKnown reports whether there is more than the end of pods.
func (x *run) isKnown() bool {
	return len(x.pods)+x.created > 0 || x.hasOwn
}

func (x *run) count(condition func(*view) bool) (count int) {
	for _, v := range x.initial {
		if condition(v) {
			count++
		}
	}
	return count
}

func (x *run) started() int {
	return x.count(func(v *view) bool { return v.hasStarted() && !v.gone })
}

func (x *run) failed() int { return x.count((*view).hasFailed) }

func (x *run) healthy() int {
	return x.count(func(v *view) bool { return v.hasStarted() && !v.hasFailed() && !v.gone })
}

func (x *run) isComplete() bool {
	return x.planned() > 0 && x.healthy() >= x.planned()
}

// failure returns why the rollout failed; empty: it did not. A Job can fail although its pods have
// started.
func (x *run) failure() string {
	complete := x.isComplete()
	if complete && !IsJob(x.revision) {
		return ""
	}
	for _, v := range slices.Backward(x.initial) {
		if v.hasFailed() && !complete {
			return v.failure()
		}
	}
	pods := x.initial
	if IsJob(x.revision) {
		pods = x.pods // It can create one hours later.
	}
	for _, e := range slices.Backward(x.events.warnings()) {
		// A pod that was created later shows that the owner can create pods.
		if len(pods) == 0 || pods[len(pods)-1].began < e.Last {
			return e.Message
		}
	}
	return ""
}

// maxMissing bounds the list of what is missing.
const maxMissing = 20

// missing returns what a rollout that is not complete waits for.
func (x *run) missing() (all []string) {
	if x.isComplete() {
		return nil
	}
	for _, v := range x.initial {
		if reason := v.missing(); reason != "" && !v.gone && len(all) < maxMissing {
			all = append(all, v.pod.Name+": "+reason)
		}
	}
	if x.planned() == 0 {
		return []string{"no pod was created"}
	}
	if seen := x.count(func(v *view) bool { return !v.gone }); seen < x.planned() {
		all = append(all, plural(x.planned()-seen, "pod")+" without a record")
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// run is one rollout of a revision, with what belongs to it.
type run struct {
	episode
	until    int64 // when another rollout began, or this one was taken back; always: nothing did
	end      int64 // of the first start of the last pod
	closed   int64 // when it was complete, replaced or taken back, and something else began; always: it was not
	pods     []*view
	initial  []*view // without those that a later scale-up made
	planned  int     // pods that it wants
	lowered  int     // pods that the owner scaled it down to afterwards; 0: it did not
	scaled   int     // pods that the owner scaled it up to; 0: not known
	first    int     // pods of the first scale-up
	before   int     // pods that it had before the first scale-up that is known
	left     int     // pods of former revisions that are left
	leftOf   string
	proof    int64 // when a former revision was last scaled down: the controller does this when new pods are available
	events   occurrences
	last     int64  // the last time of an Event or a scaling
	begins   bool   // the first record is one that begins a rollout
	hasOwn   bool   // a record that is not about a pod shows that the rollout exists
	replaced string // the revision that it replaces; empty: not known, or none
	now      int64  // of the Options, or until when what happens can change what it was
	decided  int64  // when time alone does not change it any more
}

// runs returns the rollouts of a revision, the oldest first, and its pods.
func (w *Workload) runs(h history, revision string, o Options) (all []*run, views []*view) {
	for uid, pod := range w.Revisions[revision].Pods {
		views = append(views, viewOf(uid, pod, w.Revisions[revision], w.Names))
	}
	slices.SortFunc(views, func(a, b *view) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.uid, b.uid)) })
	for _, e := range h.episodes {
		if e.revision != revision {
			continue
		}
		if x := w.newRun(h, e, views, o); x.isKnown() && !w.isOlder(h, x) {
			all = append(all, x)
		}
	}
	return all, views
}

func (w *Workload) newRun(h history, e episode, views []*view, o Options) *run {
	r := w.Revisions[e.revision]
	x := &run{episode: e, end: e.start, until: w.nextOf(h, e), replaced: w.replacedBy(h, e), now: o.Now.UnixNano()}
	if x.until != always {
		x.decided = x.until + pause
		x.now = min(x.now, x.decided)
	}
	w.noteFormer(h, x)
	for _, v := range views {
		if v.start != 0 && h.at(e.revision, v.began) == e {
			v.judge(x)
			x.decided = max(x.decided, v.decided)
			x.pods = append(x.pods, v)
		}
	}
	next := h.end(e)
	steps := slices.DeleteFunc(slices.Clone(h.stepsOf(r)), func(s Step) bool { return s.At < e.start || s.At >= next })
	until := x.closedBy(steps, next)
	x.closed = until
	if x.until != always { // The last pods of one that another rollout replaced, or that was taken back, end a bit later.
		x.closed = min(until, x.until+int64(StopWindow))
	}
	for _, v := range x.pods {
		if v.began <= until {
			x.initial, x.end = append(x.initial, v), max(x.end, v.end)
			x.begins = x.begins || v.created != 0
		}
	}
	for _, times := range r.Names.Created {
		x.hasOwn = x.hasOwn || isBetween(times, e.start-skew, until)
	}
	for _, step := range steps {
		x.addStep(step, until)
	}
	for _, event := range inOrder(r.Events) {
		// A Job is not over when its pods have started: it can fail hours later.
		if event.First < until && event.Last >= e.start || IsJob(e.revision) {
			x.addEvent(event, next)
		}
	}
	x.planned = w.plan(x, until)
	if x.jobEnded() {
		for _, v := range x.pods {
			v.settled = true
		}
	}
	return x
}

// nextOf returns when another rollout of the owner began, or this one was taken back.
func (w *Workload) nextOf(h history, e episode) int64 {
	until := always
	if e.undone != 0 {
		until = e.undone
	}
	for _, other := range h.episodes {
		if other.start > e.start && w.siblings(other.revision, e.revision) {
			return min(until, other.start)
		}
	}
	return until
}

// noteFormer notes how many pods of former revisions are left, and when the last of them was taken
// away.
func (w *Workload) noteFormer(h history, x *run) {
	for _, name := range h.revisions {
		r := w.Revisions[name]
		if name == x.revision || r.First >= x.start || !w.siblings(name, x.revision) {
			continue
		}
		left, ended := 0, 0
		for _, at := range w.endsOf(h, name) {
			if at == 0 || at >= x.until {
				left++
			} else if at >= x.start-skew {
				ended++
				x.proof = max(x.proof, at)
			}
		}
		steps := h.stepsOf(r)
		if _, s, ok := steps.since(x.until); ok {
			left = max(0, min(s.To, steps.replicas(x.start)-ended))
			x.proof = steps.down(x.start, x.until)
		}
		if x.left += left; left > 0 {
			x.leftOf = name
		}
	}
}

// endOf returns when a pod was deleted, or killed; 0: nothing shows that it was.
func (w *Workload) endOf(r *Revision, pod *Pod) int64 {
	at := firstAfter(bothTimes(r.Names.Deleted[pod.Name], w.Names.Deleted[pod.Name]), r.began(pod))
	if !isStopping(pod) {
		return at
	}
	return earliest(at, inOrder(pod.Events).with(record.KindStopping).first())
}

// closedBy returns when the rollout was complete, and something else began; until: it was not. The
// steps are in the order of time, as are the pods.
func (x *run) closedBy(steps []Step, until int64) int64 {
	wanted, count, started, last, isScaled := 0, 0, 0, int64(0), len(steps) > 0
	complete := func() (at int64) {
		switch {
		case x.left > 0, started == 0, started < cmp.Or(wanted, count):
			return always
		case !isScaled: // A StatefulSet can take long between two pods.
			return max(last, x.proof) + patience
		case x.proof >= last:
			return x.proof
		}
		return last + int64(StopWindow)
	}
	scale := func(until int64) (closed bool) {
		for len(steps) > 0 && steps[0].At <= until {
			if steps[0].Up && steps[0].At > complete() {
				return true
			}
			wanted, steps = steps[0].To, steps[1:]
		}
		return false
	}
	for _, v := range x.pods {
		if scale(v.began) || v.began > complete() {
			break
		}
		if count++; v.startedAt() != 0 {
			started, last = started+1, max(last, v.end, v.began)
		}
	}
	scale(until)
	return min(until, complete())
}

func (x *run) addEvent(e *occurrence, next int64) {
	x.events = append(x.events, e)
	x.hasOwn, x.last = x.hasOwn || e.Last < next, max(x.last, e.Last)
	x.begins = x.begins || e.Reason == ReasonCreatedPod
}

// addStep adds a scaling of the revision.
func (x *run) addStep(s Step, until int64) {
	switch {
	case !s.Up && s.To > 0 && s.At < x.until-int64(StopWindow): // Else for the sake of the next rollout.
		x.lowered = s.To
	case s.Up && s.At <= until:
		if x.scaled == 0 {
			x.before = s.From
		}
		x.first, x.scaled, x.lowered = cmp.Or(x.first, s.To-s.From), max(x.scaled, s.To), 0
		x.hasOwn, x.last = true, max(x.last, s.At)
		x.begins = x.begins || s.From == 0
	}
}

func isBetween(times []int64, from, until int64) bool {
	return slices.ContainsFunc(times, func(at int64) bool { return at >= from && at < until })
}

// plan returns how many pods the rollout wants, and notes which are gone. A Deployment says it: by
// how many pods it scaled the revision up, without those that it took back before they started.
// Records of that can be missing: a controller writes at most 25 Events about a Deployment at once.
// Then the pods count that have not ended.
func (w *Workload) plan(x *run, until int64) int {
	if x.scaled == 0 {
		return w.wanted(x, until)
	}
	deleted := w.Revisions[x.revision].Names.Deleted
	for _, v := range x.initial { // The owner replaces a pod that it did not delete.
		v.gone = v.stop != nil && len(deleted[v.pod.Name]) == 0 && x.initial[len(x.initial)-1].began >= v.stopped-skew
	}
	by := x.scaled - x.before
	if x.lowered > 0 {
		by = min(by, max(x.lowered-x.before, x.count((*view).isHealthy)))
	}
	if x.before == 0 && x.count((*view).isHealthy) <= by || x.lowered > 0 {
		return by
	}
	return max(by, x.count(x.isAlive))
}

func (x *run) isAlive(v *view) bool { return v.stop == nil || v.stopped > x.end }

// wanted returns how many pods the owner wants, if no scaling has a record: a StatefulSet, a
// DaemonSet and a Job emit none. It leaves out pods that ended, were deleted or were replaced
// before the rollout ended.
func (w *Workload) wanted(x *run, until int64) (count int) {
	latest, seen := map[string]*view{}, map[string]bool{}
	for i, v := range x.initial {
		v.gone = w.isDeleted(x, v.pod.Name, v.began) || !x.isAlive(v)
		place := w.placeOf(x.revision, v.pod)
		if former := latest[place]; former != nil {
			former.gone = true
		}
		if IsJob(x.revision) {
			v.replaceIn(x.initial[:i])
		}
		latest[place], seen[v.pod.Name] = v, true
	}
	for name, times := range w.Revisions[x.revision].Names.Created { // Pods of which there is no other record.
		if !seen[name] && isBetween(times, x.start-skew, until) && !w.isDeleted(x, name, times[0]) {
			count++
		}
	}
	for _, v := range latest {
		if !v.gone {
			count++
		}
	}
	if count > 0 {
		return count
	}
	for _, v := range latest {
		v.gone = false // Nothing came after it.
	}
	return len(latest)
}

// retryDelay is the shortest time after which a Job replaces a pod that has failed.
const retryDelay = int64(10 * time.Second)

// replaceIn notes that the pod of a Job takes the place of one that had started before. No Event
// says that a pod has ended: a Job that needs several pods, one after the other, looks the same.
func (v *view) replaceIn(earlier []*view) {
	for _, former := range earlier {
		if started := former.startedAt(); !former.gone && started != 0 && v.began >= started+retryDelay {
			former.gone = true
			return
		}
	}
}

// isDeleted reports whether the owner deleted a pod that began at a time, before the rollout ended.
func (w *Workload) isDeleted(x *run, name string, began int64) bool {
	at := firstAfter(bothTimes(w.Revisions[x.revision].Names.Deleted[name], w.Names.Deleted[name]), began)
	return at != 0 && at <= x.end
}

// isKnown reports whether there is more than the end of pods.
func (x *run) isKnown() bool { return len(x.pods) > 0 || x.hasOwn }

// isOlder reports whether a rollout began before all that is known of it: a scaling of an older
// revision is known first. The trace of the rollout was delivered, unless nobody saw it.
func (w *Workload) isOlder(h history, x *run) bool {
	steps := h.stepsOf(w.Revisions[x.revision])
	if x.replaced != "" || x.activation != "" || len(steps) == 0 || x.start < steps[0].At-skew {
		return false
	}
	began := 0
	for _, v := range x.pods {
		if v.began <= steps[0].At+int64(StopWindow) {
			began++
		}
	}
	hadPods := steps[0].From > 0 && began < max(steps[0].From, steps[0].To)
	return hadPods || w.Activations[h.recordOf(x.episode)].Repeated
}

// count counts pods that are not gone.
func (x *run) count(condition func(*view) bool) (count int) {
	for _, v := range x.initial {
		if !v.gone && condition(v) {
			count++
		}
	}
	return count
}

// done returns when all pods had started; 0: they have not. Those of another scale-up of a first
// rollout do not count.
func (x *run) done() (at int64) {
	count := x.planned
	if x.replaced == "" && x.first > 0 {
		count = min(count, x.first)
	}
	for _, v := range x.initial {
		switch started := v.startedAt(); {
		case count == 0:
			return at
		case started != 0:
			at, count = max(at, started), count-1
		case !v.gone:
			return 0
		}
	}
	if count > 0 {
		return 0
	}
	return at
}

func (v *view) isHealthy() bool { return v.hasStarted() && !v.hasFailed() }

// Outcomes of a rollout. docs/rollouts.md defines them.
const (
	Complete   = "complete"
	Failed     = "failed"
	Superseded = "superseded"
	Incomplete = "incomplete"
)

func (x *run) outcome() string {
	hasPods := x.planned > 0 && x.count((*view).isHealthy) >= x.planned
	switch {
	case len(x.events.with(reasonCompleted)) > 0, hasPods && x.left == 0 && !IsJob(x.revision):
		return Complete
	case x.until == always && x.failsOnlyProbes() && x.now < x.end+patience: // The programs start.
		return Incomplete
	case x.failure() != "":
		return Failed
	case x.until != always:
		return Superseded
	}
	return Incomplete
}

func (x *run) jobEnded() bool {
	return IsJob(x.revision) && len(x.events.with(slices.Concat(record.JobFailures, []string{reasonCompleted})...)) > 0
}

// failure returns why the rollout fails if it is not complete; empty: nothing fails.
func (x *run) failure() string {
	for _, v := range slices.Backward(x.initial) {
		if v.hasFailed() && !v.gone {
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
	for _, v := range x.initial {
		reason := v.missing()
		if reason == "" && v.hasFailed() {
			reason = "Ready"
		}
		if reason != "" && !v.gone && len(all) < maxMissing {
			all = append(all, v.pod.Name+": "+reason)
		}
	}
	if seen := x.count(func(*view) bool { return true }); seen < x.planned {
		all = append(all, Plural(x.planned-seen, "pod")+" without a record")
	}
	if x.left > 0 {
		all = append(all, Plural(x.left, "pod")+" of "+x.leftOf+" left")
	}
	switch {
	case x.planned == 0:
		return []string{"no pod was created"}
	case len(all) == 0 && IsJob(x.revision):
		return []string{reasonCompleted}
	}
	return all
}

// Plural returns a number of things.
func Plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// wait returns how long the rollout waits for news before it is delivered, as it is.
func (x *run) wait(o Options) time.Duration {
	switch outcome := x.outcome(); {
	case x.until != always, x.jobEnded():
		return o.Settle
	case outcome == Complete:
		return x.longest(o)
	case IsJob(x.revision) && outcome == Incomplete:
		return jobWait
	case x.failsOnlyProbes(), x.proof > x.start && x.left > 0 && outcome == Incomplete:
		return 2 * o.Idle // It goes on, slowly.
	}
	return max(o.Idle, x.longest(o))
}

// longest returns how long its pods wait at most.
func (x *run) longest(o Options) (wait time.Duration) {
	for _, v := range x.initial {
		wait = max(wait, v.wait(o))
	}
	return wait
}

// jobWait is the longest time that a Job can run without a record, so that its end is in its trace.
const jobWait = 24 * time.Hour

// failsOnlyProbes reports whether pods can still become ready.
func (x *run) failsOnlyProbes() bool {
	return len(x.events.warnings()) == 0 && x.count((*view).hasFailed) > 0 && !slices.ContainsFunc(x.initial, func(v *view) bool {
		return v.hasFailed() && (!v.hasStarted() || len(v.failing.without(reasonUnhealthy)) > 0)
	})
}

// wait returns how long a pod waits for news before it is delivered, as it is.
func (v *view) wait(o Options) time.Duration {
	switch {
	case v.stop != nil, v.settled:
		return o.Settle
	case v.isHealthy() && !v.hasRestarted(): // A container that ended once can end again.
		return max(o.Settle, min(StopWindow, o.Idle))
	}
	return o.Idle
}

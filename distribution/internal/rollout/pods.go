// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// Options has what spans depend on, other than records.
type Options struct {
	// Idle is the time that a rollout that is not complete waits for news, before it is delivered.
	Idle time.Duration
	// Settle is the time that a complete rollout waits for news, before it is delivered.
	Settle time.Duration
	// Now decides whether something still fails: no Event says that a probe succeeds, or that a
	// container goes on.
	Now time.Time
}

// patience is the time that a program has to become ready. What happens later is no part of its
// start.
const patience = int64(5 * time.Minute)

// pause is the time after which a probe that has failed has succeeded, if it has not failed again,
// and in which what ends a rollout can end its pods.
const pause = int64(StopWindow) / 2

// view holds what is known of one pod, in the order of time.
type view struct {
	uid     string
	pod     *Pod
	began   int64
	created int64       // 0: not known
	start   int64       // 0: nothing shows that it started; only its end is known
	end     int64       // of the last container's first start
	active  int64       // until when something happened that belongs to the start, such as crashes
	events  occurrences // without those of its end
	phases  []phase
	others  occurrences // warnings that belong to no phase
	failing occurrences // those of others that did not recover
	limit   int64       // what happens later is no part of its start
	settled bool        // it is proven to be available, or its Job has ended
	decided int64       // when it is known whether a container that crashed goes on; 0: it is
	stop    *phase      // the end of the pod; nil: it is not known to have ended
	stopped int64
	// gone reports that the pod ended, was deleted, or lost its place to another one before its
	// rollout ended. If the owner says how many pods it wants, only pods that it did not delete can
	// be gone: it replaces them.
	gone bool
}

// viewOf needs the names of the workload, too: a StatefulSet creates pods itself.
func viewOf(uid string, pod *Pod, r *Revision, workload Names) *view {
	v := &view{uid: uid, pod: pod, began: r.began(pod), limit: always}
	all := inOrder(pod.Events)
	v.events = all.without(record.KindStopping)
	created := bothTimes(r.Names.Created[pod.Name], workload.Created[pod.Name])
	v.created = latestUntil(created, v.began+int64(time.Second))
	v.began = earliest(v.began, v.created)
	if isStopping(pod) {
		killed := all.with(record.KindStopping).since(all.with(reasonStarted).last())
		deleted := deletion(killed.first(), r.Names.Deleted[pod.Name], workload.Deleted[pod.Name])
		v.stopped = cmp.Or(deleted, killed.first())
		v.stop = stopOf(all, killed, deleted)
		v.events = v.events.which(func(e *occurrence) bool { return !v.stop.hasWarning(e) })
	}
	if len(v.events) > 0 {
		v.addStart()
	}
	return v
}

// addStart finds the phases of the pod's start.
func (v *view) addStart() {
	v.addPhases()
	v.others = v.events.warnings().which(func(e *occurrence) bool { return !isClaimed(e) })
	v.start = v.began
	for _, p := range v.phases {
		v.start = min(v.start, p.start) // A pull can have begun before the first record.
	}
	v.end = v.endOf(func(p *phase) bool { return p.name != "restart" })
	v.active = v.end
}

// judge decides what failed at the start of the pod, which was a part of a rollout.
func (v *view) judge(x *run) {
	if started := v.startedAt(); started != 0 {
		v.limit = started + patience
		if x.left == 0 && !IsJob(x.revision) { // Nothing waits for the pod any more.
			v.settled = x.proof >= started
			v.limit = max(x.proof, started+int64(StopWindow))
		}
	}
	for i := range v.phases {
		if p := &v.phases[i]; p.name == "restart" {
			soon := p.end + patience/2
			p.late = p.start > v.limit
			// A container that crashed again and again can run at this moment: a proof shows that
			// it goes on, or some time.
			isRecent := min(x.until, x.now)-p.end <= patience
			crashes := x.left > 0 && x.proof < p.end && isRecent && p.warnings.count() >= leastCrashes
			if crashes && p.missing == "" && x.until == always {
				v.decided = max(v.decided, p.end+patience+1)
			}
			p.fail(p.end <= v.limit && !IsJob(x.revision) && (crashes || v.endedBefore(soon)))
		}
	}
	v.failing = v.others.which(func(e *occurrence) bool {
		return !e.Harmless && e.First <= v.limit && !v.recovered(e, x)
	})
	v.active = v.endOf(func(p *phase) bool { return !p.late })
}

// leastCrashes is the number of crashes from which on a container that runs again is not taken for
// healthy.
const leastCrashes = 2

// startedAt returns when the last container started that is known; 0: one of them has not.
func (v *view) startedAt() (at int64) {
	for _, p := range v.phases {
		if p.name == "start" && p.missing != "" {
			return 0
		}
		if p.name == "start" {
			at = max(at, p.end)
		}
	}
	return at
}

// bothTimes returns what the owner of the pods and the workload have noted, in the order of time.
func bothTimes(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return all
}

// deletion returns when the owner deleted the pod; 0: not known. A ReplicaSet uses a name once, and
// a StatefulSet again: its last deletion before the kubelet killed the pod is that of this pod.
func deletion(killed int64, own, workload []int64) int64 {
	if len(own) > 0 {
		return own[0]
	}
	if at := latestUntil(workload, killed+int64(time.Second)); at != 0 && killed-at <= int64(StopWindow) {
		return at
	}
	return 0
}

func firstAfter(times []int64, after int64) int64 {
	for _, at := range times {
		if at > after {
			return at
		}
	}
	return 0
}

func latestUntil(times []int64, until int64) (latest int64) {
	for _, at := range times {
		if at <= until {
			latest = at
		}
	}
	return latest
}

func (v *view) addPhases() {
	if p, ok := schedule(v.events, v.created); ok {
		v.phases = append(v.phases, p)
	}
	for _, container := range v.events.containers() {
		own := v.events.in(container)
		for _, phase := range []func(occurrences, string) (phase, bool){pull, start, restart} {
			if p, ok := phase(own, container); ok {
				v.phases = append(v.phases, p)
			}
		}
	}
}

// endedBefore reports whether the pod ended before a time.
func (v *view) endedBefore(at int64) bool { return v.stop != nil && v.stop.start < at }

// isStopping reports whether a kubelet killed the pod. If a container started later, the pod only
// got a new sandbox.
func isStopping(pod *Pod) bool {
	killed, started := int64(0), int64(0)
	for _, e := range pod.Events {
		switch e.kind() {
		case record.KindStopping:
			killed = max(killed, e.Last)
		case reasonStarted:
			started = max(started, e.Last)
		}
	}
	return killed != 0 && killed >= started
}

// recovered reports whether something shows that a warning is over.
func (v *view) recovered(warning *occurrence, x *run) bool {
	if warning.Reason != reasonUnhealthy {
		later := v.events.with(reasonPulling, reasonPulled, record.KindPresent, reasonCreated, reasonStarted)
		return len(later) > 0 && later.last() >= warning.Last
	}
	if started := v.startedAt(); started != 0 && x.proof >= max(started, warning.Last) {
		return true
	}
	many := v.events.without(ReasonScheduled, reasonUnplaced).count() >= ManyEvents
	quiet, wait := pause, pause
	switch {
	// The probe of a healthy pod can fail while it ends: only the first failure is one of the start.
	case warning.Last > x.now, !many && v.stop != nil && warning.Last >= v.stop.start:
		return x.now-warning.First > pause
	case many: // The kubelet writes one in five minutes, however often the probe fails.
		quiet = patience + patience/2
		wait = quiet
	case x.until == always: // Else another rollout ends the time in which it can fail again.
		wait = 2 * pause
	}
	return x.now-warning.Last > wait && !v.endedBefore(warning.Last+quiet)
}

// ManyEvents is near the 25 Events that a kubelet writes about a pod at once: the model does not
// need all of them.
const ManyEvents = 20

// endOf returns the end of the last of some phases. If one of them has not ended, or no container
// started, it returns the time of the last Event.
func (v *view) endOf(counts func(*phase) bool) (end int64) {
	started := false
	for i := range v.phases {
		p := &v.phases[i]
		if !counts(p) {
			continue
		}
		if p.missing != "" {
			return max(end, v.events.last())
		}
		end = max(end, p.end)
		started = started || v.isStart(p)
	}
	if !started {
		end = max(end, v.events.last())
	}
	return end
}

// isStart reports whether the phase is the start of a container that goes on.
func (v *view) isStart(p *phase) bool {
	return p.name == "start" && !slices.ContainsFunc(v.events, func(e *occurrence) bool { return e.Container == p.container && e.Init })
}

// stopOf returns the end of a pod: from the deletion, or the first Killing, to the last Killing. No
// Event says that the pod is gone.
func stopOf(all, killed occurrences, deleted int64) *phase {
	p := phase{name: "stop", start: killed.first(), end: killed.last()}
	if deleted != 0 {
		p.start = min(deleted, p.start)
	}
	p.warnings = all.which(p.hasWarning)
	p = p.ordered()
	return &p
}

// hasWarning reports whether a warning belongs to the end of a pod. A scheduler has no part in it.
func (p *phase) hasWarning(e *occurrence) bool {
	return e.Warning && e.First >= p.start && e.kind() != reasonUnplaced
}

// hasStarted reports whether all containers that are known have started, one of them at least.
func (v *view) hasStarted() bool { return v.missing() == "" }

// missing returns what the pod still waits for; empty: nothing.
func (v *view) missing() string {
	missing := reasonStarted
	for i := range v.phases {
		p := &v.phases[i]
		if p.missing != "" && !p.late {
			return p.missing
		}
		if v.isStart(p) {
			missing = ""
		}
	}
	return missing
}

func (v *view) hasRestarted() bool {
	return slices.ContainsFunc(v.phases, func(p phase) bool { return p.name == "restart" })
}

func (v *view) hasFailed() bool {
	return len(v.failing) > 0 || slices.ContainsFunc(v.phases, func(p phase) bool { return p.failed && !p.late })
}

// failure returns why the pod has failed; empty: it has not.
func (v *view) failure() string {
	for _, p := range v.phases {
		if p.failed && !p.late {
			return p.failure()
		}
	}
	if len(v.failing) > 0 {
		return v.failing[len(v.failing)-1].Message
	}
	return ""
}

// failure returns why the phase has failed: how the container ended, and the last message that has a
// cause, else the last one.
// Empty: it has not failed.
func (p *phase) failure() string {
	if !p.failed {
		return ""
	}
	causes := p.warnings.which(func(e *occurrence) bool { return record.HasCause(e.Message) })
	if len(causes) == 0 {
		causes = p.warnings
	}
	message := slices.MaxFunc(causes, func(a, b *occurrence) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.uid, b.uid))
	}).Message
	if p.ended != nil {
		return p.ended.String() + ": " + message
	}
	return message
}

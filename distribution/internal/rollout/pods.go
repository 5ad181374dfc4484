// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Options are what spans depend on, other than records.
type Options struct {
	// Idle is how long a rollout waits for news.
	Idle time.Duration
	// Now decides one question only: whether a probe still fails. No Event says that it succeeds.
	Now time.Time
	// job reports whether the pods belong to a Job: their end is no failure.
	job bool
}

// view is what is known of one pod, in the order of time.
type view struct {
	uid     string
	pod     *Pod
	began   int64 // by the clocks of controllers and schedulers, if they have a record of it
	created int64 // 0: not known
	start   int64 // 0: nothing shows that it started; only its end is known
	end     int64 // of the last container's first start
	active  int64 // until when something happened that belongs to the start, such as crashes
	phases  []phase
	others  occurrences // warnings that belong to no phase
	failing occurrences // those of others that did not recover
	stop    *phase      // the end of the pod; nil: it is not known to have ended
	stopped int64       // as began
	// gone reports that the pod ended, was deleted, or lost its place to another one before its rollout ended. If the
	// owner says how many pods it wants, only pods that it did not delete can be gone: it replaces them.
	gone bool
}

// viewOf needs the names of the workload, too: a StatefulSet creates pods itself.
func viewOf(uid string, pod *Pod, r *Revision, workload Names, o Options) view {
	v := view{uid: uid, pod: pod, began: r.began(pod)}
	all := inOrder(pod.Events)
	began := all.without(kindStopping)
	created := bothTimes(r.Names.Created[pod.Name], workload.Created[pod.Name])
	v.created = latestUntil(created, cmp.Or(pod.Placed, v.began)+int64(time.Second))
	v.began = earliest(v.began, v.created)
	if isStopping(pod) {
		killed := all.with(kindStopping).since(all.with(reasonStarted).last())
		deleted := v.deletion(killed.first(), r.Names.Deleted[pod.Name], workload.Deleted[pod.Name], created)
		v.stopped = cmp.Or(deleted, killed.first())
		v.stop = stopOf(all, killed, deleted)
		began = began.which(func(e *occurrence) bool { return !v.stop.hasWarning(e) })
	}
	if len(began) > 0 {
		v.addStart(began, o)
	}
	return v
}

// addStart finds out how the pod started, from its Events without those of its end.
func (v *view) addStart(began occurrences, o Options) {
	v.addPhases(began)
	for i := range v.phases {
		if p := &v.phases[i]; p.name == "restart" {
			p.late = v.isLate(p.start, o)
			p.fail(!v.isLate(p.end, o) && v.endedBefore(p.end+int64(o.Idle/2), o))
		}
	}
	v.others = began.warnings().which(func(e *occurrence) bool { return !isClaimed(e) })
	v.failing = v.others.which(func(e *occurrence) bool {
		return !harmless[e.Reason] && !v.recovered(e, began, o) && !v.isLate(e.First, o)
	})
	v.start = v.began
	for _, p := range v.phases {
		if p.start >= v.began-skew { // Else it is the time of another clock.
			v.start = min(v.start, p.start) // A pull can have begun before the first record.
		}
	}
	v.end = v.endOf(began, func(p *phase) bool { return p.name != "restart" })
	v.active = v.endOf(began, func(p *phase) bool { return !p.late })
}

// bothTimes returns what the owner of the pods and the workload have noted, in the order of time.
func bothTimes(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return all
}

// deletion returns when the owner deleted the pod; 0: not known. A ReplicaSet uses a name once, and a
// StatefulSet again: its last deletion before the kubelet killed the pod is that of this pod. If the clock
// of the node is wrong, the first deletion after the creation is it.
func (v *view) deletion(killed int64, own, workload, created []int64) int64 {
	if len(own) > 0 {
		return own[0]
	}
	if at := latestUntil(workload, killed+int64(time.Second)); at != 0 && killed-at <= int64(StopWindow) {
		return at
	}
	if !v.isOnWrongClock() {
		return 0
	}
	at := firstAfter(workload, v.began)
	if next := firstAfter(created, v.began); next != 0 && next < at {
		return 0
	}
	return at
}

// isOnWrongClock reports whether the kubelet's first record is before the creation of the pod, or long
// after it. Usually it comes seconds later, also if something fails.
func (v *view) isOnWrongClock() bool {
	return v.pod.Seen != 0 && (v.pod.Seen < v.began-skew || v.pod.Seen > v.began+int64(StopWindow))
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

func (v *view) addPhases(began occurrences) {
	if p, ok := schedule(began, v.created); ok {
		v.phases = append(v.phases, p)
	}
	for _, container := range began.containers() {
		of := began.in(container)
		for _, phase := range []func(occurrences, string) (phase, bool){pull, start, restart} {
			if p, ok := phase(of, container); ok {
				v.phases = append(v.phases, p)
			}
		}
	}
}

// endedBefore reports whether the pod ended before a time. It is false for a Job, whose pods end without a failure.
func (v *view) endedBefore(at int64, o Options) bool {
	return !o.job && v.stop != nil && v.stop.start < at
}

// isLate reports whether the pod had started long before.
func (v *view) isLate(at int64, o Options) bool {
	started := int64(0)
	for _, p := range v.phases {
		if p.name == "start" && p.missing != "" {
			return false
		}
		if p.name == "start" {
			started = max(started, p.end)
		}
	}
	return started != 0 && at > started+int64(o.Idle)
}

// harmless are warnings of objects that run in spite of them. Kubelets and controllers repeat them, so no later Event
// shows that they are over. Without a pull secret, the pull shows whether it fails.
var harmless = map[string]bool{
	"DNSConfigForming": true, "MissingClusterDNS": true, "FailedToRetrieveImagePullSecret": true, "ProbeWarning": true,
	"MultiplePodDisruptionBudgets": true, "PolicyViolation": true,
}

// recovered reports whether something shows that a warning is over.
func (v *view) recovered(warning *occurrence, all occurrences, o Options) bool {
	if warning.Reason == reasonUnhealthy {
		pause := all.probePause(o.Idle)
		isOver := o.Now.UnixNano()-warning.Last > int64(pause)
		if pause < o.Idle {
			pause = StopWindow // A kubelet writes about each failure, so that it is known sooner.
		}
		// The probe of a healthy pod can fail while the pod ends. A failure long after the start is not the one of the start.
		isAnother := pause < o.Idle && v.isLate(warning.Last, o)
		return isOver && (v.stop == nil || warning.Last >= v.stop.start || isAnother || !v.endedBefore(warning.Last+int64(pause), o))
	}
	later := all.with(reasonPulling, reasonPulled, kindPresent, reasonCreated, reasonStarted)
	return len(later) > 0 && later.last() >= warning.Last
}

// manyEvents is near the 25 Events that a kubelet writes about a pod at once: the model does not need all of them.
const manyEvents = 20

// probePause returns how long after its last record a probe counts as failing. A kubelet that has written many
// Events about the pod writes one in five minutes, however often the probe fails. The pause must end before the
// connector looks for the last time, which is twice the idle timeout after the last record.
func (o occurrences) probePause(idle time.Duration) time.Duration {
	count := int64(0)
	for _, e := range o.without(ReasonScheduled, reasonUnplaced) {
		count += e.Count
	}
	if count < manyEvents {
		return idle / 2
	}
	return idle + idle/2
}

// endOf returns the end of the last of some phases. If one of them has not ended, or no container
// started, it returns the time of the last Event.
func (v *view) endOf(began occurrences, counts func(*phase) bool) (end int64) {
	started := false
	for i := range v.phases {
		p := &v.phases[i]
		if !counts(p) {
			continue
		}
		if p.missing != "" {
			return max(end, began.last())
		}
		end = max(end, p.end)
		started = started || v.isStart(p)
	}
	if !started {
		end = max(end, began.last())
	}
	return end
}

// isStart reports whether the phase is the start of a container that goes on.
func (v *view) isStart(p *phase) bool { return p.name == "start" && !v.isInit(p.container) }

// stopOf returns the end of a pod: from the deletion, or the first Killing, to the last Killing. No
// Event says that the pod is gone.
func stopOf(all, killed occurrences, deleted int64) *phase {
	p := phase{name: "stop", start: killed.first(), end: killed.last(), endInferred: true}
	if deleted != 0 && p.start-deleted <= int64(StopWindow) {
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
func (v *view) hasStarted() bool {
	started := false
	for _, p := range v.phases {
		if p.missing != "" && !p.late {
			return false
		}
		started = started || v.isStart(&p)
	}
	return started
}

func (v *view) hasRestarted() bool {
	return slices.ContainsFunc(v.phases, func(p phase) bool { return p.name == "restart" })
}

func (v *view) isInit(container string) bool {
	for _, e := range v.pod.Events {
		if e.Container == container {
			return e.Init
		}
	}
	return false
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

// failure returns why the phase has failed: the last message that has a cause, else the last one.
// Empty: it has not failed.
func (p *phase) failure() string {
	if !p.failed {
		return ""
	}
	causes := p.warnings.which(hasCause)
	if len(causes) == 0 {
		causes = p.warnings
	}
	latest := slices.MaxFunc(causes, func(a, b *occurrence) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.uid, b.uid))
	})
	return latest.Message
}

// hasCause reports whether a message is more than "Back-off pulling image" or "Error: ErrImagePull".
func hasCause(e *occurrence) bool {
	reason, isError := strings.CutPrefix(e.Message, "Error: ")
	isWord := isError && !strings.Contains(reason, " ")
	return !strings.HasPrefix(e.Message, "Back-off") && !isWord
}

// missing returns what the pod still waits for; empty: nothing.
func (v *view) missing() string {
	for _, p := range v.phases {
		if p.missing != "" && !p.late {
			return p.missing
		}
	}
	if !v.hasStarted() {
		return reasonStarted
	}
	return ""
}

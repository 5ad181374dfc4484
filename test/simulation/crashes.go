// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var pods = schema.GroupResource{Resource: "pods"}

// endOfRun is how a run of a container really ended.
type endOfRun struct {
	run             int32 // 0: the first one
	state           corev1.ContainerStateTerminated
	memory          int64
	began, finished time.Duration
}

// What a kubelet does. (kubernetes/pkg/kubelet/kubelet.go, kuberuntime_manager.go; client-go/util/flowcontrol/backoff.go)
const (
	firstPause, longestPause = 10 * time.Second, 5 * time.Minute
	stable                   = 10 * time.Minute // a container that ran for longer starts again without a pause
	mostRuns                 = 40
)

// crashing is one pod whose containers crash.
type crashing struct {
	*detailed
	pod   *corev1.Pod
	until time.Duration // when the pod is deleted
}

// addPods adds pods, each of which replaces the one before it.
func (d *detailed) addPods() {
	from, replaced := d.plan.Start, 0
	for ; from < d.env.plan.Active && replaced < 4; replaced++ {
		until := from + oneOf(d.r, between(d.r, 20*time.Second, 2*time.Minute), d.env.plan.Active, d.env.plan.Active)
		name := d.name
		if chance(d.r, 3) { // As a ReplicaSet names them.
			name = fmt.Sprintf("%s-%d", d.name, replaced)
		}
		c := &crashing{detailed: d, until: until, pod: d.newPod(name, types.UID(fmt.Sprintf("uid-%s-%s-%d", d.namespace, d.name, replaced)))}
		d.at(from, func() { c.write(pods, c.pod) })
		for i := range c.pod.Spec.Containers {
			c.crash(i, from+between(d.r, 0, 2*time.Second)+time.Duration(i)*between(d.r, 0, time.Minute))
		}
		d.at(until, func() { _ = d.env.server.Delete(pods, d.namespace, name) })
		from = until + between(d.r, 10*time.Millisecond, 3*time.Second)
	}
}

func (d *detailed) newPod(name string, uid types.UID) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.namespace, Name: name, UID: uid,
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"env": "` + secret + `"}`},
	}}
	for i := range 1 + d.r.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("container-", i), Args: []string{"--password=" + secret},
			Env:       []corev1.EnvVar{{Name: "PASSWORD", Value: secret}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(i+1)<<20, resource.BinarySI)}},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprint("container-", i), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	return p
}

// crash lets a container run, and end, again and again.
func (c *crashing) crash(container int, at time.Duration) {
	name, r := c.pod.Spec.Containers[container].Name, c.r
	about := c.reference("v1", "Pod", c.pod.Name, c.pod.UID)
	about.FieldPath = "spec.containers{" + name + "}"
	kubelet := c.newRecorder("kubelet")
	statuses := at
	status := func(t time.Duration, change func(*corev1.ContainerStatus)) {
		statuses = max(statuses, t+oneOf(r, between(r, 0, 50*time.Millisecond), between(r, 0, 50*time.Millisecond), between(r, 0, 2*time.Second), between(r, 0, 8*time.Second)))
		if statuses < c.until {
			c.at(statuses, func() {
				change(&c.pod.Status.ContainerStatuses[container])
				c.write(pods, c.pod)
			})
		}
	}
	var last *endOfRun
	pause := firstPause
	for run := int32(0); run < mostRuns && at < c.until; run++ {
		end := c.newRun(run, container, at)
		before := last
		kubelet.record(at, about, "Created", "Created container: "+name, allowed{end: before})
		if end.state.Reason != "StartError" {
			kubelet.record(min(end.began+between(r, 0, 900*time.Millisecond), c.until), about, "Started", "Started container "+name, allowed{end: before})
			status(end.began, func(s *corev1.ContainerStatus) {
				*s = corev1.ContainerStatus{Name: name, RestartCount: run, LastTerminationState: before.asState()}
				s.State.Running = &corev1.ContainerStateRunning{StartedAt: end.state.StartedAt}
			})
		}
		if end.finished > c.until {
			return
		}
		status(end.finished, func(s *corev1.ContainerStatus) {
			*s = corev1.ContainerStatus{Name: name, RestartCount: run, State: end.asState(), LastTerminationState: before.asState()}
		})
		isLong := end.finished-end.began > stable
		if isLong {
			pause = firstPause
		}
		at, last = end.finished+between(r, time.Millisecond, 1500*time.Millisecond), end
		if run == 0 || isLong {
			continue
		}
		over := end.finished + pause
		said := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pause, name, c.pod.Name, c.namespace, c.pod.UID)
		status(at, func(s *corev1.ContainerStatus) {
			*s = corev1.ContainerStatus{Name: name, RestartCount: run, LastTerminationState: end.asState()}
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: said}
		})
		var times []time.Duration
		for ; at < over; at += between(r, 8*time.Second, 15*time.Second) {
			times = append(times, at)
		}
		if justBefore := over - between(r, time.Millisecond, 900*time.Millisecond); chance(r, 2) && justBefore > times[len(times)-1] {
			times = append(times, justBefore)
		}
		for _, t := range times {
			if t < c.until {
				kubelet.record(t, about, "BackOff", "Back-off restarting failed container "+name+" in pod "+c.pod.Name, allowed{end: end})
			}
		}
		at = over + oneOf(r, between(r, 0, 800*time.Millisecond), between(r, 0, 10*time.Second))
		pause = min(2*pause, longestPause)
	}
}

// newRun returns the run that a kubelet starts at a time, with its end.
func (c *crashing) newRun(run int32, container int, at time.Duration) *endOfRun {
	r := c.r
	end := &endOfRun{run: run, memory: c.pod.Spec.Containers[container].Resources.Limits.Memory().Value()}
	end.began = at + between(r, 0, 400*time.Millisecond)
	lasts := oneOf(r, between(r, 0, 900*time.Millisecond), between(r, 0, 900*time.Millisecond), between(r, 0, 3*time.Second), between(r, 0, 90*time.Second))
	if c.env.plan.Active >= 2*stable && chance(r, 8) {
		lasts = between(r, stable-10*time.Second, stable+time.Minute)
	}
	end.finished = end.began + lasts
	end.state = oneOf(r,
		corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}, corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1 + r.Int32N(120)},
		corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 143}, corev1.ContainerStateTerminated{Reason: "Completed"},
		corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128},
	)
	end.state.Message = secret
	end.state.StartedAt = metav1.NewTime(c.timeOf(end.began).Truncate(time.Second))
	if end.state.Reason == "StartError" { // The program never ran.
		end.began, end.finished = at, at+between(r, 0, 900*time.Millisecond)
		end.state.StartedAt = metav1.Unix(0, 0)
	}
	end.state.FinishedAt = metav1.NewTime(c.timeOf(end.finished).Truncate(time.Second))
	return end
}

// asState is what the status says of an end; nil: nothing.
func (e *endOfRun) asState() (state corev1.ContainerState) {
	if e != nil {
		state.Terminated = e.state.DeepCopy()
	}
	return state
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

const (
	withoutDetails = "without-details"

	requests        = "requests for owners and details"
	requestsRatio   = "requests, over those without details"
	detailsRate     = "requests for details in a second"
	detailsCPU      = "processor time, over that without details"
	detailsMemory   = "peak memory (RSS), more than without details"
	otherTail       = "records about other pods: latency, 99th percentile"
	otherTailRatio  = "records about other pods: latency, 99th percentile, over that without details"
	endsUnexplained = "ends of containers without a reason"
	revisionsKnown  = "new revisions whose changes are known"

	// syncEvery is how often a kubelet looks at a pod that it has not yet restarted. Each time, the event of the
	// back-off is counted up. (kubernetes/pkg/kubelet/kubelet.go: backOffPeriod, with jitter)
	syncEvery = 13 * time.Second
	// The first and the longest pause before a container starts again, and how long it runs before it crashes.
	firstBackOff   = 10 * time.Second
	longestBackOff = 5 * time.Minute
	crashAfter     = 2 * time.Second
	// crashesBegin is the time in which all containers crash for the first time.
	crashesBegin = time.Minute
	// othersPerSecond are the events about pods that do not crash.
	othersPerSecond = 50
	// detailedVariables make a pod as large as that of an application: 13 KiB of JSON.
	detailedVariables = 60
)

// runDetails compares the same Collector with and without details on a day.
func runDetails(ctx context.Context, b *benchmark) (r result, err error) {
	length := b.day / 2
	sz := b.size
	sz.variables = detailedVariables
	changes := slices.DeleteFunc(planDay(length, sz.pods), func(c change) bool { return c.pod == 0 })
	changes = append(changes, planCrash(0, time.Second, length)...)
	updates := planUpdates(length, sz)
	changes = inOrder(append(changes, updates...))
	r.Groups, err = b.compareDetails(ctx, func(ctx context.Context, c runner) (values, error) {
		return b.detailsOnce(ctx, c, sz, changes, nil)
	}, func(with, without func(string) float64) []figure {
		return []figure{
			{Name: requestsRatio, Ours: []float64{with(requests) / without(requests)}, Goal: oursAtMost(1.1)},
			{Name: detailsCPU, Ours: []float64{with(cpuPerRecord) / without(cpuPerRecord)}, Goal: oursAtMost(1.1)},
		}
	})
	r.Text = fmt.Sprintf(`The events are those of the section "A part of a working day", for %s. In addition, the
Deployments are updated: %s events are about their new ReplicaSets. The container that crashes has the status that a kubelet writes.
All Collectors are the same program, with storage and direct delivery. One has `+"`details: {enabled: false}`"+`. The Collector knows no
owner before.`, length, thousands(len(updates)))
	r.Notes = detailsNotes
	return r, err
}

// runCrashes compares them while many containers crash.
func runCrashes(ctx context.Context, b *benchmark) (r result, err error) {
	sz := b.size
	sz.variables = detailedVariables
	var changes []change
	for i := range b.crashing {
		begin := min(crashesBegin, b.crashes/4) * time.Duration(i) / time.Duration(b.crashing)
		changes = append(changes, planCrash(i, begin, b.crashes)...)
	}
	crashes := len(changes)
	for i := range int(b.crashes.Seconds() * othersPerSecond) {
		changes = append(changes, change{
			at: time.Duration(i) * time.Second / othersPerSecond, pod: b.crashing + i%(sz.pods-b.crashing),
			reason: "Resized", message: "Volume app-data was resized to 20Gi",
		})
	}
	changes = inOrder(changes)
	r.Groups, err = b.compareDetails(ctx, func(ctx context.Context, c runner) (values, error) {
		return b.detailsOnce(ctx, c, sz, changes, func(r *rig) error { return r.warmUp(ctx, sz.pods) })
	}, func(with, without func(string) float64) []figure {
		return []figure{
			{Name: detailsRate, Ours: []float64{(with(requests) - without(requests)) / b.crashes.Seconds()}, Goal: oursAtMost(20)},
			{Name: otherTailRatio, Ours: []float64{with(otherTail) / without(otherTail)}, Goal: oursAtMost(1.1)},
			{Name: detailsCPU, Ours: []float64{with(cpuPerRecord) / without(cpuPerRecord)}},
		}
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods, of which the Collector knows the owners. The containers of %s of them begin to crash within
%s, and end %s times in %s. As a kubelet does, the benchmark writes their status, and waits 10s, 20s, 40s and so on before the next
start. %s events are about them, and %d a second about the other pods. All Collectors are the same program, with storage and direct
delivery. One has `+"`details: {enabled: false}`.",
		thousands(sz.pods), thousands(b.crashing), crashesBegin, thousands(ends(changes)), b.crashes, thousands(crashes), othersPerSecond)
	r.Notes = detailsNotes
	return r, err
}

var detailsNotes = []string{
	"Requests are GET and LIST of pods, ReplicaSets and Deployments, as the API server counts them.",
	fmt.Sprintf("A pod has %d variables of its environment, which make 13 KiB of JSON.", detailedVariables),
	"Ratios and differences are between medians.",
}

// compareDetails measures both Collectors. Ratios get the median of a figure with and without details.
func (b *benchmark) compareDetails(
	ctx context.Context, measure func(context.Context, runner) (values, error), ratios func(with, without func(string) float64) []figure,
) ([]group, error) {
	setups, err := b.onlyChosen([]setup{
		{name: withoutDetails, title: "Without details", runner: b.ours.with("receivers::" + kubeEventsReceiver + "::details: {enabled: false}"), configure: runner.recommended},
		{name: direct, title: "With details", runner: b.ours, configure: runner.recommended},
	})
	if err != nil {
		return nil, err
	}
	m := measurements{}
	if err := m.interleave(ctx, b, b.rounds, setups, "", measure); err != nil {
		return nil, err
	}
	for _, v := range m[withoutDetails] {
		delete(v, endsUnexplained)
		delete(v, revisionsKnown)
	}
	groups := m.groups(setups, detailsFigures)
	if last := len(groups) - 1; last > 0 {
		with := func(figure string) float64 { return median(m.of(direct, figure)) }
		without := func(figure string) float64 { return median(m.of(withoutDetails, figure)) }
		groups[last].Figures = append(append(groups[last].Figures, ratios(with, without)...),
			figure{Name: detailsMemory, Unit: "MiB", Ours: []float64{with(peakRSS) - without(peakRSS)}, Goal: oursAtMost(3)})
	}
	return groups, nil
}

func detailsFigures(string) []figure {
	return []figure{
		{Name: requests}, {Name: cpuPerRecord, Unit: "µs"}, {Name: peakRSS, Unit: "MiB"},
		{Name: latencyTail, Unit: "ms"}, {Name: otherTail, Unit: "ms"},
		{Name: lost, Goal: oursAtMost(0)}, {Name: unowned, Goal: oursAtMost(0)},
		{Name: endsUnexplained, Goal: oursAtMost(0)}, {Name: revisionsKnown},
	}
}

// detailsOnce measures one Collector.
func (b *benchmark) detailsOnce(ctx context.Context, c runner, sz size, changes []change, warmUp func(*rig) error) (values, error) {
	return b.onCluster(ctx, sz, func(kube *cluster) (values, error) {
		return kube.onRig(c, func(r *rig) (values, error) {
			explained, revisions := map[string]bool{}, 0
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
			if warmUp != nil {
				// A status that was read for an event of the warm-up serves others for a moment.
				if err := errors.Join(warmUp(r), wait(ctx, 5*time.Second)); err != nil {
					return nil, err
				}
			}
			r.sink.owners = func(resource, log pcommon.Map) bool {
				if _, ok := log.Get("k8s.container.status.last_terminated_reason"); ok {
					restarts := otlpsink.Number(log, "k8s.container.restart_count")
					explained[fmt.Sprint(otlpsink.Text(resource, "k8s.object.name"), " ", restarts)] = true
				}
				if _, ok := log.Get("k8s.rollout.changes"); ok {
					revisions++
				}
				return isOwned(resource, log) || otlpsink.Text(resource, "k8s.object.kind") == "Deployment"
			}
			v, err := r.measure(ctx, changes, 0)
			if err != nil {
				return nil, err
			}
			v[requests], v[endsUnexplained] = v[ownerRequests], float64(ends(changes)-len(explained))
			if warmUp == nil {
				v[revisionsKnown] = float64(revisions)
			} else {
				v[otherTail] = r.sink.summaryOf(kube.isAfter(b.crashing)).latency(0.99)
			}
			return v, nil
		})
	})
}

// isAfter returns whether an event is about one of the pods after the first ones.
func (c *cluster) isAfter(first int) func(event string) bool {
	others := map[string]bool{}
	for _, pod := range c.pods[first:] {
		others[pod.Name] = true
	}
	return func(event string) bool {
		pod, _, _ := strings.Cut(event, ".")
		return others[pod]
	}
}

func inOrder(changes []change) []change {
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	return changes
}

// ends returns how often a container ends.
func ends(changes []change) (n int) {
	for _, c := range changes {
		if c.prepare != nil && c.reason == "" {
			n++
		}
	}
	return n
}

// planCrash plans a container that crashes again and again: its status, and the events of its kubelet. At
// the beginning, its first restart has ended.
func planCrash(pod int, begin, length time.Duration) (changes []change) {
	at := begin
	for restarts := 1; at < length; restarts++ {
		pause := min(firstBackOff<<(restarts-1), longestBackOff)
		changes = append(changes, change{at: at, pod: pod, repeat: true, prepare: func(ctx context.Context, kube *cluster) (corev1.ObjectReference, error) {
			return kube.pods[pod], kube.crash(ctx, kube.pods[pod], restarts, pause)
		}})
		for sync := at + syncEvery; sync < min(at+pause, length); sync += syncEvery {
			changes = append(changes, change{at: sync, pod: pod, repeat: true})
		}
		if at += pause; at < length {
			for _, step := range startSteps[len(startSteps)-2:] {
				changes = append(changes, change{at: at, pod: pod, reason: step.reason, message: step.message, repeat: true})
			}
		}
		at += crashAfter
	}
	return changes
}

// crash writes the status of a container that has ended and waits for its next start.
func (c *cluster) crash(ctx context.Context, pod corev1.ObjectReference, restarts int, pause time.Duration) error {
	now := time.Now()
	status := corev1.ContainerStatus{
		Name: "main", RestartCount: int32(restarts), Image: "example.com/app", ImageID: "example.com/app@sha256:0", //nolint:gosec // It is small.
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=main pod=%s_%s(%s)", pause, pod.Name, pod.Namespace, pod.UID),
		}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Error", ExitCode: 1, StartedAt: metav1.NewTime(now.Add(-crashAfter)), FinishedAt: metav1.NewTime(now),
		}},
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": corev1.PodRunning, "containerStatuses": []corev1.ContainerStatus{status}}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// planUpdates plans what controllers say of the updates of a day: each replaces all pods of some Deployments.
func planUpdates(length time.Duration, sz size) (changes []change) {
	each := sz.pods / sz.deployments
	next := 1 // The first one has the container that crashes.
	for at := min(rolloutEvery/2, length/4); at < length; at += rolloutEvery {
		for range min(rolloutPods/each, sz.deployments-1) {
			changes = append(changes, planUpdate(next%sz.deployments, each, at, namespaceName(next%sz.deployments%sz.namespaces))...)
			next++
		}
	}
	return changes
}

// planUpdate plans what controllers say of a new ReplicaSet.
func planUpdate(deployment, pods int, at time.Duration, ns string) (changes []change) {
	name := fmt.Sprintf("app-%d", deployment)
	replicaSet := fmt.Sprintf("%s-%x", name, 0x6f7c9b6d+int64(at))
	var owner, owned corev1.ObjectReference // Written and read by one writer, that of the pod.
	say := func(reason, message string, about *corev1.ObjectReference) {
		changes = append(changes, change{at: at, pod: deployment * pods, reason: reason, message: message, prepare: func(context.Context, *cluster) (corev1.ObjectReference, error) {
			return *about, nil
		}})
	}
	say("ScalingReplicaSet", "Scaled up replica set "+replicaSet+" from 0 to 3", &owner)
	changes[0].prepare = func(ctx context.Context, kube *cluster) (_ corev1.ObjectReference, err error) {
		owner, owned, err = kube.update(ctx, ns, name, replicaSet)
		return owner, err
	}
	for i := range pods {
		say("SuccessfulCreate", fmt.Sprintf("Created pod: %s-x%04d", replicaSet, i), &owned)
		at += rolloutTime / time.Duration(pods)
		if i > 0 && i < pods-3 {
			say("ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from %d to %d", replicaSet, i+2, i+3), &owner)
		}
	}
	return changes
}

// update changes the image of a Deployment, as a user does, and makes its ReplicaSet.
func (c *cluster) update(ctx context.Context, ns, name, replicaSet string) (owner, owned corev1.ObjectReference, err error) {
	image := "example.com/" + name + ":" + replicaSet
	patch := fmt.Sprintf(`{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": %q}]}}}}`, image)
	deployment, err := c.client.AppsV1().Deployments(ns).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return owner, owned, err
	}
	meta := ownedBy(deployment, "Deployment", replicaSet, deployment.Labels)
	meta.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(deployment.Generation)}
	made, err := c.client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template},
	}, metav1.CreateOptions{})
	if err != nil {
		return owner, owned, errors.Join(fmt.Errorf("make the ReplicaSet of an update: %w", err))
	}
	return corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: ns, Name: name, UID: deployment.UID},
		corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: ns, Name: replicaSet, UID: made.UID}, nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// syncEvery is how often a kubelet looks at a pod that it has not yet restarted. Each time, the event of the
	// back-off is counted up. (kubernetes/pkg/kubelet/kubelet.go: backOffPeriod, with jitter)
	syncEvery = 13 * time.Second
	// The first and the longest pause before a container starts again, and how long it runs before it crashes.
	firstBackOff   = 10 * time.Second
	longestBackOff = 5 * time.Minute
	crashAfter     = 2 * time.Second
)

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
		Name: "main", RestartCount: int32(restarts), Image: "example.com/app", ImageID: "example.com/app@sha256:0",
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
		return owner, owned, fmt.Errorf("make the ReplicaSet of an update: %w", err)
	}
	return corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: ns, Name: name, UID: deployment.UID},
		corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: ns, Name: replicaSet, UID: made.UID}, nil
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// awaitPods waits until the situation has a number of pods that run, and returns them.
func (r *running) awaitPods(t *testing.T, number int) (pods []corev1.Pod) {
	t.Helper()
	require.True(t, harness.Poll(waitTimeout, func() bool {
		list, err := r.CoreV1().Pods(r.name).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		pods = nil
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				pods = append(pods, p)
			}
		}
		return len(pods) == number
	}), "%d pods that run", number)
	return pods
}

func (r *running) deletePod(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, r.CoreV1().Pods(r.name).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// stopPod deletes the pod whose container has a preStop hook, when it runs.
func stopPod(t *testing.T, r *running) {
	r.await(t, want{pod, "Started", "spec.containers{stopped}", 1})
	r.deletePod(t, "stopped")
}

func scaleDown(t *testing.T, r *running) {
	r.awaitPods(t, 1)
	_, err := r.AppsV1().Deployments(r.name).Patch(t.Context(), r.name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// freeResources lets the scheduler try again until it has a series: it does so whenever a pod that
// was scheduled is gone.
func freeResources(t *testing.T, r *running) {
	for i := 0; len(r.recorder.find(r.wants[len(r.wants)-1], r.name, r.since)) == 0; i++ {
		require.Less(t, i, 20, "attempts of the scheduler")
		passing := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("passing-", i)},
			Spec: corev1.PodSpec{
				Containers:                    []corev1.Container{{Name: "app", Image: workloadImage}},
				TerminationGracePeriodSeconds: new(int64),
			},
		}
		_, err := r.CoreV1().Pods(r.name).Create(t.Context(), passing, metav1.CreateOptions{})
		require.NoError(t, err)
		r.awaitPods(t, 1)
		r.deletePod(t, passing.Name)
		r.awaitPods(t, 0)
	}
}

// offerSeat gives the node a resource of which each of two pods needs all: first for the pod that
// can wait, then for the urgent one.
func offerSeat(t *testing.T, r *running) {
	patch := []byte(`{"status":{"capacity":{"example.com/seat":"1"},"allocatable":{"example.com/seat":"1"}}}`)
	_, err := r.CoreV1().Nodes().Patch(t.Context(), r.node.Name(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	r.awaitPods(t, 1)
	r.applyManifest(t, r.name+"-urgent")
}

// addEphemeralContainer does what kubectl debug does.
func addEphemeralContainer(t *testing.T, r *running) {
	p := r.awaitPods(t, 1)[0]
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: workloadImage},
		TargetContainerName:      "app",
	}}
	_, err := r.CoreV1().Pods(r.name).UpdateEphemeralContainers(t.Context(), p.Name, &p, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func addAndRemoveStaticPod(t *testing.T, r *running) {
	manifest := harness.Read(t, "e2e", "node", "testdata", "situations", "static", "lamp.yaml")
	require.NoError(t, r.node.AddStaticPod("lamp", []byte(manifest)))
	r.await(t, r.wants[0])
	r.awaitPods(t, 1) // The mirror pod exists.
	require.NoError(t, r.node.RemoveStaticPod("lamp"))
}

// awaitOutOfMemory waits until the status of a pod says what its events do not.
func awaitOutOfMemory(t *testing.T, r *running) {
	var ends []string
	harness.Poll(waitTimeout, func() bool {
		pods, err := r.CoreV1().Pods(r.name).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, p := range pods.Items {
			for _, status := range p.Status.ContainerStatuses {
				if end := status.LastTerminationState.Terminated; end != nil {
					ends = append(ends, end.Reason)
				}
			}
		}
		return len(ends) > 0
	})
	assert.Equal(t, []string{"OOMKilled"}, ends)
}

// hangKubelet stops kubelet until the pods of its node are evicted.
func hangKubelet(t *testing.T, r *running) {
	r.awaitPods(t, 1)
	r.addReadyNode(t)
	resume, err := r.node.PauseKubelet()
	require.NoError(t, err)
	defer func() { require.NoError(t, resume()) }()
	for _, w := range r.wants[:3] {
		r.await(t, w)
	}
}

// addReadyNode creates a node that has no kubelet and is always ready. If no node of a cluster is
// ready, the node controller evicts no pods.
func (r *running) addReadyNode(t *testing.T) {
	t.Helper()
	const name = "node-1"
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
	_, err := r.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}))
	})

	leases := r.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			lease.Spec.RenewTime = new(metav1.NowMicro())
			if renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err == nil {
				lease = renewed
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}()
}

// limitLocalStorage makes kubelet enforce limits of ephemeral storage.
func limitLocalStorage(t *testing.T, r *running) {
	require.NoError(t, r.node.ConfigureKubelet("localStorageCapacityIsolation: true\n"))
}

// reserveMemory makes kubelet want more free memory than the machine has, when the pod runs that it
// then evicts: the one with the lowest priority. kubelet evicts nothing while it has no figures of
// the local storage.
func reserveMemory(t *testing.T, r *running) {
	r.awaitPods(t, 1)
	require.NoError(t, r.node.ConfigureKubelet("localStorageCapacityIsolation: true\nevictionHard: {memory.available: 99.9%}\n"))
}

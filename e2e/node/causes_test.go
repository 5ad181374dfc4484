// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
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

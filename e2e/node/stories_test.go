// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// rollOutDeployment is rolled out, updated twice, updated to an image that does not exist, rolled back, and
// scaled up.
func rollOutDeployment(t *testing.T, c *rollouts) {
	var replicaSets []string
	for i, version := range []string{"1", "2", "3"} {
		c.setVersion(t, version)
		replicaSets = append(replicaSets, c.awaitDeployment(t, "shop"))
		tr := c.await(t, "deployment/shop", i+1, "complete", 3)
		assert.Equal(t, "replicaset.apps/"+replicaSets[i], text(tr.root, "k8s.rollout.revision"))
		for _, pod := range c.podsOf(t, "shop") {
			tr.requireTimes(t, pod)
		}
		if i > 0 {
			c.awaitStops(t, i+1, 3)
		}
	}

	c.patchDeployment(t, "shop", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"registry.example.com/missing:1"}]}}}}`)
	failed := c.await(t, "deployment/shop", 4, "failed", 1)
	assert.Contains(t, failed.root.Status().Message(), "registry.example.com/missing:1")
	assert.Equal(t, ptrace.StatusCodeError, failed.root.Status().Code())

	// The third version never ended, so going back to it is no rollback in events: its ReplicaSet was
	// not scaled up from zero. The second one was.
	c.setVersion(t, "2")
	assert.Equal(t, replicaSets[1], c.awaitDeployment(t, "shop"), "the ReplicaSet is used again")
	rollback := c.await(t, "deployment/shop", 5, "complete", 3)
	assert.Equal(t, "replicaset.apps/"+replicaSets[1], text(rollback.root, "k8s.rollout.revision"))

	// A process that is killed continues: a scale-up joins the trace of the rollback.
	c.restartCollector()
	c.patchDeployment(t, "shop", `{"spec":{"replicas":4}}`)
	c.awaitDeployment(t, "shop")
	scaled := c.await(t, "deployment/shop", 5, "complete", 4)
	assert.Equal(t, rollback.root.TraceID(), scaled.root.TraceID())
}

// awaitStops waits until a trace of the Deployment shop has the ends of old pods.
func (c *rollouts) awaitStops(t *testing.T, number, pods int) {
	t.Helper()
	require.True(t, harness.Poll(waitTimeout, func() bool {
		return len(c.tracesOf("deployment/shop")[number-1].named("stop ")) == pods
	}), "the ends of %d pods in trace %d", pods, number)
}

// crashAndRecovery crashes until its argument changes.
func crashAndRecovery(t *testing.T, c *rollouts) {
	require.True(t, harness.Poll(waitTimeout, func() bool {
		for _, pod := range c.podsOf(t, "recovering") {
			for _, status := range pod.Status.ContainerStatuses {
				return status.RestartCount >= 1
			}
		}
		return false
	}), "a crash")
	_, err := c.CoreV1().ConfigMaps(inRollouts).Patch(t.Context(), "recovering", types.MergePatchType, []byte(`{"data":{"ARGUMENT":""}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, harness.Poll(waitTimeout, func() bool {
		running := c.podsOf(t, "recovering")[0].Status.ContainerStatuses[0].State.Running
		return running != nil && time.Since(running.StartedAt.Time) > 15*time.Second
	}), "a container that goes on")
	c.restartCollector() // It has saved what it waits for.
	pod := c.podsOf(t, "recovering")[0]
	last := c.lastTimes(t, pod.Name)
	if !last["Started"].After(last["BackOff"]) { // Nothing tells which was first: docs/rollouts.md.
		c.await(t, "deployment/recovering", 1, "failed", 1)
		return
	}
	tr := c.await(t, "deployment/recovering", 1, "complete", 1, "restart app")
	tr.requireTimes(t, pod)
	restart := tr.of(t, pod, "restart app")
	assert.Positive(t, restart.Events().Len())
	assert.Equal(t, ptrace.StatusCodeUnset, restart.Status().Code(), "it recovered")
}

// lastTimes returns when a pod's Events of each reason last occurred, in seconds.
func (c *rollouts) lastTimes(t *testing.T, pod string) map[string]time.Time {
	t.Helper()
	events, err := c.CoreV1().Events(inRollouts).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	require.NoError(t, err)
	last := map[string]time.Time{}
	for _, event := range events.Items {
		if at := event.LastTimestamp.Time; at.After(last[event.Reason]) {
			last[event.Reason] = at
		}
	}
	return last
}

func rollOutStatefulSet(t *testing.T, c *rollouts) {
	c.await(t, "statefulset/db", 1, "complete", 2)
	_, err := c.AppsV1().StatefulSets(inRollouts).Patch(t.Context(), "db", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"db","env":[{"name":"VERSION","value":"2"}]}]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	tr := c.await(t, "statefulset/db", 2, "complete", 2)
	for _, pod := range c.podsOf(t, "db") {
		assert.Equal(t, pod.Labels["controller-revision-hash"], text(tr.root, "k8s.rollout.revision"))
		tr.requireTimes(t, pod)
	}
}

func rollOutDaemonSet(t *testing.T, c *rollouts) {
	tr := c.await(t, "daemonset/agent", 1, "complete", 1)
	pods := c.podsOf(t, "agent")
	require.Len(t, pods, 1)
	tr.requireTimes(t, pods[0])
	assert.Equal(t, pods[0].Labels["controller-revision-hash"], text(tr.root, "k8s.rollout.revision"))
}

// rollOutCustomResource owns two Deployments that are updated at the same time. Each update is a trace of its
// own, with the ends of its own old pods.
func rollOutCustomResource(t *testing.T, c *rollouts) {
	pods := map[string]int{"stall": 2, "cart": 1}
	for name, count := range pods {
		c.awaitRevision(t, name, count, 0)
	}
	for name := range pods {
		c.patchDeployment(t, name, `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"VERSION","value":"2"}]}]}}}}`)
	}
	for name, count := range pods {
		c.awaitRevision(t, name, count, count)
	}
	assert.Len(t, c.tracesOf("market/town"), 4)
}

// awaitRevision waits for the trace of the present revision of a Deployment that the custom resource
// owns, with a number of pods and of ends of old pods.
func (c *rollouts) awaitRevision(t *testing.T, name string, pods, stops int) {
	t.Helper()
	revision := "replicaset.apps/" + c.awaitDeployment(t, name)
	var found trace
	ok := harness.Poll(waitTimeout, func() bool {
		for _, tr := range c.tracesOf("market/town") {
			if text(tr.root, "k8s.rollout.revision") == revision {
				found = tr
			}
		}
		return found.spans != nil && text(found.root, "k8s.rollout.outcome") == "complete" && len(found.named("stop ")) == stops
	})
	require.True(t, ok, "the trace of %s: %s", revision, found)
	assert.Len(t, found.named("pod "), pods, found)
	assert.Len(t, found.named("stop "+name+"-"), stops, found)
	for _, pod := range c.podsOf(t, name) {
		found.requireTimes(t, pod)
	}
}

// runCronJob has a trace for each Job.
func runCronJob(t *testing.T, c *rollouts) {
	var all []trace
	require.True(t, harness.Poll(waitTimeout, func() bool {
		all = c.tracesOf("cronjob/report")
		return len(all) >= 2
	}), "two Jobs")
	list, err := c.CoreV1().Pods(inRollouts).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name"})
	require.NoError(t, err)
	for _, tr := range all {
		require.Len(t, tr.named("pod "), 1)
		for _, pod := range list.Items {
			if "job.batch/"+pod.Labels["batch.kubernetes.io/job-name"] == text(tr.root, "k8s.rollout.revision") {
				requireJobTimes(t, tr, pod)
			}
		}
	}
}

func requireJobTimes(t *testing.T, tr trace, pod corev1.Pod) {
	t.Helper()
	near(t, pod.CreationTimestamp.Time, tr.of(t, pod, "pod ").StartTimestamp(), "the creation of %s", pod.Name)
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil {
			near(t, end.StartedAt.Time, tr.of(t, pod, "start report").EndTimestamp(), "the start of %s", pod.Name)
		}
	}
}

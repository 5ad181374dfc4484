// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// inRollouts is the namespace of the workloads that are rolled out.
const inRollouts = "rollouts"

// market is the file with the kind of a custom resource, and the permission to read it.
const market = "e2e/node/testdata/rollouts/market.yaml"

// rollouts is a cluster with a Collector that sends traces of rollouts to a backend: the connector
// kube_incidents makes them of what controllers, scheduler and kubelet do.
type rollouts struct {
	*cluster
	stories    *testing.T // the test of all stories, with which the Collector ends
	traces     *traces
	storage    string
	kubeconfig string

	mu        sync.Mutex // guards the following
	collector *harness.Collector
}

// stories are what happens to the workloads.
var stories = map[string]func(*testing.T, *rollouts){
	"a Deployment":           rollOutDeployment,
	"a crash and a recovery": crashAndRecovery,
	"a StatefulSet":          rollOutStatefulSet,
	"a DaemonSet":            rollOutDaemonSet,
	"a CronJob":              runCronJob,
	"a custom resource":      rollOutCustomResource,
}

// traceRollouts runs all stories at the same time. The story of a crash cannot wait for others,
// because the kubelet waits longer before each start of a container.
func (c *cluster) traceRollouts(t *testing.T) {
	r := &rollouts{cluster: c, stories: t, traces: startTraces(t), storage: t.TempDir()}
	r.kubeconfig = c.KubeconfigFor(t, "rollouts", "deploy/manifests/default.yaml", market)
	c.Apply(t, market) // The receiver knows a kind at once if it is served before the receiver starts.
	r.startCollector()
	c.newNamespace(t, inRollouts)
	c.Apply(t, "e2e/node/testdata/rollouts/workloads.yaml")
	t.Run("together", func(t *testing.T) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(t, r)
			})
		}
	})
	assert.True(t, r.collector.Running(), "no story ends the Collector for the others")
}

// startCollector starts a Collector that runs until all stories have ended: another story may need it
// longer than the one that restarts it.
func (c *rollouts) startCollector() {
	command := exec.Command(harness.Otelcol(c.stories), "--config", harness.InRepository("e2e", "node", "testdata", "rollouts", "collector.yaml"))
	c.collector = harness.Start(c.stories, command, "KUBECONFIG="+c.kubeconfig, "BACKEND="+c.traces.url, "STORAGE="+c.storage)
}

// restartCollector ends the Collector as a crash does, and starts it again.
func (c *rollouts) restartCollector() {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NoError(c.stories, c.collector.Kill())
	c.startCollector()
}

// patchDeployment changes a Deployment as kubectl patch does.
func (c *rollouts) patchDeployment(t *testing.T, name, patch string) {
	t.Helper()
	_, err := c.AppsV1().Deployments(inRollouts).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// setVersion changes the pod template of the Deployment shop.
func (c *rollouts) setVersion(t *testing.T, version string) {
	t.Helper()
	c.patchDeployment(t, "shop", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"`+workloadImage+`","env":[{"name":"VERSION","value":"`+version+`"}]}]}}}}`)
}

// awaitDeployment waits until a Deployment has only available pods of its present template, and returns
// the name of their ReplicaSet.
func (c *rollouts) awaitDeployment(t *testing.T, name string) string {
	t.Helper()
	require.True(t, harness.Poll(waitTimeout, func() bool {
		d, err := c.AppsV1().Deployments(inRollouts).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return isRolledOut(d)
	}), "the rollout of %s", name)
	pods := c.podsOf(t, name)
	require.NotEmpty(t, pods)
	return pods[0].OwnerReferences[0].Name
}

func isRolledOut(d *appsv1.Deployment) bool {
	want := *d.Spec.Replicas
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
}

// podsOf returns the pods with a label app that are not about to end.
func (c *rollouts) podsOf(t *testing.T, app string) (pods []corev1.Pod) {
	t.Helper()
	list, err := c.CoreV1().Pods(inRollouts).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(t, err)
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

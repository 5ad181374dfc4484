// SPDX-License-Identifier: Apache-2.0

// Package rollouts tests the connector kube_rollouts with real containers: the Collector makes traces
// of what controllers, scheduler and kubelet of a real node do.
package rollouts

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// workload is the image of the control plane's program workload.
const workload = "example.com/workload:1"

const namespace = "rollouts"

// market is the file with the kind of a custom resource, and the permission to read it.
const market = "e2e/rollouts/testdata/market.yaml"

// cluster is a control plane with a real node, and a Collector that sends traces to a backend.
type cluster struct {
	*harness.Cluster
	stories    *testing.T // the test of all stories, with which the Collector ends
	backend    *backend
	storage    string
	kubeconfig string

	mu        sync.Mutex // guards the following
	collector *harness.Collector
}

func start(t *testing.T) *cluster {
	t.Helper()
	controlplanetest.NeedNode(t)
	started, err := harness.StartCluster(t.Context(), controlplane.Options{RealNode: true, ControllerManager: true, Scheduler: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Stop()) })
	startNode(t, started)
	c := &cluster{Cluster: started, stories: t, backend: startBackend(t), storage: t.TempDir()}
	c.kubeconfig = c.KubeconfigFor(t, "rollouts", "deploy/manifests/default.yaml", market)
	c.Apply(t, market) // The receiver knows a kind at once if it is served before the receiver starts.
	c.startCollector()
	_, err = c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Eventually(t, func() bool {
		_, err := c.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, "the service account of pods")
	return c
}

func startNode(t *testing.T, c *harness.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n, err := node.Start(ctx, c.ControlPlane, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop()) })
	archive := filepath.Join(t.TempDir(), "workload.tar")
	require.NoError(t, image.Pack(archive, filepath.Join(c.Binaries(), "workload"), workload))
	require.NoError(t, n.ImportImage(ctx, archive))
}

// startCollector starts a Collector that runs until all stories have ended: another story may need it
// longer than the one that restarts it.
func (c *cluster) startCollector() {
	command := exec.Command(harness.Otelcol(c.stories), "--config", harness.InRepository("e2e", "rollouts", "testdata", "collector.yaml"))
	c.collector = harness.Start(c.stories, command, "KUBECONFIG="+c.kubeconfig, "BACKEND="+c.backend.url, "STORAGE="+c.storage)
}

// restartCollector ends the Collector as a crash does, and starts it again.
func (c *cluster) restartCollector() {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NoError(c.stories, c.collector.Kill())
	c.startCollector()
}

// patchDeployment changes a Deployment as kubectl patch does.
func (c *cluster) patchDeployment(t *testing.T, name, patch string) {
	t.Helper()
	_, err := c.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// setVersion changes the pod template of the Deployment shop.
func (c *cluster) setVersion(t *testing.T, version string) {
	t.Helper()
	c.patchDeployment(t, "shop", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"`+workload+`","env":[{"name":"VERSION","value":"`+version+`"}]}]}}}}`)
}

// waitTimeout is long enough for a busy machine.
const waitTimeout = 4 * time.Minute

// awaitRollout waits until a Deployment has only available pods of its present template, and returns
// the name of their ReplicaSet.
func (c *cluster) awaitRollout(t *testing.T, name string) string {
	t.Helper()
	require.True(t, harness.Poll(waitTimeout, func() bool {
		d, err := c.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
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
func (c *cluster) podsOf(t *testing.T, app string) (pods []corev1.Pod) {
	t.Helper()
	list, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(t, err)
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// TestMain lets all stories run at the same time: they mostly wait. The story of a crash cannot wait for
// others, because the kubelet waits longer before each start of a container.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(len(stories))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// stories are what happens to the workloads.
var stories = map[string]func(*testing.T, *cluster){
	"a Deployment":           deployment,
	"a crash and a recovery": crashAndRecovery,
	"a StatefulSet":          statefulSet,
	"a DaemonSet":            daemonSet,
	"a CronJob":              cronJob,
	"a custom resource":      customResource,
}

func TestRollouts(t *testing.T) {
	c := start(t)
	c.Apply(t, filepath.Join("e2e", "rollouts", "testdata", "workloads.yaml"))
	t.Run("together", func(t *testing.T) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(t, c)
			})
		}
	})
	assert.True(t, c.collector.Running(), "no story ends the Collector for the others")
}

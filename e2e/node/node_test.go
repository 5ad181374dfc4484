// SPDX-License-Identifier: Apache-2.0

// Package node tests with a real node: containerd, kubelet and containers. There, the built Collector
// reports what kubelet, scheduler and controllers do; it makes traces of rollouts; and it runs as
// operators run it, in the image that make built, installed by helm or from a manifest, while
// everything happens to its pods that can happen.
package node

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// workloadImage is the image of the containers of tests: the program cmd/workload of the control
// plane.
const workloadImage = "example.com/workload:1"

// waitTimeout only ends a test that would never end. It is long because machines may be slow.
const waitTimeout = 5 * time.Minute

// cluster is a control plane with a real node, and a backend that its pods reach.
type cluster struct {
	*harness.Cluster

	node     *node.Node
	backend  *harness.Backend
	endpoint string // of the backend, for pods
	report   *report
}

// start starts a cluster that ends with the test. Its node has the image of the workloads. It reaches
// these ports of the machine.
func start(t *testing.T, options controlplane.Options, hostPorts ...int) *cluster {
	t.Helper()
	c := startWithoutNode(t, options)
	c.startNode(t, hostPorts...)
	return c
}

func startWithoutNode(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	controlplanetest.NeedNode(t)
	options.RealNode, options.ControllerManager, options.Scheduler = true, true, true
	started, err := harness.StartCluster(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Stop()) })
	return &cluster{Cluster: started, backend: harness.NewBackend(t), report: &report{}}
}

func (c *cluster) startNode(t *testing.T, hostPorts ...int) {
	t.Helper()
	address, err := url.Parse(c.backend.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	c.endpoint = "http://" + node.Address + ":" + address.Port()
	c.node, err = node.Start(t.Context(), c.ControlPlane, node.Options{HostPorts: append(hostPorts, port)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.node.Stop()) })
	archive := filepath.Join(t.TempDir(), "workload.tar")
	require.NoError(t, image.Pack(archive, filepath.Join(c.Binaries(), "workload"), workloadImage))
	require.NoError(t, c.node.ImportImage(t.Context(), archive))
}

// builtImage is the archive of the image for this machine.
func builtImage(t *testing.T) string {
	t.Helper()
	archive := harness.InRepository("build", "image", "otelcol-kubeevents-linux-"+runtime.GOARCH+".tar")
	if _, err := os.Stat(archive); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: make image builds it", err)
		}
		t.Skipf("%v: make image builds it", err)
	}
	return archive
}

// newNamespace makes a namespace in which pods can be created, with labels: key, value, key, value. A
// name that ends with a hyphen is only the prefix of the name.
func (c *cluster) newNamespace(t *testing.T, name string, labels ...string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if strings.HasSuffix(name, "-") {
		namespace.Name, namespace.GenerateName = "", name
	}
	for pair := range slices.Chunk(labels, 2) {
		namespace.Labels[pair[0]] = pair[1]
	}
	created, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Eventually(t, func() bool {
		_, err := c.CoreV1().ServiceAccounts(created.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, "the default service account of %s", created.Name)
	return created.Name
}

// newVolume makes a volume on the node's disk, for claims of a storage class with its name.
func (c *cluster) newVolume(t *testing.T, name string) {
	t.Helper()
	path, err := c.node.MakeDirectory(name)
	require.NoError(t, err)
	_, err = c.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              name,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.node.Name()}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// restartAPIServer ends the API server as a crash does, and starts it again.
func (c *cluster) restartAPIServer(t *testing.T) {
	t.Helper()
	require.NoError(t, c.KillAPIServer())
	require.NoError(t, c.StartAPIServer(t.Context()))
}

// TestMain lets all parts of a group run at the same time: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "20"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestNode has one node for all groups of tests.
func TestNode(t *testing.T) {
	c := startWithoutNode(t, controlplane.Options{})
	p := c.newProducers(t) // It records how the node starts, too.
	c.startNode(t)
	t.Run("producers", p.run)
	if !*record {
		t.Run("details", p.details)
		t.Run("changes", c.changes)
		t.Run("rollouts", c.traceRollouts)
		t.Run("releases", c.surviveFaults)
	}
}

// surviveFaults has releases of the chart. Faults that affect one release happen at the same time.
func (c *cluster) surviveFaults(t *testing.T) {
	require.NoError(t, c.node.ImportImage(t.Context(), builtImage(t)))
	single, replicas := c.newRelease(t, "single", withVolume), c.newRelease(t, "replicas", withReplicas)
	defaults := c.newRelease(t, "defaults", withDefaults)
	ready := t.Run("one release", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T){
			"the trial":                  c.trial,
			"one replica with a volume":  single.livesWithAVolume,
			"two replicas":               replicas.takeTurns,
			"the chart's default":        defaults.losesItsPod,
			"the namespaces of a tenant": c.tenant,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t)
			})
		}
	})
	if !ready {
		return
	}
	for _, fault := range []struct {
		name  string
		cause func()
	}{
		{"kubelet killed", func() { require.NoError(t, c.node.KillKubelet()) }},
		{"API server killed and restarted", func() { c.restartAPIServer(t) }},
		{"drain of the node: each pod evicted", func() { c.drain(t, replicas, single, defaults) }},
	} {
		c.count(t, fault.name, func(*traffic) { fault.cause() }, single, replicas, defaults)
	}
	c.write(t, "cluster", c.environment(t))
}

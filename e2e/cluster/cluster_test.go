// SPDX-License-Identifier: Apache-2.0

// Package cluster tests the distribution as operators run it: on a real node, in the image that make
// built, installed by helm or from a manifest. Events come of real kubelets, and of recorders that
// write through the API. Everything that can happen to the pods happens to them, and a backend counts
// what arrives.
package cluster

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

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// cluster is a control plane with a real node, and a backend that its pods reach.
type cluster struct {
	*harness.Cluster

	node     *node.Node
	backend  *harness.Backend
	endpoint string // of the backend, for pods
	report   *report
}

// start starts a cluster that ends with the test. Its node has the images of the distribution and of
// the workloads.
func start(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	controlplanetest.NeedNode(t)
	archive := builtImage(t)
	c := startWithoutImage(t, options)
	require.NoError(t, c.node.ImportImage(t.Context(), archive))
	return c
}

// startWithoutImage starts a cluster whose node has only the image of the workloads. It reaches these
// ports of the machine.
func startWithoutImage(t *testing.T, options controlplane.Options, hostPorts ...int) *cluster {
	t.Helper()
	backend := harness.NewBackend(t)
	address, err := url.Parse(backend.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)

	cp, n := controlplanetest.StartNode(t, options, node.Options{HostPorts: append(hostPorts, port)})
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	dynamicClient, err := dynamic.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	workload := filepath.Join(t.TempDir(), "workload.tar")
	require.NoError(t, image.Pack(workload, filepath.Join(controlplanetest.Binaries(), "workload"), workloadImage))
	require.NoError(t, n.ImportImage(t.Context(), workload))
	return &cluster{
		Cluster: &harness.Cluster{ControlPlane: cp, Interface: client, Dynamic: dynamicClient},
		node:    n, backend: backend, endpoint: "http://" + node.Address + ":" + address.Port(), report: &report{},
	}
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

// TestMain lets all parts of TestCluster run at the same time: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestCluster has one cluster for all faults. Those that affect one release run at the same time.
func TestCluster(t *testing.T) {
	c := start(t, controlplane.Options{})
	single, replicas := c.newRelease(t, "single", withVolume), c.newRelease(t, "replicas", withReplicas)
	ready := t.Run("one release", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T){
			"the trial":                     c.trial,
			"one replica with a volume":     single.livesWithAVolume,
			"two replicas":                  replicas.takeTurns,
			"the namespaces of a tenant":    c.tenant,
			"a component that leaks memory": c.outOfMemory,
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
	t.Run("kubelet is killed", func(t *testing.T) {
		c.count(t, "kubelet killed", func(*traffic) { require.NoError(t, c.node.KillKubelet()) }, single, replicas)
	})
	t.Run("API server is killed", func(t *testing.T) {
		c.count(t, "API server killed and restarted", func(*traffic) { c.restartAPIServer(t) }, single, replicas)
	})
	t.Run("node is drained", func(t *testing.T) {
		c.count(t, "drain of the node: each pod evicted", func(*traffic) { c.drain(t, single, replicas) }, single, replicas)
	})
	c.write(t, "cluster", c.environment(t))
}

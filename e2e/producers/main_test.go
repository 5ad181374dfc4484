// SPDX-License-Identifier: Apache-2.0

// Package producers causes the events that kubelet, scheduler and controllers record, on a real
// node. It checks that the built Collector emits each of them with its owners.
//
// `make record-producers` runs all situations and writes their events to
// testdata/producers/kubernetes, where the golden test of the receiver reads them. `go test` runs
// only a few, because some take minutes.
package producers

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var record = flag.Bool("record", false, "run all situations, and write their events to testdata/producers/kubernetes")

// workload is the image of the control plane's program workload.
const workload = "example.com/workload:1"

// cluster is a control plane with a real node. A recorder and a Collector see all of its events,
// also those of the node's start.
type cluster struct {
	*harness.Cluster
	node     *node.Node
	recorder *recorder
	backend  *harness.Backend // what the Collector emits
}

func TestProducers(t *testing.T) {
	controlplanetest.NeedNode(t)
	c := start(t)
	t.Run("together", func(t *testing.T) {
		for _, s := range situations {
			if s.alone || !s.always && !*record {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, c)
			})
		}
	})
	for _, s := range situations {
		if s.alone && *record {
			t.Run(s.name, func(t *testing.T) { s.run(t, c) })
		}
	}
}

func start(t *testing.T) *cluster {
	t.Helper()
	started, err := harness.StartCluster(t.Context(), controlplane.Options{RealNode: true, ControllerManager: true, Scheduler: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Stop()) })
	c := &cluster{Cluster: started, backend: startCollector(t, started)}
	c.recorder = startRecorder(t, started)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c.node, err = node.Start(ctx, started.ControlPlane, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.node.Stop()) })
	archive := filepath.Join(t.TempDir(), "workload.tar")
	require.NoError(t, image.Pack(archive, filepath.Join(started.Binaries(), "workload"), workload))
	require.NoError(t, c.node.ImportImage(ctx, archive))
	return c
}

// startCollector starts the built Collector for a cluster, and returns the backend to which it
// sends.
func startCollector(t *testing.T, c *harness.Cluster) *harness.Backend {
	t.Helper()
	backend := harness.NewBackend(t)
	harness.Run(t, harness.Otelcol(t), harness.InRepository("e2e", "producers", "testdata", "collector.yaml"),
		"KUBECONFIG="+c.KubeconfigFor(t, "producers", "deploy/manifests/default.yaml"), "BACKEND="+backend.URL)
	return backend
}

// createNamespace creates a namespace in which pods can be created.
func (c *cluster) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Eventually(t, func() bool {
		_, err := c.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		return err == nil
	}, "the service account of pods")
}

// applyManifest applies the situation's manifest, if it has one.
func (c *cluster) applyManifest(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("e2e", "producers", "testdata", name+".yaml")
	if _, err := os.Stat(harness.InRepository(path)); err == nil {
		c.Apply(t, path)
	}
}

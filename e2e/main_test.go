// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the receiver against a real Kubernetes control plane: etcd, kube-apiserver,
// controllers, scheduler and kwok nodes, all on the loopback interface. It goes through what the
// receiver promises line by line, and knows nothing of how the receiver does it: a test writes to
// the API server and looks at what comes out of the pipelines.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// cluster is a control plane with clients that may do everything.
type cluster struct{ *harness.Cluster }

// kube is the cluster that most tests share, each in namespaces of its own: controllers, scheduler
// and nodes are at work. A test that breaks a cluster starts its own.
var kube = &cluster{}

// bare is shared as well. It has no controllers, so nothing there removes an object whose owner
// does not exist.
var bare lazyCluster

func TestMain(m *testing.M) {
	flag.Parse()
	waitTogether()
	code := harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2}, &kube.Cluster)
	if err := bare.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
		code = 1
	}
	os.Exit(code)
}

// waitTogether makes more tests run at a time than there are processors, because what they mostly
// do is wait.
func waitTogether() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
}

func startCluster(ctx context.Context, options controlplane.Options) (*cluster, error) {
	started, err := harness.StartCluster(ctx, options)
	if err != nil {
		return nil, err
	}
	return &cluster{started}, nil
}

// ownCluster starts a cluster for one test.
func ownCluster(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	c, err := startCluster(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return c
}

// lazyCluster starts when the first test asks for it.
type lazyCluster struct {
	options controlplane.Options
	once    sync.Once
	cluster *cluster
	err     error
}

func (l *lazyCluster) get(t *testing.T) *cluster {
	t.Helper()
	l.once.Do(func() { l.cluster, l.err = startCluster(context.Background(), l.options) })
	require.NoError(t, l.err)
	return l.cluster
}

func (l *lazyCluster) stop() error {
	l.once.Do(func() {})
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Stop()
}

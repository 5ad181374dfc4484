// SPDX-License-Identifier: Apache-2.0

// Package receiver tests the receiver against a real Kubernetes control plane: etcd, kube-apiserver,
// controllers, scheduler and kwok nodes, all on the loopback interface. It has what needs a real API
// server: recorders, controllers, RBAC, authentication, discovery, field selectors, pages, and 410
// Gone. Unit tests and the simulation have the rest.
package receiver

import (
	"flag"
	"fmt"
	"os"
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
var bare harness.SharedCluster

func TestMain(m *testing.M) {
	flag.Parse()
	waitTogether()
	code := harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2}, &kube.Cluster)
	if err := bare.Stop(); err != nil {
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

func bareCluster(t *testing.T) *cluster { return &cluster{bare.Get(t)} }

// ownCluster starts a cluster for one test.
func ownCluster(t *testing.T) *cluster {
	t.Helper()
	c, err := harness.StartCluster(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return &cluster{c}
}

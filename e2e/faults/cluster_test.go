// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// cluster is a control plane with a client that may do everything.
type cluster struct{ *harness.Cluster }

// ownCluster starts a cluster for a fault that breaks it.
func ownCluster(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	started, err := harness.StartCluster(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Stop()) })
	config := started.RESTConfig()
	config.Timeout = 10 * time.Second // An API server that a test has stopped must not hold it up.
	started.Interface, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return &cluster{started}
}

// shared is the cluster of the faults that break something else, each in a namespace of its own.
var shared harness.SharedCluster

func sharedCluster(t *testing.T) *cluster { return &cluster{shared.Get(t)} }

func TestMain(m *testing.M) {
	if missing := harness.Missing(harness.OtelcolPath()); missing != nil && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped: make controlplane build builds what is missing:", missing)
		return
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
		code = 1
	}
	os.Exit(code)
}

// newNamespace makes one that no other test uses.
func (c *cluster) newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return ns.Name
}

// resourceVersion is that of everything that the API server has.
func (c *cluster) resourceVersion(t *testing.T) (version uint64) {
	t.Helper()
	list, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	version, err = strconv.ParseUint(list.ResourceVersion, 10, 64)
	require.NoError(t, err)
	return version
}

func (c *cluster) awaitResourceVersion(t *testing.T, version uint64) {
	t.Helper()
	harness.Eventually(t, func() bool { return c.resourceVersion(t) >= version }, "resource version %d", version)
}

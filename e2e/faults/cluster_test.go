// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// cluster is a control plane with a client that may do everything.
type cluster struct {
	*controlplane.ControlPlane
	kubernetes.Interface
}

func newCluster(options controlplane.Options) (*cluster, error) {
	options.Binaries = controlplanetest.Binaries()
	cp, err := controlplane.Start(context.Background(), options)
	if err != nil {
		return nil, err
	}
	config := cp.RESTConfig()
	config.Timeout = 10 * time.Second // An API server that a test has stopped must not hold it up.
	client, err := kubernetes.NewForConfig(config)
	return &cluster{cp, client}, err
}

// ownCluster starts a cluster for a fault that breaks it.
func ownCluster(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	c, err := newCluster(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return c
}

// shared is the cluster of the faults that break something else, each in a namespace of its own.
var shared = struct {
	once sync.Once
	*cluster
	err error
}{}

func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = newCluster(controlplane.Options{}) })
	require.NoError(t, shared.err)
	return shared.cluster
}

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if missing := missingPrograms(); missing != nil && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped: make controlplane build builds what is missing:", missing)
		return 0
	}
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
			return 1
		}
	}
	return code
}

func missingPrograms() error {
	_, errCollector := os.Stat(otelcol())
	_, errServer := os.Stat(controlplanetest.Binaries() + "/kube-apiserver")
	return errors.Join(errCollector, errServer)
}

// newNamespace makes one that no other test uses.
func (c *cluster) newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return ns.Name
}

// compact makes etcd forget all versions but the newest of everything, as it does after some minutes.
func (c *cluster) compact(t *testing.T) {
	t.Helper()
	list, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	body := fmt.Appendf(nil, `{"revision": %s, "physical": true}`, list.ResourceVersion)
	response, err := http.Post(c.EtcdEndpoint()+"/v3/kv/compaction", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

var eventWatches = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{[^}]*resource="events"[^}]*verb="WATCH"[^}]*\} (\d+)`)

// eventWatches is how many watches of events the API server serves.
func (c *cluster) eventWatches(t *testing.T) (n int) {
	t.Helper()
	page, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		return 0 // The API server may be away.
	}
	for _, found := range eventWatches.FindAllSubmatch(page, -1) {
		one := 0
		_, _ = fmt.Sscan(string(found[1]), &one)
		n += one
	}
	return n
}

// version is what the API server says that it is.
func version(config *rest.Config) string {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err.Error()
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return err.Error()
	}
	return info.GitVersion
}

// eventually polls until a condition holds. The deadline only ends a test that would never end.
func eventually(t *testing.T, holds func() bool, what string, args ...any) {
	t.Helper()
	if !within(2*time.Minute, holds) {
		require.FailNow(t, "waited in vain for "+fmt.Sprintf(what, args...))
	}
}

func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}

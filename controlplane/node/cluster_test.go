// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

// workload is the image of the program cmd/workload.
const workload = "example.com/workload:1"

// cluster is a control plane with a real node that has the image workload.
type cluster struct {
	kubernetes.Interface
	cp   *controlplane.ControlPlane
	node *node.Node
	// hostPort is a port of this machine that pods reach.
	hostPort int
}

// startCluster starts a cluster. Its files are in dir.
func startCluster(ctx context.Context, dir string, hostPorts ...int) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	c.cp, err = controlplane.Start(ctx, controlplane.Options{
		Binaries: controlplanetest.Binaries(), DataDir: dir, RealNode: true, ControllerManager: true, Scheduler: true,
	})
	if err != nil {
		return c, err
	}
	if c.Interface, err = kubernetes.NewForConfig(c.cp.RESTConfig()); err != nil {
		return c, err
	}
	if c.node, err = node.Start(ctx, c.cp, node.Options{HostPorts: hostPorts}); err != nil {
		return c, err
	}
	archive := filepath.Join(dir, "workload.tar")
	if err := image.Pack(archive, filepath.Join(c.cp.Binaries(), "workload"), workload); err != nil {
		return c, err
	}
	return c, c.node.ImportImage(ctx, archive)
}

func (c *cluster) stop() (err error) {
	if c.node != nil {
		err = c.node.Stop()
	}
	if c.cp != nil {
		err = errors.Join(err, c.cp.Stop())
	}
	return err
}

// hostAnswer is what this machine answers to pods.
const hostAnswer = "this is the machine"

// startShared starts the cluster that several tests share.
var startShared = sync.OnceValues(func() (*cluster, error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, hostAnswer) }))
	address, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		return nil, err
	}
	stopShared = func() error {
		server.Close()
		return os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	removeFiles := stopShared
	stopShared = func() error { return errors.Join(c.stop(), removeFiles()) }
	c.hostPort = port
	return c, nil
})

// stopShared stops what startShared has started.
var stopShared = func() error { return nil }

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterVariable); dir != "" {
		os.Exit(startUntilKilled(dir))
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared returns the shared cluster, and a new namespace of it in which pods can be created.
func shared(t *testing.T) (c *cluster, namespace string) {
	t.Helper()
	controlplanetest.NeedNode(t)
	c, err := startShared()
	require.NoError(t, err)
	created, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func(ct *assert.CollectT) {
		_, err := c.CoreV1().ServiceAccounts(created.Name).Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(ct, err)
	})
	return c, created.Name
}

func eventually(t *testing.T, condition func(*assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, condition, 2*time.Minute, 200*time.Millisecond)
}

// pod returns a pod whose container has the image workload.
func pod(name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "app", Image: workload, Args: args}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
}

func (c *cluster) create(t *testing.T, namespace string, pod *corev1.Pod) {
	t.Helper()
	_, err := c.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// output runs a pod until its end and returns its last message.
func (c *cluster) output(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	p := pod("once", args...)
	p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	c.create(t, namespace, p)
	var message string
	eventually(t, func(ct *assert.CollectT) {
		found, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(ct, err)
		require.Equal(ct, corev1.PodSucceeded, found.Status.Phase, "%+v", found.Status.ContainerStatuses)
		message = found.Status.ContainerStatuses[0].State.Terminated.Message
	})
	return message
}

// awaitEvent waits for an event of a kubelet with a reason and a part of its message.
func (c *cluster) awaitEvent(t *testing.T, namespace, reason, message string) corev1.Event {
	t.Helper()
	var found corev1.Event
	eventually(t, func(ct *assert.CollectT) {
		events, err := c.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(ct, err)
		var seen []string
		for _, event := range events.Items {
			seen = append(seen, event.Reason+": "+event.Message)
			if event.Reason == reason && event.Source.Component == "kubelet" && strings.Contains(event.Message, message) {
				found = event
				return
			}
		}
		assert.Fail(ct, "no such event", "%s: %s in %q", reason, message, seen)
	})
	return found
}

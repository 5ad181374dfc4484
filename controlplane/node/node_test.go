// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
}

// startCluster starts a cluster. Its files are in dir.
func startCluster(ctx context.Context, dir string) (c *cluster, err error) {
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
	if c.node, err = node.Start(ctx, c.cp, node.Options{}); err != nil {
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

// runPod runs a pod, so that there is something that could be left.
func (c *cluster) runPod(ctx context.Context) error {
	pods := c.CoreV1().Pods(metav1.NamespaceDefault)
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "running"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: workload}}},
	}, metav1.CreateOptions{})
	for err == nil {
		var found *corev1.Pod
		if found, err = pods.Get(ctx, "running", metav1.GetOptions{}); err == nil && found.Status.Phase == corev1.PodRunning {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// starterVariable makes this program start a cluster, in the directory that is its value, and wait
// until it is killed.
const starterVariable = "KUBE_EVENTS_TEST_NODE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterVariable); dir != "" {
		fmt.Fprintln(os.Stderr, startUntilKilled(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startUntilKilled starts a cluster with a pod, writes its traces to standard output, and never
// returns without an error.
func startUntilKilled(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, dir)
	if err != nil {
		return err
	}
	if err := c.runPod(ctx); err != nil {
		return err
	}
	left, err := tracesOf(c)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(left); err != nil {
		return err
	}
	select {}
}

func TestKillLeavesNothing(t *testing.T) {
	controlplanetest.NeedNode(t)
	before := machine(t)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), starterVariable+"="+t.TempDir())
	starter.Stderr = os.Stderr
	output, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	var left traces
	line, err := bufio.NewReader(output).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &left))
	left.exist(t)

	require.NoError(t, starter.Process.Kill())
	assert.Error(t, starter.Wait(), "killed")
	require.Eventually(t, func() bool { return ended(left.Supervisor) }, time.Minute, 50*time.Millisecond)
	left.areGone(t)
	assert.Equal(t, before, machine(t))
}

func TestStopLeavesNothing(t *testing.T) {
	controlplanetest.NeedNode(t)
	before := machine(t)
	c, err := startCluster(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.stop()) })
	require.NoError(t, c.runPod(t.Context()))
	left, err := tracesOf(c)
	require.NoError(t, err)
	left.exist(t)
	assert.Equal(t, before, machine(t), "while it runs")

	require.NoError(t, c.node.Stop())
	left.areGone(t)
	assert.Equal(t, before, machine(t))
	assert.NoError(t, c.node.Stop(), "a second time")
}

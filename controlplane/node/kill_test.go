// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// starterVariable makes this program start a cluster, in the directory that is its value, and wait
// until it is killed.
const starterVariable = "KUBE_EVENTS_TEST_NODE_DIR"

// failure panics instead of ending a test.
type failure struct{}

func (failure) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format, args...) }
func (failure) FailNow()                          { panic("failed") }

// startUntilKilled starts a cluster with a pod, writes its traces to standard output, and never
// returns without an error.
func startUntilKilled(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, err = c.CoreV1().Pods("default").Create(ctx, pod("running"), metav1.CreateOptions{})
	require.NoError(failure{}, err)
	for {
		found, err := c.CoreV1().Pods("default").Get(ctx, "running", metav1.GetOptions{})
		require.NoError(failure{}, err)
		if found.Status.Phase == corev1.PodRunning {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := json.NewEncoder(os.Stdout).Encode(tracesOf(failure{}, c)); err != nil {
		return 1
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

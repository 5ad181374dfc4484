// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubeletIsConfigured is not parallel, because it ends kubelet.
func TestKubeletIsConfigured(t *testing.T) {
	c, _ := shared(t)
	maxPods := func(ct require.TestingT) string {
		found, err := c.CoreV1().Nodes().Get(t.Context(), c.node.Name(), metav1.GetOptions{})
		require.NoError(ct, err)
		return found.Status.Allocatable.Pods().String()
	}
	before := maxPods(t)

	require.NoError(t, c.node.ConfigureKubelet("maxPods: 77\n"))
	eventually(t, func(ct *assert.CollectT) { assert.Equal(ct, "77", maxPods(ct)) })
	require.NoError(t, c.node.ConfigureKubelet(""))
	eventually(t, func(ct *assert.CollectT) { assert.Equal(ct, before, maxPods(ct)) })
}

// TestKubeletPauses is not parallel, because other tests need kubelet.
func TestKubeletPauses(t *testing.T) {
	c, namespace := shared(t)
	isStopped := func() bool {
		pid, err := c.node.KubeletPID()
		require.NoError(t, err)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		require.NoError(t, err)
		return strings.Contains(string(status), "State:\tT (stopped)")
	}
	resume, err := c.node.PauseKubelet()
	require.NoError(t, err)
	eventually(t, func(ct *assert.CollectT) { assert.True(ct, isStopped()) })

	require.NoError(t, resume())
	c.output(t, namespace, "succeed") // kubelet runs pods again
	assert.False(t, isStopped())
}

// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

func shell(t *testing.T, script string) (*process.Process, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := process.Start(process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	return p, log
}

func waitForLog(t *testing.T, log string) string {
	t.Helper()
	var content []byte
	require.Eventually(t, func() bool {
		content, _ = os.ReadFile(log)
		return strings.HasSuffix(string(content), "\n")
	}, 10*time.Second, 5*time.Millisecond)
	return strings.TrimSpace(string(content))
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	p, log := shell(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	waitForLog(t, log)
	require.NoError(t, p.Stop(50*time.Millisecond))
	assert.Equal(t, 128+int(syscall.SIGKILL), p.ExitCode())
}

func TestStopReachesGrandchildren(t *testing.T) {
	p, log := shell(t, `(trap '' TERM; exec sleep 60) & echo $!; wait`)
	grandchild, err := strconv.Atoi(waitForLog(t, log))
	require.NoError(t, err)
	require.NoError(t, p.Stop(time.Minute))
	assert.Eventually(t, func() bool { return ended(grandchild) }, 10*time.Second, 5*time.Millisecond)
}

// ended reports whether a process is gone, or is a zombie that its new parent has not yet reaped.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

func TestStopLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cp := controlplanetest.Start(t, controlplane.Options{DataDir: dir, ControllerManager: true, Scheduler: true, Nodes: 1})
	pids := cp.PIDs()
	require.Len(t, pids, 5)

	require.NoError(t, cp.Stop())
	for _, pid := range pids {
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d", pid)
		assert.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "process group %d", pid)
	}
	assert.Empty(t, cp.PIDs())
	assert.DirExists(t, dir, "a directory that was given is kept")
	require.NoError(t, cp.Stop(), "a second time")
}

func TestMissingPrograms(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: t.TempDir(), Scheduler: true})
	require.ErrorIs(t, err, controlplane.ErrBinariesMissing)
	assert.ErrorContains(t, err, "[etcd kube-apiserver kube-scheduler]")
	assert.ErrorContains(t, err, "make controlplane")
}

// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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

func TestStoreIn(t *testing.T) {
	directory := t.TempDir()
	assert.Equal(t, controlplane.Etcd, controlplane.StoreIn(directory), "the one that the error names if it is missing")
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kine"), nil, 0o700))
	assert.Equal(t, controlplane.Kine, controlplane.StoreIn(directory))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "etcd"), nil, 0o700))
	assert.Equal(t, controlplane.Etcd, controlplane.StoreIn(directory))
}

func TestMissingPrograms(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: t.TempDir(), Scheduler: true})
	require.ErrorIs(t, err, controlplane.ErrBinariesMissing)
	assert.ErrorContains(t, err, "[etcd kube-apiserver kube-scheduler]")
	assert.ErrorContains(t, err, "make controlplane")
}

func TestSimulatedAndRealNodes(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: t.TempDir(), Nodes: 1, RealNode: true})
	assert.ErrorContains(t, err, "set Options.Nodes or Options.RealNode, not both")
}

func TestFailingStartQuotesTheLog(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: controlplanetest.Binaries(), APIServerArgs: []string{"--no-such-flag"}})
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.ErrorContains(t, err, "kube-apiserver ended with exit code 1")
	assert.ErrorContains(t, err, "unknown flag: --no-such-flag")
}

func TestStartGivesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	binaries := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		require.NoError(t, os.WriteFile(filepath.Join(binaries, name), []byte("#!/bin/sh\nsleep 60\n"), 0o700))
	}
	_, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "the API server's certificate")
}

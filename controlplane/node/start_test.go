// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

func TestStartFails(t *testing.T) {
	controlplanetest.NeedNode(t)
	cp := controlplanetest.Start(t, controlplane.Options{RealNode: true})
	_, err := node.Start(t.Context(), cp, node.Options{HostPorts: []int{70000}})
	require.ErrorContains(t, err, "start a real node")
	assert.ErrorContains(t, err, "invalid port", "the log is quoted")
	entries, err := os.ReadDir(cp.NodeDir())
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the log is left")
	assert.Equal(t, "node.log", entries[0].Name())
}

func TestProgramsAreMissing(t *testing.T) {
	controlplanetest.NeedNode(t)
	err := node.Check(t.TempDir())
	require.ErrorIs(t, err, controlplane.ErrBinariesMissing)
	assert.ErrorContains(t, err, "containerd-shim-runc-v2")
	assert.ErrorContains(t, err, "make controlplane")
}

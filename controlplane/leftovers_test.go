// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endedProcess returns the id of a process that has ended.
func endedProcess(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "true")
	require.NoError(t, command.Run())
	return strconv.Itoa(command.Process.Pid)
}

func TestDirectoriesOfEndedProcessesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ended := endedProcess(t)
	for _, directory := range []string{"controlplane-" + ended + "-123/etcd", "controlplane-" + ended, "controlplane-" + ended + "-notes"} {
		require.NoError(t, os.MkdirAll(filepath.Join(os.TempDir(), directory), 0o700))
	}
	elsewhere := filepath.Join(os.TempDir(), "controlplane-"+ended+"-456") // of a process in another container
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.True(t, lock(elsewhere))
	running, err := makeTemporaryDir()
	require.NoError(t, err)
	second, err := makeTemporaryDir()
	require.NoError(t, err)

	assert.NoDirExists(t, filepath.Join(os.TempDir(), "controlplane-"+ended+"-123"))
	assert.DirExists(t, elsewhere, "it is locked")
	assert.DirExists(t, running, "this process still runs")
	assert.DirExists(t, second)
	assert.DirExists(t, filepath.Join(os.TempDir(), "controlplane-"+ended), "no name of this package")
	assert.DirExists(t, filepath.Join(os.TempDir(), "controlplane-"+ended+"-notes"), "no name of this package")
}

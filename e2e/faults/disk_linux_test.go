// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// smallDisk is a file system of 1 MiB, which needs the right to mount one.
func smallDisk(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no permission to mount a small disk: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(directory, syscall.MNT_DETACH)) })
	return directory
}

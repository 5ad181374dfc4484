// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// makeTemporaryDir makes a data directory that Stop removes. A process that is killed cannot call
// Stop, so the name has the id of this process: the next process that starts a control plane removes
// the directory.
func makeTemporaryDir() (string, error) {
	removeLeftovers(os.TempDir())
	return os.MkdirTemp("", fmt.Sprintf("controlplane-%d-", os.Getpid()))
}

var temporaryName = regexp.MustCompile(`^controlplane-(\d+)-\d+$`)

// removeLeftovers removes the data directories of processes that have ended. It ignores errors,
// because a directory may belong to another user, and none is in the way of the next control plane.
func removeLeftovers(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		if name := temporaryName.FindStringSubmatch(entry.Name()); name != nil && entry.IsDir() && hasEnded(name[1]) {
			_ = os.RemoveAll(filepath.Join(parent, entry.Name()))
		}
	}
}

// hasEnded reports whether no process has the id. It returns false if it cannot know.
func hasEnded(pid string) bool {
	id, err := strconv.Atoi(pid)
	return err == nil && id > 0 && errors.Is(syscall.Kill(id, 0), syscall.ESRCH)
}

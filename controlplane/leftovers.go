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
// the directory. It is locked as long as this process runs, because containers that share the parent
// directory do not see each other's processes.
func makeTemporaryDir() (string, error) {
	removeLeftovers(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("controlplane-%d-", os.Getpid()))
	if err != nil {
		return "", err
	}
	if !lock(dir) {
		return "", fmt.Errorf("cannot lock the directory %s", dir)
	}
	return dir, nil
}

// lock locks a directory until this process ends. It returns false if another process has locked it.
func lock(dir string) bool {
	file, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	if syscall.Flock(file, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = syscall.Close(file)
		return false
	}
	return true
}

var temporaryName = regexp.MustCompile(`^controlplane-(\d+)-\d+$`)

// removeLeftovers removes the data directories of processes that have ended. It ignores errors,
// because a directory may belong to another user, and none is in the way of the next control plane.
func removeLeftovers(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		name, dir := temporaryName.FindStringSubmatch(entry.Name()), filepath.Join(parent, entry.Name())
		if name != nil && entry.IsDir() && hasEnded(name[1]) && lock(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// hasEnded reports whether this process sees no process with the id.
func hasEnded(pid string) bool {
	id, err := strconv.Atoi(pid)
	return err == nil && id > 0 && errors.Is(syscall.Kill(id, 0), syscall.ESRCH)
}

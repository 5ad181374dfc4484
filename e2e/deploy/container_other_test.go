// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package deploy

import (
	"os/exec"
	"testing"
)

// container is a process as a container runtime makes it.
type container struct {
	Root         string
	ReadOnlyRoot bool
	Mounts       []mount
	User         int
	Argv, Env    []string
}

type mount struct {
	Source, Path string
	ReadOnly     bool
}

func asContainer() bool   { return false }
func enterContainer() int { return 1 }

func (container) command(*testing.T) *exec.Cmd { return nil }

func needContainers(t *testing.T) {
	t.Helper()
	t.Skip("only Linux has containers")
}

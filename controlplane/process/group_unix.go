// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// groupLeader makes a program the leader of its own process group.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

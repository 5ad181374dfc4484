// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// groupLeader puts a program at the head of a process group of its own.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

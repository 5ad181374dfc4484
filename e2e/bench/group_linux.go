// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// ownGroup puts a program at the head of a process group of its own, and has the kernel kill it when the thread that
// started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// SPDX-License-Identifier: Apache-2.0

package proc

import "syscall"

// OwnGroup puts a program at the head of a process group of its own, and has the kernel kill it when the thread that
// started it ends.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

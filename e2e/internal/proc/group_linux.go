// SPDX-License-Identifier: Apache-2.0

package proc

import "syscall"

// ownGroup makes a program the leader of a process group of its own. The kernel kills the program
// when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

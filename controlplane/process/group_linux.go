// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// groupLeader makes a program the leader of its own process group. The kernel kills the program
// when the thread that started it ends.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

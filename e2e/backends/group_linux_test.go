// SPDX-License-Identifier: Apache-2.0

package backends

import "syscall"

// tied has the kernel kill a program when the thread that started it ends.
func tied() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

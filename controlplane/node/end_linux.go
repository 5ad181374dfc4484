// SPDX-License-Identifier: Apache-2.0

package node

import "syscall"

// endsInOrder makes the kernel ask the supervisor to end when this process ends. The supervisor
// must not be killed then, because it still has to clean up.
func endsInOrder(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }

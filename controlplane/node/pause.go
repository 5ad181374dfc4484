// SPDX-License-Identifier: Apache-2.0

package node

import "syscall"

// PauseKubelet stops kubelet without ending it, as on a machine that hangs: the node misses its
// heartbeats. The containers continue. The returned function makes kubelet continue.
func (n *Node) PauseKubelet() (resume func() error, err error) {
	pid, err := n.kubeletPID()
	if err != nil {
		return nil, err
	}
	return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
}

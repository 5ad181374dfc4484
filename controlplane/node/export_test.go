// SPDX-License-Identifier: Apache-2.0

package node

// Cgroup returns the name of the node's cgroup.
func (n *Node) Cgroup() string { return n.cgroup }

// KubeletPID returns the process id of kubelet.
func (n *Node) KubeletPID() (int, error) { return n.kubeletPID() }

// SupervisorPID returns the process id of the supervisor.
func (n *Node) SupervisorPID() int { return n.supervisor.PID() }

// Dir returns the node's directory.
func (n *Node) Dir() string { return n.dir }

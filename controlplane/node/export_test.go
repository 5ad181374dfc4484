// SPDX-License-Identifier: Apache-2.0

package node

// Leftovers returns the process id of the supervisor, the name of the node's cgroup and the node's
// directory.
func (n *Node) Leftovers() (supervisor int, cgroup, dir string) {
	return n.supervisor.PID(), n.cgroup, n.dir
}

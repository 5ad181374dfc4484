// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KillKubelet kills kubelet, as a crash does. The containers continue, and the node starts kubelet
// again.
func (n *Node) KillKubelet() error {
	pid, err := n.kubeletPID()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// kubeletPID finds kubelet among all processes by its cgroup, which no other node has.
func (n *Node) kubeletPID() (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(arguments), "--cgroup-root=/"+n.cgroup) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, errors.New("kubelet is not running")
}

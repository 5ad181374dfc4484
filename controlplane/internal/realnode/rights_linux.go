// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// missingRights returns what this process may not do.
func missingRights() []string {
	if os.Geteuid() != 0 {
		return []string{"root permissions"}
	}
	if err := createNamespaces(); err != nil {
		return []string{fmt.Sprintf("permission to create namespaces (%v)", err)}
	}
	return nil
}

// createNamespaces tries to create namespaces, on a thread that then ends.
func createNamespaces() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // without an unlock: the thread ends with the goroutine
		result <- syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_NEWNET)
	}()
	return <-result
}

// SPDX-License-Identifier: Apache-2.0

package child

import (
	"net"
	"os/exec"
	"runtime"
)

// Start starts a program. The channel is closed when it has ended; command.ProcessState then tells how. The thread that
// starts it stays until then, because Linux takes the end of that thread for the parent's.
func Start(command *exec.Cmd) (ended <-chan struct{}, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(done)
		}
	}()
	return done, <-started
}

// FreeAddresses are ones that nobody listens on, all different.
func FreeAddresses(n int) (addresses []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

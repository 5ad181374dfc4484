// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"math/rand/v2"
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

// FreeAddresses are ones that nobody listens on, all different. They are below the ports that systems give to clients, of
// which one that is free now may be a connection's in a moment.
func FreeAddresses(n int) (addresses []string, err error) {
	const lowest, tries = 10_000, 100
	for try := 0; len(addresses) < n; try++ {
		address := fmt.Sprint("127.0.0.1:", lowest+rand.IntN(firstClientPort-lowest))
		listener, err := net.Listen("tcp", address)
		if err != nil && try < tries {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// firstClientPort is the lowest port that Linux gives to clients by default; other systems begin higher.
const firstClientPort = 32_768

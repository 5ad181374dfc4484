// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// FreeAddresses returns addresses that no program listens on. A process gets each port once, since the
// program that is to use it begins to listen later. The ports are below those that systems give to
// clients: a client port that is free now may be in use a moment later.
func FreeAddresses(n int) (addresses []string, err error) {
	const tries = 100
	for try := 0; len(addresses) < n; try++ {
		address := fmt.Sprint("127.0.0.1:", lowest+nextPort.Add(1)%(firstClientPort-lowest))
		listener, err := net.Listen("tcp", address)
		if err != nil && try < tries {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

const (
	lowest = 10_000
	// firstClientPort is the lowest port that Linux gives to clients by default; other systems begin
	// higher.
	firstClientPort = 32_768
)

// nextPort counts from a random number, so that processes which run side by side have other ports.
var nextPort = func() *atomic.Uint32 {
	var at atomic.Uint32
	at.Store(rand.Uint32N(firstClientPort))
	return &at
}()

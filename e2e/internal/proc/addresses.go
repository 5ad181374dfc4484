// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddresses returns different addresses that no program listens on. Their ports are below those
// that systems give to clients: a client port that is free now may be in use a moment later.
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

// firstClientPort is the lowest port that Linux gives to clients by default; other systems begin
// higher.
const firstClientPort = 32_768

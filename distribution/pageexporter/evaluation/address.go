// SPDX-License-Identifier: Apache-2.0

package main

import "net"

// freeAddress returns an address of the loopback interface that nothing uses now.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:8099"
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

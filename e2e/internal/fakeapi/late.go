// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net"
	"time"
)

// late is a connection whose bytes can be read only some time after they have arrived.
type late struct {
	net.Conn

	arrived <-chan chunk
	rest    []byte
	err     error // of the connection; valid when arrived is closed
}

type chunk struct {
	bytes []byte
	due   time.Time
}

// delayed returns the connection, or one that is late if the proxy is.
func (p *TCPProxy) delayed(c net.Conn) net.Conn {
	if p.late == 0 {
		return c
	}
	const most = 1 << 12 // beyond this, the server has to wait
	arrived := make(chan chunk, most)
	l := &late{Conn: c, arrived: arrived}
	go func() {
		defer close(arrived)
		for l.err == nil {
			buffer := make([]byte, 2048)
			var n int
			n, l.err = c.Read(buffer)
			arrived <- chunk{buffer[:n], time.Now().Add(p.late)}
		}
	}()
	return l
}

func (l *late) Read(buffer []byte) (int, error) {
	for len(l.rest) == 0 {
		next, more := <-l.arrived
		if !more {
			return 0, l.err
		}
		time.Sleep(time.Until(next.due))
		l.rest = next.bytes
	}
	n := copy(buffer, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

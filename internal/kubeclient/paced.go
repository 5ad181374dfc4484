// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bufio"
	"context"
	"net"
	"time"
)

const (
	// readPause is the least time between two reads from a connection that does not fill the buffer. An API server sends
	// each event by itself, and waking for each costs more than decoding it.
	readPause = 5 * time.Millisecond
	// readBuffer is how many bytes one read takes at most. A connection that fills it is read on without a pause.
	readBuffer = 32 << 10
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// paced makes connections that are read at most once in readPause, unless more is waiting than one read takes.
func paced(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p := &pacedConn{Conn: conn}
		p.buffer = bufio.NewReaderSize(pacedReader{p}, readBuffer)
		return p, nil
	}
}

// pacedConn is read by one goroutine at a time, as HTTP does.
type pacedConn struct {
	net.Conn
	buffer *bufio.Reader
	next   time.Time // not read before
}

func (c *pacedConn) Read(b []byte) (int, error) { return c.buffer.Read(b) }

// pacedReader fills the buffer.
type pacedReader struct{ conn *pacedConn }

func (r pacedReader) Read(b []byte) (int, error) {
	time.Sleep(time.Until(r.conn.next))
	n, err := r.conn.Conn.Read(b)
	r.conn.next = time.Time{}
	if n < len(b) {
		r.conn.next = time.Now().Add(readPause)
	}
	return n, err
}

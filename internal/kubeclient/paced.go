// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// readBytes is how much a read should find. If more than that comes within the pause, the
	// connection is read sooner: what waits unread fills the window of the connection, and the
	// server then waits.
	readBytes = 48 << 10
	// readBuffer is the maximum number of bytes of one read. A connection that fills it is read
	// again without a pause.
	readBuffer = 32 << 10
	// leastPause follows a read after a time without data. Then each pause is twice as long as the one
	// before. So single events are read early. A read that takes as long has waited for data: what it
	// found was not delayed.
	leastPause = time.Millisecond
)

// Pacing decides how often the connections of watches are read. An API server sends each event separately, and
// waking for each costs more than decoding it.
type Pacing struct {
	// Pause is the longest time between two reads of a connection to which data comes all the time.
	Pause time.Duration
	// Paced is called with how long the read of a connection was delayed that then found data; nil:
	// nobody wants to know. Connections call it concurrently.
	Paced func(time.Duration)
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// pace returns a dialer whose connections are paced.
func (p Pacing) pace(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		paced := &pacedConn{Conn: conn, pacing: p}
		paced.buffer = bufio.NewReaderSize(pacedReader{paced}, readBuffer)
		return paced, nil
	}
}

// separated sends watches over other connections than all other requests. Only those are paced: with
// one connection, each page of a list would come after a pause.
type separated struct{ watches, others http.RoundTripper }

func (s *separated) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return s.watches.RoundTrip(request)
	}
	return s.others.RoundTrip(request)
}

// CloseIdleConnections implements what http.Client looks for.
func (s *separated) CloseIdleConnections() {
	utilnet.CloseIdleConnectionsFor(s.watches)
	utilnet.CloseIdleConnectionsFor(s.others)
}

// pacedConn is read by one goroutine at a time, as HTTP does.
type pacedConn struct {
	net.Conn
	pacing Pacing
	buffer *bufio.Reader

	drained time.Time // when a read last left nothing
	read    int       // bytes since then
	pause   time.Duration
	next    time.Time // do not read before
}

// found is what a read found, and the time since the read before.
type found struct {
	read   int
	within time.Duration
}

func (c *pacedConn) Read(b []byte) (int, error) { return c.buffer.Read(b) }

// note notes the result of a read, and decides when to read again.
func (c *pacedConn) note(read int, isDrained bool) {
	c.read += read
	if !isDrained {
		return
	}
	now := time.Now()
	c.next = now.Add(c.nextPause(found{c.read, now.Sub(c.drained)}))
	c.drained, c.read = now, 0
}

// wait waits until it is time for the next read, and returns how long it waited.
func (c *pacedConn) wait() time.Duration {
	pause := max(0, time.Until(c.next))
	time.Sleep(pause)
	return pause
}

// nextPause returns the pause after a read.
func (c *pacedConn) nextPause(last found) time.Duration {
	if last.within >= 2*c.pacing.Pause { // A time without data is over.
		c.pause = leastPause
	} else {
		c.pause = min(max(leastPause, 2*c.pause), c.pacing.pauseAfter(last))
	}
	return c.pause
}

// pauseAfter returns the time in which readBytes come, at the rate of what came last, and at most
// the pause.
func (p Pacing) pauseAfter(last found) time.Duration {
	if float64(last.read)*float64(p.Pause) <= float64(readBytes)*float64(last.within) {
		return p.Pause
	}
	return time.Duration(readBytes * float64(last.within) / float64(last.read))
}

// pacedReader fills the buffer once its former content was processed.
type pacedReader struct{ conn *pacedConn }

func (r pacedReader) Read(b []byte) (int, error) {
	waited := r.conn.wait()
	began := time.Now()
	n, err := r.conn.Conn.Read(b)
	if paced := r.conn.pacing.Paced; paced != nil && err == nil && time.Since(began) < leastPause {
		paced(waited)
	}
	r.conn.note(n, n < len(b))
	return n, err
}

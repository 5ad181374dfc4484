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
	// readBytes is the number of bytes that a read should find. If more come within the pause, the
	// connection is read sooner, because unread bytes fill the window of the connection, and the
	// server then waits.
	readBytes = 48 << 10
	// readBuffer is the maximum number of bytes of one read. A connection that fills it is read
	// again without a pause.
	readBuffer = 32 << 10
	// leastPause follows a read after a time without data. Then each pause is twice as long as the one
	// before. So single events are read early.
	leastPause = time.Millisecond
)

// readPause is the longest time between two reads of a connection to which data comes all the time. A
// batch costs about 2 ms of processor time, for one event as for many: this is then about 1 % of a
// core, at any rate.
const readPause = 180 * time.Millisecond

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// paced returns a dialer whose connections are read rarely while data comes all the time. An API server
// sends each event separately, and waking for each costs more than decoding it.
func paced(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		paced := &pacedConn{Conn: conn}
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
	buffer *bufio.Reader

	drained time.Time // when a read last left nothing
	read    int       // bytes since then
	pause   time.Duration
	next    time.Time // do not read before
}

func (c *pacedConn) Read(b []byte) (int, error) { return c.buffer.Read(b) }

// pacedReader fills the buffer once its former content was processed.
type pacedReader struct{ *pacedConn }

func (r pacedReader) Read(b []byte) (int, error) {
	time.Sleep(time.Until(r.next))
	n, err := r.Conn.Read(b)
	if r.read += n; n < len(b) {
		r.noteDrained(time.Now())
	}
	return n, err
}

// noteDrained decides when to read again: after the time in which readBytes come, at the rate of what
// came last.
func (c *pacedConn) noteDrained(now time.Time) {
	within := now.Sub(c.drained)
	if within >= 2*readPause { // A time without data is over.
		c.pause = leastPause
	} else {
		enough := time.Duration(readBytes * float64(within) / float64(max(c.read, 1)))
		c.pause = min(max(leastPause, 2*c.pause), readPause, enough)
	}
	c.next, c.drained, c.read = now.Add(c.pause), now, 0
}

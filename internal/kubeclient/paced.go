// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bufio"
	"context"
	"net"
	"time"
)

const (
	// readBytes is how much a read should find. If more than that comes within the pause, the
	// connection is read sooner: what waits unread fills the window of the connection, and the
	// server then waits.
	readBytes = 48 << 10
	// readBuffer is the maximum number of bytes of one read. A connection that fills it is read
	// again without a pause.
	readBuffer = 32 << 10
	// idleRead is how long a read takes at least that finds nothing to read at its begin. What it
	// then reads was not delayed.
	idleRead = time.Millisecond
	// leastPause follows a read after a time without data. Then each pause is twice as long as the
	// one before. So single events, and the few answers when a connection begins, are read early.
	leastPause = time.Millisecond
	// readsPerProbe is how many reads follow each other before one comes after another pause, and
	// mostReadsPerProbe how many they become if these find no difference.
	readsPerProbe, mostReadsPerProbe = 16, 1024
)

// Pacing decides how often connections are read. An API server sends each event separately, and
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

// pacedConn is read by one goroutine at a time, as HTTP does.
type pacedConn struct {
	net.Conn
	pacing Pacing
	buffer *bufio.Reader

	drained time.Time // when a read last left nothing
	read    int       // bytes since then
	pause   time.Duration
	next    time.Time // do not read before

	// A probe is a read after a short pause. If it finds about as much as the read before, after a
	// long pause, the server waits for the reads: it may send less than readBytes ahead. Then all
	// pauses are short, and a probe is a read after a long pause: more may come since.
	waits    bool
	probes   bool  // the next read is a probe
	before   found // by the read before the probe
	reads    int   // until the next probe
	perProbe int
}

// found is what a read found, and the time since the read before.
type found struct {
	read   int
	within time.Duration
}

// isAsMuch reports whether a read after a short pause found about as much as one after a long
// pause, in much less time.
func (f found) isAsMuch(long found) bool {
	return 2*f.read >= long.read && 4*f.within <= long.within
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

// nextPause returns the pause after a read.
func (c *pacedConn) nextPause(last found) time.Duration {
	if last.within >= 2*c.pacing.Pause { // A time without data is over.
		c.pause, c.waits, c.probes, c.reads, c.perProbe = leastPause, false, false, readsPerProbe, readsPerProbe
		return c.pause
	}
	if c.probes {
		c.noteProbe(last)
	}
	c.probes = c.reads == 0
	c.reads--
	c.before = last
	if c.waits != c.probes {
		return leastPause
	}
	c.pause = min(max(leastPause, 2*c.pause), c.pacing.pauseAfter(last))
	return c.pause
}

// noteProbe notes what a probe found. The server waits for the reads if the shorter of two pauses
// brings as much.
func (c *pacedConn) noteProbe(probe found) {
	short, long := probe, c.before
	if c.waits {
		short, long = long, short
	}
	waits := short.isAsMuch(long)
	if waits && c.waits {
		c.perProbe = min(2*c.perProbe, mostReadsPerProbe)
	} else {
		c.perProbe = readsPerProbe
	}
	c.waits, c.reads = waits, c.perProbe
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
	pause := max(0, time.Until(r.conn.next))
	time.Sleep(pause)
	began := time.Now()
	n, err := r.conn.Conn.Read(b)
	if paced := r.conn.pacing.Paced; paced != nil && err == nil && time.Since(began) < idleRead {
		paced(pause)
	}
	r.conn.note(n, n < len(b))
	return n, err
}

// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

const (
	// readPause is the longest time between two reads of a connection. An API server sends each
	// event separately, and waking for each costs more than decoding it.
	readPause = 5 * time.Millisecond
	// readBytes is how much a read should find. While more than that comes within readPause, the
	// connection is read sooner: what waits unread fills the window of the connection, and the
	// server then waits.
	readBytes = 16 << 10
	// readBuffer is the maximum number of bytes of one read. A connection that fills it is read
	// again without a pause.
	readBuffer = 32 << 10
	// burstWait is how long a reader waits for a burst. With HTTP/1, this wait always times out,
	// because the waiting reader is the one that would read the connection.
	burstWait = 2 * readPause
	// idleRead is how long a read takes at least that finds nothing to read at its begin. What it
	// then reads was not delayed.
	idleRead = time.Millisecond
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Bursts signals when one read of a connection has been passed on to the readers of the
// connection's streams. HTTP/2 would wake them for each frame of the read, and so for each event.
// It may be used concurrently.
type Bursts struct {
	// Paced is called with how long the read of a connection was delayed that then found data.
	// Callers may replace it before the first connection.
	Paced func(time.Duration)

	mu      sync.Mutex
	count   uint64
	next    chan struct{} // closed with the next burst
	awaited time.Duration // by readers of streams, without a burst, since the last read
}

// Count returns how many bursts were passed on so far.
func (b *Bursts) Count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Await waits until there were more than count bursts, at most for burstWait.
func (b *Bursts) Await(count uint64) {
	b.mu.Lock()
	next, done := b.next, b.count > count
	b.mu.Unlock()
	if done {
		return
	}
	timer := time.NewTimer(burstWait)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.awaited = burstWait
	}
}

// takeAwaited returns how long a reader waited without a burst before this read of its connection.
func (b *Bursts) takeAwaited() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	awaited := b.awaited
	b.awaited = 0
	return awaited
}

func (b *Bursts) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	close(b.next)
	b.next = make(chan struct{})
}

// pace returns a dialer. Its connections are read at most once per readPause, unless much data
// comes.
func (b *Bursts) pace(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p := &pacedConn{Conn: conn, bursts: b}
		p.buffer = bufio.NewReaderSize(pacedReader{p}, readBuffer)
		return p, nil
	}
}

// pacedConn is read by one goroutine at a time, as HTTP does.
type pacedConn struct {
	net.Conn
	bursts *Bursts
	buffer *bufio.Reader

	drained time.Time // when a read last left nothing
	read    int       // bytes since then
	next    time.Time // do not read before
}

func (c *pacedConn) Read(b []byte) (int, error) { return c.buffer.Read(b) }

// note notes the result of a read, and decides when to read again.
func (c *pacedConn) note(read int, isDrained bool) {
	c.read += read
	if !isDrained {
		return
	}
	now := time.Now()
	c.next = now.Add(pauseAfter(c.read, now.Sub(c.drained)))
	c.drained, c.read = now, 0
}

// pauseAfter returns the time in which readBytes come, at the rate of what came last, and at most
// readPause.
func pauseAfter(read int, within time.Duration) time.Duration {
	if float64(read)*float64(readPause) <= float64(readBytes)*float64(within) {
		return readPause
	}
	return time.Duration(readBytes * float64(within) / float64(read))
}

// pacedReader fills the buffer once its former content was processed.
type pacedReader struct{ conn *pacedConn }

func (r pacedReader) Read(b []byte) (int, error) {
	r.conn.bursts.signal()
	pause := max(0, time.Until(r.conn.next))
	time.Sleep(pause)
	began := time.Now()
	n, err := r.conn.Conn.Read(b)
	if delay := pause + r.conn.bursts.takeAwaited(); err == nil && time.Since(began) < idleRead {
		r.conn.bursts.Paced(delay)
	}
	r.conn.note(n, n < len(b))
	if err != nil {
		r.conn.bursts.signal()
	}
	return n, err
}

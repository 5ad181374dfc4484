// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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
	// leastPause follows a read after a time without data, and each while somebody waits for an answer.
	// Then each pause is twice as long as the one before. So single events are read early.
	leastPause = time.Millisecond
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

// pacer paces the connections of a client.
type pacer struct {
	Pacing
	awaited atomic.Int64 // answers that somebody waits for
	mu      sync.Mutex
	asked   chan struct{} // closes when somebody begins to wait for an answer
}

func newPacer(pacing Pacing) *pacer { return &pacer{Pacing: pacing, asked: make(chan struct{})} }

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// pace returns a dialer whose connections are paced.
func (p *pacer) pace(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		paced := &pacedConn{Conn: conn, pacer: p, asked: p.nextAsked()}
		paced.buffer = bufio.NewReaderSize(pacedReader{paced}, readBuffer)
		return paced, nil
	}
}

// noteRequests returns a transport with which connections are read all the time while somebody waits
// for an answer. Each page of a list would otherwise come after a pause.
func (p *pacer) noteRequests(next http.RoundTripper) http.RoundTripper {
	return &requests{next, p}
}

type requests struct {
	http.RoundTripper
	pacer *pacer
}

// WrappedRoundTripper lets client-go close idle connections.
func (r *requests) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Query().Has("watch") {
		return r.RoundTripper.RoundTrip(request)
	}
	r.pacer.ask()
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		r.pacer.awaited.Add(-1)
		return nil, err
	}
	response.Body = &answer{ReadCloser: response.Body, end: sync.OnceFunc(func() { r.pacer.awaited.Add(-1) })}
	return response, nil
}

// answer is the body of an answer that somebody waits for, until it is closed.
type answer struct {
	io.ReadCloser
	end func()
}

func (a *answer) Close() error {
	a.end()
	return a.ReadCloser.Close()
}

func (p *pacer) ask() {
	p.awaited.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.asked)
	p.asked = make(chan struct{})
}

func (p *pacer) nextAsked() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// pacedConn is read by one goroutine at a time, as HTTP does.
type pacedConn struct {
	net.Conn
	pacer  *pacer
	buffer *bufio.Reader

	drained time.Time // when a read last left nothing
	read    int       // bytes since then
	pause   time.Duration
	next    time.Time     // do not read before, unless
	asked   chan struct{} // closes
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
	c.asked = c.pacer.nextAsked()
	now := time.Now()
	c.next = now.Add(c.nextPause(found{c.read, now.Sub(c.drained)}))
	c.drained, c.read = now, 0
}

// wait waits until it is time for the next read, and returns how long it waited.
func (c *pacedConn) wait() time.Duration {
	began := time.Now()
	if !c.next.After(began) {
		return 0
	}
	pause := time.NewTimer(c.next.Sub(began))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.asked:
	}
	return time.Since(began)
}

// nextPause returns the pause after a read.
func (c *pacedConn) nextPause(last found) time.Duration {
	if c.pacer.awaited.Load() > 0 || last.within >= 2*c.pacer.Pause { // Or a time without data is over.
		c.pause = leastPause
	} else {
		c.pause = min(max(leastPause, 2*c.pause), c.pacer.pauseAfter(last))
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
	if paced := r.conn.pacer.Paced; paced != nil && err == nil && time.Since(began) < idleRead {
		paced(waited)
	}
	r.conn.note(n, n < len(b))
	return n, err
}

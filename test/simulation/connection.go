// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// Address are the variables in which every process finds the API server.
var Address = []string{"KUBERNETES_SERVICE_HOST=http://api", "KUBERNETES_SERVICE_PORT=80"}

// listener hands the server its ends of the connections.
type listener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func newListener() *listener {
	return &listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// serverEnd is the server's end of a connection; it knows which process is at the other.
type serverEnd struct {
	net.Conn
	client string
}

func (s serverEnd) ClientName() string { return s.client }

// dial connects the process to the API server, whatever the address.
func (p *process) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	env := p.replica.env
	if p.isDead() || env.fault(p.replica.index, APIDown) != nil {
		// Refusing takes a moment, so that no caller spins without time passing.
		if err := sleep(ctx, time.Millisecond); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := apiserver.Pipe()
	select {
	case env.listener.accepted <- serverEnd{far, p.name}:
	case <-env.listener.closed:
		_ = far.Close() // Else what sends for it would outlive the run.
		return nil, net.ErrClosed
	case <-ctx.Done():
		_ = far.Close()
		return nil, ctx.Err()
	}
	c := &clientEnd{Conn: near, process: p, closed: make(chan struct{})}
	p.connected(c)
	return c, nil
}

// clientEnd is the receiver's end of a connection: it stalls, is slow and breaks as planned.
type clientEnd struct {
	net.Conn
	process *process
	dead    atomic.Bool // nothing comes any more, without an error
	once    sync.Once
	closed  chan struct{}
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

func (c *clientEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	env, replica := c.process.replica.env, c.process.replica.index
	if f := env.fault(replica, SlowNetwork); f != nil {
		c.wait(f.Delay * time.Duration(n) / 1024)
	}
	if f := env.fault(replica, Stalled); f != nil {
		c.wait(time.Until(env.began.Add(f.To)))
	}
	if c.dead.Load() {
		<-c.closed
	}
	if c.process.isDead() {
		return 0, errReset
	}
	// The pipe of a cut connection is closed, which net/http would take for its own doing.
	if errors.Is(err, net.ErrClosed) {
		err = errReset
	}
	return n, err
}

func (c *clientEnd) wait(d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-c.closed:
	}
}

func (c *clientEnd) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.process.disconnected(c)
	})
	return c.Conn.Close()
}

// sleep returns the context's error if that ends before.
func sleep(ctx context.Context, d time.Duration) error {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net"
	"sync"
)

// sentAhead is how much may wait for the reader: the smallest receive buffer of a TCP connection that
// grows by itself.
const sentAhead = 64 << 10

// Pipe returns the two ends of a connection within the process, for servers in a synctest bubble.
// Unlike net.Pipe, the server's end sends 64 KiB ahead of the reads at the client's end, as TCP
// does. Each end may be used as net.Conn says.
func Pipe() (client, server net.Conn) {
	client, far := net.Pipe()
	s := &socket{Conn: far, changed: sync.NewCond(&sync.Mutex{})}
	go s.send()
	return client, s
}

// socket is an end of a connection that sends ahead of the reads at the other end.
type socket struct {
	net.Conn
	changed *sync.Cond
	unsent  []byte
	closed  bool
}

func (s *socket) Write(b []byte) (int, error) {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	for len(s.unsent) >= sentAhead && !s.closed {
		s.changed.Wait()
	}
	if s.closed {
		return 0, net.ErrClosed
	}
	s.unsent = append(s.unsent, b...)
	s.changed.Broadcast()
	return len(b), nil
}

// Close lets the other end read what was written.
func (s *socket) Close() error {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	s.closed = true
	s.changed.Broadcast()
	return nil
}

func (s *socket) send() {
	defer func() { _ = errors.Join(s.Close(), s.Conn.Close()) }()
	for {
		b := s.next()
		if len(b) == 0 {
			return
		}
		if _, err := s.Conn.Write(b); err != nil {
			return
		}
	}
}

// next returns nothing if the socket is closed and all is sent.
func (s *socket) next() []byte {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	for len(s.unsent) == 0 && !s.closed {
		s.changed.Wait()
	}
	b := s.unsent
	s.unsent = nil
	s.changed.Broadcast()
	return b
}

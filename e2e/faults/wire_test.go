// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// wire is the network between a Collector and the API server. It carries bytes and knows nothing of them.
type wire struct {
	kubeconfig string // the way over the wire
	target     string
	listener   net.Listener

	mu          sync.Mutex
	state       wireState
	changed     chan struct{} // closed when state changes
	connections map[net.Conn]struct{}
}

type wireState int

const (
	sound   wireState = iota
	cut               // connections break, and new ones are closed at once
	stalled           // connections stay, new ones are accepted, and nothing goes through
	slow              // everything takes a while
)

func newWire(t *testing.T, kubeconfig string) *wire {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	target := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	address, err := url.Parse(target.Server)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{target: address.Host, listener: listener, changed: make(chan struct{}), connections: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		listener.Close()
		w.becomes(cut)
	})
	go w.accept()

	target.Server = "https://" + listener.Addr().String()
	w.kubeconfig = filepath.Join(t.TempDir(), "wire.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, w.kubeconfig))
	return w
}

// becomes changes the state of the wire, for connections that exist and for new ones.
func (w *wire) becomes(state wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	close(w.changed)
	w.changed = make(chan struct{})
	if state == cut {
		for connection := range w.connections {
			_ = connection.Close()
		}
	}
}

func (w *wire) now() (wireState, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.changed
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.connect(near)
	}
}

func (w *wire) connect(near net.Conn) {
	defer w.hold(near)()
	if state, _ := w.now(); state == cut {
		return
	}
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer w.hold(far)()
	var both sync.WaitGroup
	both.Go(func() { w.carry(near, far) })
	both.Go(func() { w.carry(far, near) })
	both.Wait()
}

// hold lets the wire break a connection, until the function that it returns closes it.
func (w *wire) hold(connection net.Conn) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections[connection] = struct{}{}
	return func() {
		_ = connection.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.connections, connection)
	}
}

// carry copies one direction until either end closes.
func (w *wire) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 2048)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			w.delay()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// delay is how long some bytes take: until the wire no longer is stalled, or a moment where it is slow.
func (w *wire) delay() {
	for {
		state, changed := w.now()
		if state == slow {
			time.Sleep(50 * time.Millisecond)
		}
		if state != stalled {
			return
		}
		<-changed
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package fakeapi breaks the way between a receiver and the API server.
package fakeapi

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TCPProxy is the network between a client and its servers. It forwards bytes without reading them.
type TCPProxy struct {
	Kubeconfig string // leads through the proxy

	targets  []string
	late     time.Duration // how much later than sent the servers' bytes arrive
	listener net.Listener

	mu          sync.Mutex // guards what follows
	next        int        // the target of the next connection
	state       State
	changed     chan struct{} // closed when state changes
	connections map[net.Conn]bool
}

// State is how the network works.
type State int

const (
	Open    State = iota
	Cut           // connections break, and new ones are closed at once
	Stalled       // connections stay, new ones are accepted, and no byte is forwarded until the state changes
)

// NewTCPProxy starts a proxy for the user of a kubeconfig file. It ends with the test. If targets are
// given, it is a load balancer: each connection goes to the next of them that accepts it. Otherwise,
// all connections go to the server of the file.
func NewTCPProxy(t testing.TB, kubeconfig string, targets ...string) *TCPProxy {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	if len(targets) == 0 {
		address, err := url.Parse(server.Server)
		if err != nil {
			t.Fatal(err)
		}
		targets = []string{address.Host}
	}
	p := &TCPProxy{Kubeconfig: filepath.Join(t.TempDir(), "proxy.kubeconfig"), targets: targets}
	p.listen(t)
	server.Server = "https://" + p.listener.Addr().String()
	if err := clientcmd.WriteToFile(*config, p.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// NewLateProxy starts a proxy before one server whose bytes arrive late, however many they are. It
// returns the proxy's address, and ends with the test.
func NewLateProxy(t testing.TB, target string, late time.Duration) (address string) {
	t.Helper()
	p := &TCPProxy{targets: []string{target}, late: late}
	p.listen(t)
	return p.listener.Addr().String()
}

func (p *TCPProxy) listen(t testing.TB) {
	t.Helper()
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.changed, p.connections = make(chan struct{}), map[net.Conn]bool{}
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.Set(Cut)
	})
	go p.accept()
}

// Set changes the state of the network, for connections that exist and for new ones.
func (p *TCPProxy) Set(state State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	close(p.changed)
	p.changed = make(chan struct{})
	if state == Cut {
		for connection := range p.connections {
			_ = connection.Close()
		}
	}
}

func (p *TCPProxy) now() (State, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.changed
}

func (p *TCPProxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(near)
	}
}

func (p *TCPProxy) connect(near net.Conn) {
	defer p.register(near)()
	if state, _ := p.now(); state == Cut {
		return
	}
	far := p.dial()
	if far == nil {
		return
	}
	defer p.register(far)()
	var both sync.WaitGroup
	both.Go(func() { p.forward(near, far, 0) })
	both.Go(func() { p.forward(far, near, p.late) })
	both.Wait()
}

// dial returns a connection to the next target that accepts it; nil if none does.
func (p *TCPProxy) dial() net.Conn {
	for range p.targets {
		p.mu.Lock()
		target := p.targets[p.next%len(p.targets)]
		p.next++
		p.mu.Unlock()
		if far, err := net.Dial("tcp", target); err == nil {
			return far
		}
	}
	return nil
}

// register makes a connection known, so that Set can break it. The function that it returns closes
// the connection.
func (p *TCPProxy) register(connection net.Conn) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[connection] = true
	return func() {
		_ = connection.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.connections, connection)
	}
}

// chunk are bytes that have arrived, and the time to forward them.
type chunk struct {
	bytes []byte
	due   time.Time
}

// forward copies one direction until either end closes.
func (p *TCPProxy) forward(from, to net.Conn, late time.Duration) {
	const most = 1 << 12 // beyond this, the sender has to wait
	arrived := make(chan chunk, most)
	go func() {
		defer close(arrived)
		for {
			buffer := make([]byte, 2048)
			n, err := from.Read(buffer)
			arrived <- chunk{buffer[:n], time.Now().Add(late)}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		_, _ = from.Close(), to.Close()
		for range arrived { // The reader must end.
		}
	}()
	for next := range arrived {
		time.Sleep(time.Until(next.due))
		for state, changed := p.now(); state == Stalled; state, changed = p.now() {
			<-changed
		}
		if _, err := to.Write(next.bytes); err != nil {
			return
		}
	}
}

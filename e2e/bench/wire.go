// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/clientcmd"
)

// wire is the way between a Collector and the API server. It counts the bytes that the Collector receives, as
// they are sent: with TLS, and compressed if they are.
type wire struct {
	kubeconfig string // leads over the wire
	received   atomic.Int64

	server   string
	listener net.Listener
	work     sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]bool // nil: the wire is closed; guarded by mu
}

// newWire listens on a free port, and writes a kubeconfig file next to that of the API server's user.
func newWire(kubeconfig string) (*wire, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	w := &wire{kubeconfig: kubeconfig + ".wire", connections: map[net.Conn]bool{}}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	api := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	w.server = strings.TrimPrefix(api.Server, "https://")
	api.Server = "https://" + w.listener.Addr().String()
	w.work.Go(w.accept)
	if err := clientcmd.WriteToFile(*config, w.kubeconfig); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.work.Go(func() { w.carry(near) })
	}
}

// carry forwards what both ends send, until one of them closes.
func (w *wire) carry(near net.Conn) {
	far, err := net.Dial("tcp", w.server)
	if err != nil {
		_ = near.Close()
		return
	}
	end := func() { _, _ = near.Close(), far.Close() }
	defer end()
	if !w.register(near) {
		return
	}
	defer w.forget(near)
	w.work.Go(func() {
		defer end()
		_, _ = io.Copy(far, near)
	})
	_, _ = io.Copy(near, io.TeeReader(far, w))
}

// Write counts bytes that the API server has sent.
func (w *wire) Write(bytes []byte) (int, error) {
	w.received.Add(int64(len(bytes)))
	return len(bytes), nil
}

// register makes a connection known to close; false: the wire is closed already.
func (w *wire) register(connection net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connections == nil {
		return false
	}
	w.connections[connection] = true
	return true
}

func (w *wire) forget(connection net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.connections, connection)
}

// close breaks all connections.
func (w *wire) close() error {
	err := w.listener.Close()
	w.mu.Lock()
	for connection := range w.connections {
		_ = connection.Close()
	}
	w.connections = nil
	w.mu.Unlock()
	w.work.Wait()
	return errors.Join(err, os.Remove(w.kubeconfig))
}

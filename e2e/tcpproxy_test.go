// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// telephone carries connections to the API server byte by byte, and can fall silent as a dead network does.
type telephone struct {
	kubeconfig string // the way through the telephone
	server     string

	mu    sync.Mutex // guards what follows
	calls []*call
}

// call is one connection, in its two halves.
type call struct {
	caller, called net.Conn
	muted          atomic.Bool
}

func newTelephone(t *testing.T, kubeconfig string) *telephone {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	target := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	line := &telephone{
		kubeconfig: filepath.Join(t.TempDir(), "telephone.kubeconfig"),
		server:     strings.TrimPrefix(target.Server, "https://"),
	}
	target.Server = "https://" + listener.Addr().String()
	require.NoError(t, clientcmd.WriteToFile(*config, line.kubeconfig))

	answering := make(chan struct{})
	go func() {
		defer close(answering)
		line.answer(listener)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-answering
		line.hangUp()
	})
	return line
}

func (l *telephone) answer(listener net.Listener) {
	for {
		caller, err := listener.Accept()
		if err != nil {
			return
		}
		called, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = caller.Close()
			continue
		}
		c := &call{caller: caller, called: called}
		l.mu.Lock()
		l.calls = append(l.calls, c)
		l.mu.Unlock()
		go c.carry(called, caller)
		go c.carry(caller, called)
	}
}

// carry copies until the connection ends; what comes while the call is muted is lost.
func (c *call) carry(to io.Writer, from io.Reader) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !c.muted.Load() {
			_, _ = to.Write(buffer[:n])
		}
	}
}

// mute swallows all that comes through the connections that there are. New ones are carried.
func (l *telephone) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		c.muted.Store(true)
	}
}

func (l *telephone) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		_ = c.caller.Close()
		_ = c.called.Close()
	}
}

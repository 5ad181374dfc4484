// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// server answers each connection with its name.
func server(t *testing.T, name string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, name)
			_ = connection.Close()
		}
	}()
	return listener
}

// answerOf is what a connection to an address gets.
func answerOf(t *testing.T, address string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	return string(answer)
}

func TestConnectionsGoToTheServersInTurn(t *testing.T) {
	a, b, c := server(t, "a"), server(t, "b"), server(t, "c")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["any"], config.Contexts["any"] = &clientcmdapi.Cluster{}, &clientcmdapi.Context{Cluster: "any"}
	config.CurrentContext = "any"
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	p := NewTCPProxy(t, kubeconfig, a.Addr().String(), b.Addr().String(), c.Addr().String())
	answers := func(n int) (all string) {
		for range n {
			all += answerOf(t, p.listener.Addr().String())
		}
		return all
	}
	assert.Equal(t, "abca", answers(4))
	require.NoError(t, c.Close())
	assert.Equal(t, "babab", answers(5), "without the one that has ended")
}

func TestBytesOfALateServer(t *testing.T) {
	const late = 50 * time.Millisecond
	begin := time.Now()
	assert.Equal(t, "late", answerOf(t, NewLateProxy(t, server(t, "late").Addr().String(), late)))
	assert.GreaterOrEqual(t, time.Since(begin), late)
}

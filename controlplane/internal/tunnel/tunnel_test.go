// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/tunnel"
)

// listen returns a listener that is closed when the test ends.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// server answers each connection with answer, and returns its address.
func server(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener := listen(t, "tcp", "127.0.0.1:0")
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				answer(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// proxy serves a socket that allows all addresses but one, and returns its path.
func proxy(t *testing.T, forbidden string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	listener := listen(t, "unix", socket)
	go func() { _ = tunnel.Serve(listener, func(address string) bool { return address != forbidden }) }()
	return socket
}

// greetAndRepeat speaks first, then reads until the client ends its direction, and repeats what it
// read.
func greetAndRepeat(conn net.Conn) {
	_, _ = io.WriteString(conn, "hello, ")
	said, _ := io.ReadAll(conn)
	_, _ = conn.Write(said)
}

// converse sends a text, ends this direction, and returns everything that the server sends.
func converse(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	defer func() { _ = conn.Close() }()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}

func TestForward(t *testing.T) {
	address, socket := server(t, greetAndRepeat), proxy(t, "")
	front := listen(t, "tcp", "127.0.0.1:0")
	go func() {
		_ = tunnel.Forward(t.Context(), front, func(ctx context.Context) (net.Conn, error) { return tunnel.Dial(ctx, socket, address) })
	}()
	for range 3 {
		conn, err := net.Dial("tcp", front.Addr().String())
		require.NoError(t, err)
		assert.Equal(t, "hello, world", converse(t, conn, "world"))
	}
}

func TestForbiddenAddress(t *testing.T) {
	address := server(t, greetAndRepeat)
	_, err := tunnel.Dial(t.Context(), proxy(t, address), address)
	assert.ErrorContains(t, err, address+" is not allowed")
}

func TestContextEnds(t *testing.T) {
	listener := listen(t, "unix", filepath.Join(t.TempDir(), "socket")) // does not answer
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer func() { _ = conn.Close() }()
			cancel()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	_, err := tunnel.Dial(ctx, listener.Addr().String(), "192.0.2.1:1")
	assert.ErrorIs(t, err, context.Canceled)
}

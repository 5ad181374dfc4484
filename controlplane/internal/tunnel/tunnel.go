// SPDX-License-Identifier: Apache-2.0

// Package tunnel connects two network namespaces through a socket in the file system. Serve runs in
// one namespace, Dial in the other: Serve is an HTTP proxy that answers only CONNECT requests. An
// API server that is configured with the socket as its egress uses it, too.
package tunnel

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// timeout bounds the start of a connection.
const timeout = 10 * time.Second

// Serve connects the clients of a listener to addresses in this process's network namespace, until
// the listener is closed. It rejects an address that is not allowed.
func Serve(listener net.Listener, allowed func(address string) bool) error {
	server := http.Server{ReadHeaderTimeout: timeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodConnect:
			http.Error(w, "only CONNECT is supported", http.StatusMethodNotAllowed)
		case !allowed(r.Host):
			http.Error(w, r.Host+" is not allowed", http.StatusForbidden)
		default:
			connect(w, r)
		}
	})}
	return server.Serve(listener)
}

func connect(w http.ResponseWriter, r *http.Request) {
	target, err := (&net.Dialer{Timeout: timeout}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// An error means that the client is gone; then join ends immediately.
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(client, target)
}

// Dial connects to an address through the proxy that serves the socket.
func Dial(ctx context.Context, socket, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = request(conn, address)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

// request asks the proxy for a connection and reads its response.
func request(conn net.Conn, address string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return err
	}
	head, err := readHead(conn)
	if err != nil {
		return err
	}
	rest := bufio.NewReader(io.MultiReader(bytes.NewReader(head), conn))
	response, err := http.ReadResponse(rest, &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode == http.StatusOK {
		return err
	}
	defer response.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return errors.Join(errors.New(strings.TrimSpace(string(reason))), err)
}

// readHead reads a response up to its empty line, and no byte more: the next bytes may already be
// the server's.
func readHead(conn net.Conn) ([]byte, error) {
	const maxHead = 4 << 10
	var head []byte
	next := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) == maxHead {
			return nil, errors.New("the proxy's response is too long")
		}
		if _, err := io.ReadFull(conn, next); err != nil {
			return nil, err
		}
		head = append(head, next[0])
	}
	return head, nil
}

// Forward connects the clients of a listener with what dial returns, until the listener is closed.
func Forward(ctx context.Context, listener net.Listener, dial func(context.Context) (net.Conn, error)) error {
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			server, err := dial(ctx)
			if err != nil {
				_ = client.Close() // the client sees that nobody answers
				return
			}
			join(client, server)
		}()
	}
}

// join copies in both directions and returns when both have ended.
func join(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		transfer(a, b)
	}()
	transfer(b, a)
	<-done
	_, _ = a.Close(), b.Close()
}

// transfer copies in one direction. At its end, the other direction may continue. An error ends
// both.
func transfer(target, source net.Conn) {
	_, err := io.Copy(target, source)
	half, ok := target.(interface{ CloseWrite() error })
	if err == nil && ok {
		_ = half.CloseWrite() // an error means that the connection has ended
		return
	}
	_, _ = target.Close(), source.Close()
}

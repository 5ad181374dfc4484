// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// InMemory is a connection to a server, without a network.
type InMemory struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m InMemory) RoundTrip(r *http.Request) (*http.Response, error) { return roundTrip(m, r) }

// RoundTrip implements http.RoundTripper, without a network.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return roundTrip(s, r) }

// RoundTrip implements http.RoundTripper, without a network.
func (o *Objects) RoundTrip(r *http.Request) (*http.Response, error) { return roundTrip(o, r) }

// CloseIdleConnections does nothing: there are none.
func (o *Objects) CloseIdleConnections() {}

// CloseIdleConnections does nothing: there are none.
func (s *Server) CloseIdleConnections() {}

func roundTrip(handler http.Handler, r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	a := &answer{header: http.Header{}, began: make(chan struct{}), body: writer}
	request := r.WithContext(r.Context())
	if request.Body == nil { // That of a server never is.
		request.Body = http.NoBody
	}
	stop := context.AfterFunc(r.Context(), func() { _ = reader.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() { a.end(recover()) }()
		handler.ServeHTTP(a, request)
	}()
	select {
	case <-a.began:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if a.code == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: a.code, Status: http.StatusText(a.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: reader, ContentLength: -1, Request: r,
	}, nil
}

// answer is an http.ResponseWriter whose client reads from a pipe.
type answer struct {
	header http.Header
	once   sync.Once
	began  chan struct{} // closed when the code and the header are final
	code   int           // 0: the connection broke before
	body   *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.header = code, a.header.Clone()
		close(a.began)
	})
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

// end completes the answer, or breaks the connection as a server does whose handler aborts.
func (a *answer) end(panicked any) {
	if panicked == nil {
		a.WriteHeader(http.StatusOK)
		_ = a.body.Close()
		return
	}
	if err, ok := panicked.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		panic(panicked)
	}
	_ = a.body.CloseWithError(io.ErrUnexpectedEOF)
	a.once.Do(func() { close(a.began) })
}

// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestThePauseBeforeARead(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		gap  time.Duration   // between two writes
		size int             // of each
		want []time.Duration // the first ones
		most time.Duration
	}{
		"grows while data comes within it": {gap: ms / 2, size: 5, want: []time.Duration{0, ms, 2 * ms, 4 * ms, 8 * ms, 10 * ms, 10 * ms}, most: 10 * ms},
		"is as long if less comes":         {gap: 9 * ms, size: 5, want: []time.Duration{10 * ms, 10 * ms, 10 * ms}, most: 10 * ms},
		"delays nothing that comes later":  {gap: time.Second, size: 5},
		// 40 KiB come in 1 ms, and 48 KiB may wait.
		"stays short while much comes": {gap: 300 * time.Microsecond, size: 12 << 10, want: []time.Duration{0, ms}, most: 2 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var paced []time.Duration
				sent := newSocket()
				conn, err := Pacing{10 * ms, func(d time.Duration) { paced = append(paced, d) }}.pace(
					func(context.Context, string, string) (net.Conn, error) { return sent, nil })(t.Context(), "", "")
				require.NoError(t, err)
				go func() {
					for range 200 {
						time.Sleep(tt.gap)
						sent.write(tt.size)
					}
				}()
				for range 10 {
					_, err := conn.Read(make([]byte, readBuffer))
					require.NoError(t, err)
				}
				require.GreaterOrEqual(t, len(paced), len(tt.want))
				assert.Equal(t, tt.want, paced[:len(tt.want)])
				for _, pause := range paced {
					assert.LessOrEqual(t, pause, tt.most)
				}
				time.Sleep(time.Hour) // The writer ends.
			})
		})
	}
}

// A server sends ahead what fits the buffers of the connection, usually 64 KiB or more. Then it waits
// for the reads.
func TestAServerThatWaitsForTheReadsIsReadOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := Pacing{Pause: 180 * time.Millisecond}.pace(
			func(context.Context, string, string) (net.Conn, error) { return &waiting{}, nil })(t.Context(), "", "")
		require.NoError(t, err)
		read := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && read < 100<<20; {
			n, err := conn.Read(make([]byte, readBuffer))
			require.NoError(t, err)
			read += n
		}
		assert.GreaterOrEqual(t, read, 100<<20)
	})
}

// waiting is a connection whose server sends 60 KiB whenever all is read.
type waiting struct {
	net.Conn
	unread int
}

func (w *waiting) Read(b []byte) (int, error) {
	if w.unread == 0 {
		w.unread = 60 << 10
	}
	n := min(len(b), w.unread)
	w.unread -= n
	return n, nil
}

// The pages of a list, the lists of many namespaces, and what is read to check versions follow each
// other: with pauses, they would take long.
func TestOnlyWatchesArePaced(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	client, err := Events(&rest.Config{Host: server.URL}, Pacing{Pause: time.Second})
	require.NoError(t, err)
	var paced []bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		_, isPaced := got.Conn.(*pacedConn)
		paced = append(paced, isPaced)
	}})
	for _, watch := range []string{"", "true", ""} {
		request := client.Get().Resource("events")
		if watch != "" {
			request.Param("watch", watch)
		}
		body, err := request.Stream(ctx)
		require.NoError(t, err)
		require.NoError(t, body.Close())
	}
	assert.Equal(t, []bool{false, true, false}, paced)
}

// socket is a connection that has any number of unread bytes.
type socket struct {
	net.Conn
	unread chan int
}

func newSocket() *socket { return &socket{unread: make(chan int, 1)} }

func (s *socket) write(n int) {
	select {
	case before := <-s.unread:
		s.unread <- before + n
	default:
		s.unread <- n
	}
}

func (s *socket) Read(b []byte) (int, error) {
	n := <-s.unread
	if rest := n - len(b); rest > 0 {
		s.unread <- rest
	}
	return min(n, len(b)), nil
}

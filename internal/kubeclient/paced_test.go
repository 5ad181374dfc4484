// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
				conn, err := newPacer(Pacing{10 * ms, func(d time.Duration) { paced = append(paced, d) }}).pace(
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
		conn, err := newPacer(Pacing{Pause: 180 * time.Millisecond}).pace(
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
// other on a connection on which the events of other watches come all the time.
func TestAnswersToRequestsDoNotWait(t *testing.T) {
	const thinks = 140 * time.Millisecond // the server, before each answer
	for name, tt := range map[string]struct {
		method, url string
		least, most time.Duration // for an answer
	}{
		"lists":             {http.MethodGet, "http://api/events?limit=500", thinks, thinks + 2*time.Millisecond},
		"watches may wait":  {http.MethodGet, "http://api/events?watch=true", thinks + 10*time.Millisecond, 2 * thinks},
		"so may the writes": {http.MethodPut, "http://api/leases", thinks + 10*time.Millisecond, 2 * thinks},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pacer := newPacer(Pacing{Pause: 180 * time.Millisecond})
				sent := newSocket()
				conn, err := pacer.pace(
					func(context.Context, string, string) (net.Conn, error) { return sent, nil })(t.Context(), "", "")
				require.NoError(t, err)
				read, done := make(chan struct{}), make(chan struct{})
				isDone := func() bool {
					select {
					case <-done:
						return true
					default:
						return false
					}
				}
				go func() {
					for !isDone() {
						_, _ = conn.Read(make([]byte, readBuffer))
						select {
						case read <- struct{}{}:
						default:
						}
					}
				}()
				go func() { // The other watches.
					for ; !isDone(); time.Sleep(2 * time.Millisecond) {
						sent.write(100)
					}
					time.Sleep(time.Second)
					sent.write(100) // The last read.
				}()
				time.Sleep(time.Minute)
				transport := pacer.noteRequests(server{sent, read, thinks})
				began := time.Now()
				for range 100 {
					request, err := http.NewRequestWithContext(context.Background(), tt.method, tt.url, http.NoBody)
					require.NoError(t, err)
					response, err := transport.RoundTrip(request)
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
				}
				took := time.Since(began) / 100
				assert.GreaterOrEqual(t, took, tt.least)
				assert.LessOrEqual(t, took, tt.most)
				close(done)
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// server answers after a while. Its answer has arrived with the next read of the connection.
type server struct {
	socket *socket
	read   chan struct{}
	thinks time.Duration
}

func (s server) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(s.thinks)
	s.socket.write(1000)
	<-s.read
	return &http.Response{Body: http.NoBody}, nil
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

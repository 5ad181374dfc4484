// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"net"
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

// A server may send little ahead, because its buffers or those of a proxy are small. It then sends
// more after each read.
func TestAServerThatWaitsForTheReadsIsReadOften(t *testing.T) {
	for name, tt := range map[string]struct {
		send         func(*socket) // sends once, in a loop
		fewest, most int           // reads in 10 s
	}{
		"it waits": {
			send:   func(s *socket) { s.unread <- 4 << 10 },
			fewest: 8000, most: 10_000,
		},
		"it waited, and then more comes at its own pace": {
			send: func(s *socket) {
				if s.sent++; s.sent < 1000 {
					s.unread <- 4 << 10
					return
				}
				time.Sleep(time.Millisecond)
				s.write(3 << 10)
			},
			fewest: 1500, most: 3000,
		},
		"it sends at its own pace, and some reads find that out": {
			send:   func(s *socket) { time.Sleep(time.Millisecond); s.write(100) },
			fewest: 290, most: 320,
		},
		"it sends little at its own pace": {
			send:   func(s *socket) { time.Sleep(20 * time.Millisecond); s.write(1000) },
			fewest: 200, most: 400,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := newSocket()
				conn, err := Pacing{Pause: 35 * time.Millisecond}.pace(
					func(context.Context, string, string) (net.Conn, error) { return sent, nil })(t.Context(), "", "")
				require.NoError(t, err)
				end := time.Now().Add(10 * time.Second)
				go func() {
					for time.Now().Before(end) {
						tt.send(sent)
					}
				}()
				reads := 0
				for ; time.Now().Before(end); reads++ {
					_, err := conn.Read(make([]byte, readBuffer))
					require.NoError(t, err)
				}
				assert.GreaterOrEqual(t, reads, tt.fewest)
				assert.LessOrEqual(t, reads, tt.most)
				select { // The sender ends.
				case <-sent.unread:
				default:
				}
			})
		})
	}
}

// socket is a connection that has any number of unread bytes.
type socket struct {
	net.Conn
	unread chan int
	sent   int // how often, for the sender
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

// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// openPaced returns the connection that a Paced client would read.
func openPaced(t *testing.T, conn net.Conn) net.Conn {
	t.Helper()
	config := Paced(&rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return conn, nil }})
	paced, err := config.Dial(t.Context(), "", "")
	require.NoError(t, err)
	return paced
}

// readTimes returns when each read of a connection found something: size bytes are written in each gap.
func readTimes(t *testing.T, n, size int, gap time.Duration) (times []time.Duration) {
	sent := newSocket()
	conn := openPaced(t, sent)
	began := time.Now()
	go func() {
		for range 4000 {
			time.Sleep(gap)
			sent.write(size)
		}
	}()
	for range n {
		_, err := conn.Read(make([]byte, connectionBuffer))
		require.NoError(t, err)
		times = append(times, time.Since(began))
	}
	time.Sleep(2 * time.Hour) // The writer ends.
	return times
}

func TestTheTimesOfReads(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		gap  time.Duration // between two writes
		size int           // of each
		want []time.Duration
	}{
		"pauses grow while data comes":       {gap: ms, size: 5, want: []time.Duration{1 * ms, 2 * ms, 4 * ms, 8 * ms, 16 * ms, 32 * ms, 64 * ms, 128 * ms, 256 * ms, 436 * ms, 616 * ms}},
		"at ten a second, two share a read":  {gap: 100 * ms, size: 5, want: []time.Duration{100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms, 600 * ms, 700 * ms, 800 * ms, 928 * ms, 1108 * ms, 1288 * ms}},
		"pauses stay long at an even rate":   {gap: 10 * ms, size: 1500, want: []time.Duration{10 * ms, 20 * ms, 30 * ms, 40 * ms, 50 * ms, 66 * ms, 98 * ms, 162 * ms, 290 * ms, 470 * ms, 650 * ms, 830 * ms, 1010 * ms}},
		"what comes later is read at once":   {gap: time.Second, size: 5, want: []time.Duration{1000 * ms, 2000 * ms, 3000 * ms}},
		"pauses stay short while much comes": {gap: ms, size: 40 << 10, want: []time.Duration{1 * ms, 2 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := readTimes(t, len(tt.want), tt.size, tt.gap)
				for i, want := range tt.want {
					assert.InDelta(t, want, got[i], float64(2*ms), "read %d", i)
				}
			})
		})
	}
}

// A server sends ahead what fits the buffers of the connection, usually 64 KiB or more. Then it waits
// for the reads.
func TestAServerThatWaitsForTheReadsIsReadOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := openPaced(t, &waiting{})
		read := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && read < 100<<20; {
			n, err := conn.Read(make([]byte, connectionBuffer))
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

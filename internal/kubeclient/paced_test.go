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
	for name, tt := range map[string]struct {
		gap     time.Duration // between two writes
		awaited bool          // a reader waits for a burst that does not come, as with HTTP/1
		want    []time.Duration
	}{
		"delays data that comes within it":         {gap: time.Millisecond, want: []time.Duration{readPause, readPause}},
		"delays nothing that comes later":          {gap: time.Second},
		"is that of the reader of a stream, too":   {gap: time.Millisecond, awaited: true, want: []time.Duration{burstWait, burstWait}},
		"of the reader delays nothing that is new": {gap: time.Second, awaited: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var paced []time.Duration
				bursts := &Bursts{Paced: func(d time.Duration) { paced = append(paced, d) }, next: make(chan struct{})}
				near, far := net.Pipe()
				conn, err := bursts.pace(func(context.Context, string, string) (net.Conn, error) { return near, nil })(t.Context(), "", "")
				require.NoError(t, err)
				go func() {
					for range 3 {
						time.Sleep(tt.gap)
						_, _ = far.Write([]byte("event"))
					}
					_ = far.Close()
				}()
				for range 3 {
					_, err := conn.Read(make([]byte, 5))
					require.NoError(t, err)
					if tt.awaited {
						bursts.Await(bursts.Count())
					}
				}
				assert.Equal(t, tt.want, paced)
			})
		})
	}
}

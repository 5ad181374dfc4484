// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// dropPackets makes connections hang, until the returned function is called or the test ends.
func dropPackets(t *testing.T, api *apitest.Server) (pass func()) {
	t.Helper()
	passes := make(chan struct{})
	dial := api.Dial
	api.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		select {
		case <-passes:
			return dial(ctx, network, address)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	pass = sync.OnceFunc(func() { close(passes) })
	t.Cleanup(pass)
	return pass
}

// A startup probe must not succeed before anybody knows whether the receiver can watch.
func TestUntilTheAPIServerAnswersTheStatusSaysSo(t *testing.T) {
	for name, config := range map[string]string{
		"the cluster":    "",
		"two namespaces": "namespaces: [a, b]",
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				pass := dropPackets(t, api)
				p := harness.Launch(t, api, harness.Options{Config: config})
				_, text := p.Host.Status()
				assert.Contains(t, text, health.ErrNoAnswer.Error())
				for range 20 {
					assert.True(t, p.Host.Fails())
					time.Sleep(time.Second)
				}
				pass()
				harness.Settle()
				assert.False(t, p.Host.Fails())
				assert.Empty(t, p.Log.FilterMessageSnippet("Watching events again").All(), "nothing had failed")
			})
		})
	}
}

func TestWithinTwoSecondsTheLogHasWhyTheWatchDoesNotWork(t *testing.T) {
	refuses := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	hangs := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tt := range map[string]struct {
		dial   func(context.Context, string, string) (net.Conn, error) // nil: there is a connection
		status int                                                     // of all answers
		want   []string
	}{
		"no API server":        {refuses, 0, []string{"connection refused", "/namespaces/kube-system", "check the address of the API server, and whether it runs"}},
		"dropped packets":      {hangs, 0, []string{"context deadline exceeded", "/namespaces/kube-system", "check the address of the API server, and network policies"}},
		"expired credentials":  {nil, http.StatusUnauthorized, []string{"does not accept the credentials", "renew the token or certificate"}},
		"a missing permission": {nil, http.StatusForbidden, []string{"no permission to list and watch events", "bind a ClusterRole with the rule"}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				var repaired atomic.Bool
				dial := api.Dial
				api.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if tt.dial != nil && !repaired.Load() {
						return tt.dial(ctx, network, address)
					}
					return dial(ctx, network, address)
				}
				if tt.status != 0 {
					api.RefuseCluster(tt.status)
					api.Refuse(func(*http.Request) int { return tt.status })
				}
				p := harness.Launch(t, api, harness.Options{})
				time.Sleep(2 * time.Second)
				synctest.Wait()
				lines := p.Log.FilterMessage("Cannot watch events; retrying").All()
				require.Len(t, lines, 1)
				_, status := p.Host.Status()
				for _, part := range tt.want {
					assert.Contains(t, lines[0].ContextMap()["error"], part)
					assert.Contains(t, status, part)
				}
				time.Sleep(time.Minute)
				assert.Len(t, p.Log.FilterMessage("Cannot watch events; retrying").All(), 1)
				repaired.Store(true)
				api.Refuse(nil)
				api.RefuseCluster(0)
				time.Sleep(time.Minute)
				assert.False(t, p.Host.Fails())
				assert.Len(t, p.Log.FilterMessage("The watch works").All(), 1)
				assert.Empty(t, p.Log.FilterMessage("Watching events again").All(), "it has not watched before")
			})
		})
	}
}

// Else its records would have another resource than those after a restart.
func TestWhoseCredentialsAreAcceptedLateHasTheUIDOfTheCluster(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusUnauthorized, http.StatusUnauthorized, 0)
		api.Put(harness.Event("a", 1))
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		p.AwaitRecords(t, "a+1")
		uid, _ := p.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("k8s.cluster.uid")
		assert.NotEmpty(t, uid.Str())
	})
}

func TestAStandbyThatWatchesNothingWaitsForNoAnswer(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		dropPackets(t, api)
		p := harness.NewReplica(t, api, nil, "")
		time.Sleep(time.Second)
		assert.False(t, p.Host.Fails())
	})
}

// An API server without etcd opens watches, and answers no list.
func TestAReceiverIsNotReadyBeforeAListIsAnswered(t *testing.T) {
	for name, status := range map[string]int{"with an error": http.StatusInternalServerError, "never": -1} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Refuse(func(r *http.Request) int {
					if r.URL.Query().Has("watch") {
						return 0
					}
					return status
				})
				p := harness.Launch(t, api, harness.Options{})
				for range 10 * 60 {
					assert.True(t, p.Host.Fails())
					time.Sleep(time.Second)
				}
				api.Refuse(nil)
				time.Sleep(2 * time.Minute)
				assert.False(t, p.Host.Fails())
			})
		})
	}
}

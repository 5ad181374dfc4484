// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// dropPackets makes connections hang, until the returned function is called or the test ends.
func dropPackets(t *testing.T) (pass func()) {
	t.Helper()
	passes := make(chan struct{})
	dial := kubeclient.Dial
	kubeclient.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
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
				pass := dropPackets(t)
				p := harness.Launch(t, api, harness.Options{Config: config})
				for range 20 {
					_, text := p.Host.Status()
					assert.True(t, p.Host.Fails())
					assert.Contains(t, text, health.ErrNoAnswer.Error())
					time.Sleep(time.Second)
				}
				assert.Empty(t, p.Log.FilterMessageSnippet("Cannot watch").All(), "nothing has failed yet")
				pass()
				harness.Settle()
				assert.False(t, p.Host.Fails())
				assert.Empty(t, p.Log.FilterMessageSnippet("Watching events again").All(), "nothing had failed")
			})
		})
	}
}

func TestAStandbyThatWatchesNothingWaitsForNoAnswer(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		dropPackets(t)
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

// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
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
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				pass := dropPackets(t)
				p := launch(t, api, options{config: config})
				for range 20 {
					_, text := p.host.status()
					assert.True(t, p.host.fails())
					assert.Contains(t, text, health.ErrNotWatched.Error())
					time.Sleep(time.Second)
				}
				assert.Empty(t, p.log.FilterMessageSnippet("Cannot watch").All(), "nothing has failed yet")
				pass()
				settle()
				assert.False(t, p.host.fails())
				assert.Empty(t, p.log.FilterMessageSnippet("Watching events again").All(), "nothing had failed")
			})
		})
	}
}

func TestAStandbyThatWatchesNothingWaitsForNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		dropPackets(t)
		p := newReplica(t, api, newDisk(), "")
		time.Sleep(time.Second)
		assert.False(t, p.host.fails())
	})
}

// An outage of the backend must not keep a startup probe from succeeding.
func TestAnOutboxThatThePipelineRejectsIsNoFailureOfTheAPIServer(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: "start_at: beginning", disk: on})
		settle()
		first.logs.reject(errors.New("full"))
		api.Put(eventNamed("one", 1))
		settle()
		first.stop()

		full := &pipeline{rejects: errors.New("full")}
		second := launch(t, api, options{config: "start_at: beginning", disk: on, logs: full})
		time.Sleep(5 * time.Second)
		assert.Positive(t, full.attempted(), "it delivers the outbox")
		assert.False(t, second.host.fails())
	})
}

// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/semaphore"

	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestTheStreamWaitsAsLongAsABusyServerAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		asked          time.Duration // Retry-After
		least, longest time.Duration // from the first request to the second one
	}{
		"the server asks for nothing":                  {0, 500 * time.Millisecond, time.Second},
		"for less than the stream waits anyway":        {time.Second, time.Second, time.Second},
		"for more than the stream waits anyway":        {20 * time.Second, 20 * time.Second, 20 * time.Second},
		"for so long that the receiver seems to hang":  {300 * time.Second, time.Minute, time.Minute},
		"for so long that it must be an absurd answer": {24 * time.Hour, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, requested := apitest.NewInMemory(t), make(chan time.Time, 100)
				api.RetryAfter(tt.asked)
				api.Refuse(func(*http.Request) int {
					requested <- time.Now()
					return http.StatusTooManyRequests
				})
				o := start(t, api, queue.New(10), watch.Settings{})
				first := <-requested
				synctest.Wait()
				assert.Equal(t, []watch.Cause{watch.CauseUnavailable}, o.seen(), "it is reported before the pause")
				pause := (<-requested).Sub(first)
				assert.GreaterOrEqual(t, pause, tt.least-time.Microsecond)
				assert.LessOrEqual(t, pause, tt.longest+time.Microsecond)
			})
		})
	}
}

func TestAShutdownDoesNotWaitAsLongAsABusyServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewInMemory(t)
		api.RetryAfter(time.Minute)
		api.Refuse(func(*http.Request) int { return http.StatusTooManyRequests })
		client := clientOf(t, api)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch.New(watch.Settings{Client: client, Taker: queue.New(10), Observer: &observer{}, Pages: semaphore.NewWeighted(1)}).Run(ctx)
		}()
		synctest.Wait()
		cancel()
		synctest.Wait() // No time passes.
		select {
		case <-ended:
		default:
			t.Error("the stream still waits")
			<-ended
		}
	})
}

func TestABusyServerDelaysAPageOfAList(t *testing.T) {
	for name, tt := range map[string]struct {
		asked    time.Duration
		requests []string
		causes   []watch.Cause
	}{
		"for a moment: only this page is requested again": {
			2 * time.Second,
			[]string{"list", "more", "more", "watch"},
			nil,
		},
		"for longer than an answer may take: the list starts from scratch": {
			5 * time.Minute,
			[]string{"list", "more", "list", "more", "watch"},
			[]watch.Cause{watch.CauseUnavailable},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(1000)
				for n := range 2001 {
					api.Put(event(fmt.Sprint("e", n), ""))
				}
				api.RetryAfter(tt.asked)
				isBusy := true
				api.Refuse(func(r *http.Request) int {
					if isBusy && r.URL.Query().Has("continue") {
						isBusy = false
						return http.StatusTooManyRequests
					}
					return 0
				})
				o := start(t, api, queue, watch.Settings{})
				time.Sleep(90 * time.Second)
				changes(queue)
				assert.Equal(t, tt.requests, connections(api))
				assert.Equal(t, tt.causes, o.seen())
			})
		})
	}
}

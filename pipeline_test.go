// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestARequestHasAtMostOneMiBOfOTLP(t *testing.T) {
	for name, on := range map[string]func() *disk{"with storage": newDisk, "without": func() *disk { return nil }} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				sizes := []int{10, 3 << 20, 20, 30, 2 << 20, 40}
				for range 500 {
					sizes = append(sizes, 3000)
				}
				for range 30 {
					sizes = append(sizes, 60_000)
				}
				var want []string
				for i, size := range sizes {
					ev := eventNamed(fmt.Sprintf("e%03d", i), 1)
					ev.Message = strings.Repeat("x", size)
					api.Put(ev)
					want = append(want, ev.Name+"+1")
				}
				p := launch(t, api, options{config: "start_at: beginning", disk: on()})
				p.awaitRecords(t, want...)
				for _, request := range p.logs.requests() {
					assert.LessOrEqual(t, len(request), 1<<20)
				}
				assert.Less(t, len(p.logs.requests()), 20, "requests are not much smaller than they may be")
			})
		})
	}
}

func TestAPartOfABatchThatIsDeliveredIsNotDeliveredAgainInTheNextTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "start_at: beginning")
		var want []string
		for i := range 60 {
			ev := eventNamed(fmt.Sprintf("e%02d", i), 1)
			ev.Message = strings.Repeat("x", 60_000)
			api.Put(ev)
			want = append(want, ev.Name+"+1")
		}
		settle()
		a.logs.onAttempt(func() {
			if a.logs.attempted() > 2 {
				a.logs.reject(errors.New("the queue is full"))
			}
		})
		a.elect()
		time.Sleep(10 * time.Second)
		a.depose()
		delivered := len(a.logs.names())
		assert.Positive(t, delivered)
		assert.Less(t, delivered, 60)
		assert.Equal(t, int64(delivered), a.sum(), "what was delivered counts")
		a.logs.onAttempt(nil)
		a.logs.reject(nil)
		a.elect()
		a.awaitRecords(t, want...)
		assert.Equal(t, int64(60-delivered), a.sum(), "and the rest in the next term")
	})
}

func TestWhileThePipelineRejectsTheAPIServerKeepsTheEvents(t *testing.T) {
	for name, tt := range map[string]struct{ events, size, most int }{
		// A batch, what waits for the next, and what the stream holds out, each below 4 MiB.
		"small events": {8000, 10, 1000 + 4<<10 + 1},
		"large events": {300, 60_000, 2*4<<20/60_000 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := &pipeline{rejects: errors.New("the queue is full")}
				ev := eventNamed("", 1)
				ev.Message = strings.Repeat("x", tt.size)
				for i := range tt.events {
					ev.Name = fmt.Sprintf("e%05d", i)
					api.Put(ev)
				}
				of := launch(t, api, options{config: "start_at: beginning", logs: p})
				settle()
				assert.Greater(t, p.attempted(), 5)
				assert.LessOrEqual(t, receiverOf(t, of).health.Waiting(), int64(tt.most))
				p.reject(nil)
				eventually(t, func() bool { return p.LogRecordCount() == tt.events }, "and nothing is lost")
			})
		})
	}
}

func TestAPipelineThatRejectsForHoursCostsTheAPIServerNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := launch(t, api, options{config: "start_at: beginning", logs: &pipeline{rejects: errors.New("the queue is full")}})
		for i := range 120 {
			api.Put(eventNamed("a", int32(i+1)))
			time.Sleep(time.Minute)
		}
		assert.LessOrEqual(t, len(api.Requests()), 2, "the watch is closed and nobody connects")
		_, text := p.host.status()
		assert.Contains(t, text, "the logs pipeline has accepted no events")
		p.logs.reject(nil)
		eventually(t, func() bool { return occurrences(p.logs.records()...) == 120 })
		assert.False(t, p.host.fails())
	})
}

func TestANamespaceThatFloodsDoesNotStarveTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const flood = 10_000
		for i := range flood {
			ev := eventNamed(fmt.Sprintf("flood%05d", i), 1)
			ev.Namespace = "flood"
			api.Put(ev)
		}
		quiet := eventNamed("quiet", 1)
		quiet.Namespace = "quiet"
		api.Put(quiet)
		release := make(chan struct{})
		logs := &pipeline{before: func() { <-release }}
		launch(t, api, options{config: "{start_at: beginning, namespaces: [flood, quiet]}", logs: logs, noMetrics: true})
		settle()
		close(release)
		eventually(t, func() bool { return logs.LogRecordCount() == flood+1 })
		assert.Less(t, slices.Index(logs.names(), "quiet+1"), flood/2,
			"it came long after the flood began and does not wait for its end")
	})
}

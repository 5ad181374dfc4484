// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestAPipelineThatRejectsWithARetryableErrorGetsEverythingOnceAndInOrder(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		pipeline := &harness.Pipeline{Rejects: errors.New("the queue is full")}
		p := harness.Launch(t, api, harness.Options{Config: fromBeginning, Logs: pipeline})
		api.Put(harness.Event("a", 2))
		harness.Eventually(t, func() bool { return pipeline.Attempted() >= 3 })
		api.Put(harness.Event("a", 5))
		api.Put(harness.Event("b", 1))
		harness.Settle()
		assert.Zero(t, p.Sum(), "what is not delivered is not counted")
		pipeline.Reject(nil)
		p.AwaitRecords(t, "a+2", "a+3", "b+1")
		p.AwaitSum(t, 6)
	})
}

func TestRecordsThatAreDroppedAreCounted(t *testing.T) {
	full := errors.New("the queue is full")
	for name, tt := range map[string]struct {
		retry    string
		rejected error
	}{
		"rejected with a permanent error": {"{}", consumererror.NewPermanent(errors.New("too large"))},
		"retries are switched off":        {"{enabled: false}", full},
		"retries end after a time":        {"{max_elapsed_time: 30ms, initial_interval: 10ms, max_interval: 10ms}", full},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := harness.Launch(t, api, harness.Options{
					Config: "{start_at: beginning, retry_on_failure: " + tt.retry + "}", Logs: &harness.Pipeline{Rejects: tt.rejected},
				})
				api.Put(harness.Event("a", 2))
				p.AwaitSum(t, 2)
				p.Logs.Reject(nil)
				api.Put(harness.Event("a", 5))
				p.AwaitRecords(t, "a+3")
				p.AwaitSum(t, 5)
			})
		})
	}
}

func TestARequestHasAtMostAMillionBytesOfOTLP(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		sizes := []int{10, 3 << 20, 20, 30, 2 << 20, 40}
		for range 500 {
			sizes = append(sizes, 3000)
		}
		for range 39 { // 20 of them are a little too large for a request.
			sizes = append(sizes, 50_050)
		}
		var want []string
		for i, size := range sizes {
			ev := harness.Event(fmt.Sprintf("e%03d", i), 1)
			ev.Message = strings.Repeat("x", size)
			api.Put(ev)
			want = append(want, ev.Name+"+1")
		}
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		p.AwaitRecords(t, want...)
		for _, request := range p.Logs.AllLogs() {
			assert.LessOrEqual(t, (&plog.ProtoMarshaler{}).LogsSize(request), 1_000_000)
		}
		assert.Less(t, len(p.Logs.AllLogs()), 10, "requests are not much smaller than they may be")
	})
}

// The progress does not move until all of a batch is delivered, so that the next term repeats a part.
func TestAPartOfABatchThatIsDeliveredIsRepeatedInTheNextTerm(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		var want []string
		for i := range 60 {
			ev := harness.Event(fmt.Sprintf("e%02d", i), 1)
			ev.Message = strings.Repeat("x", 60_000)
			api.Put(ev)
			want = append(want, ev.Name+"+1")
		}
		harness.Settle()
		a.Logs.OnAttempt(func() {
			if a.Logs.Attempted() > 2 {
				a.Logs.Reject(errors.New("the queue is full"))
			}
		})
		a.Elect()
		time.Sleep(10 * time.Second)
		a.Depose()
		delivered := len(a.Logs.Names())
		assert.Positive(t, delivered)
		assert.Less(t, delivered, 60)
		assert.Equal(t, int64(delivered), a.Sum(), "what was delivered counts")
		a.Logs.OnAttempt(nil)
		a.Logs.Reject(nil)
		a.Elect()
		a.AwaitRecords(t, append(a.Logs.Names()[:delivered:delivered], want...)...)
		assert.Equal(t, int64(60), a.Sum(), "in the next term, all of it")
	})
}

func TestWhileThePipelineRejectsTheAPIServerKeepsTheEvents(t *testing.T) {
	for name, tt := range map[string]struct{ events, size, most int }{
		// A batch, what waits for the next, and what the stream holds out, each below 4 MiB.
		"small events": {8000, 10, 1000 + 4<<10 + 1},
		"large events": {300, 60_000, 2*4<<20/60_000 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := &harness.Pipeline{Rejects: errors.New("the queue is full")}
				ev := harness.Event("", 1)
				ev.Message = strings.Repeat("x", tt.size)
				for i := range tt.events {
					ev.Name = fmt.Sprintf("e%05d", i)
					api.Put(ev)
				}
				of := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Logs: p})
				harness.Settle()
				assert.Greater(t, p.Attempted(), 5)
				assert.LessOrEqual(t, of.Waiting(t), int64(tt.most))
				time.Sleep(time.Minute)
				p.Reject(nil)
				harness.Eventually(t, func() bool { return p.LogRecordCount() == tt.events }, "and nothing is lost")
				harness.Settle()
				assert.Zero(t, of.Waiting(t), "and nothing waits")
			})
		})
	}
}

func TestANamespaceThatFloodsDoesNotStarveTheOthers(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const flood = 10_000
		for i := range flood {
			ev := harness.Event(fmt.Sprintf("flood%05d", i), 1)
			ev.Namespace = "flood"
			api.Put(ev)
		}
		quiet := harness.Event("quiet", 1)
		quiet.Namespace = "quiet"
		api.Put(quiet)
		release := make(chan struct{})
		logs := &harness.Pipeline{Before: func() { <-release }}
		harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, namespaces: [flood, quiet]}", Logs: logs, NoMetrics: true})
		harness.Settle()
		close(release)
		harness.Eventually(t, func() bool { return logs.LogRecordCount() == flood+1 })
		assert.Less(t, slices.Index(logs.Names(), "quiet+1"), flood/2,
			"it came long after the flood began and does not wait for its end")
	})
}

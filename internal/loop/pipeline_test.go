// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// refusing is a pipeline that rejects everything while it has an error, and otherwise accepts it.
type refusing struct {
	consumertest.LogsSink
	err      atomic.Pointer[error]
	attempts atomic.Int64
	mutates  bool
}

func (c *refusing) refuseWith(err error) { c.err.Store(&err) }

func (c *refusing) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: c.mutates}
}

func (c *refusing) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	c.attempts.Add(1)
	if err := c.err.Load(); err != nil && *err != nil {
		// What was given is the pipeline's: a rejected batch may come back changed.
		logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true })
		return *err
	}
	return c.LogsSink.ConsumeLogs(ctx, logs)
}

func TestAPipelineThatRejectsWithARetryableErrorGetsEverythingOnceAndInOrder(t *testing.T) {
	api := apitest.New(t)
	pipeline := &refusing{mutates: true}
	metrics := &consumertest.MetricsSink{}
	pipeline.refuseWith(errors.New("the queue is full"))
	harness.Start(t, harness.ConfigFor(t, api.URL, "{start_at: beginning, collection_interval: 10ms}"), pipeline, metrics)
	api.Put(harness.Event("a", 2))
	require.Eventually(t, func() bool { return pipeline.attempts.Load() >= 3 }, harness.Timeout, time.Millisecond)
	api.Put(harness.Event("a", 5))
	api.Put(harness.Event("b", 1))
	assert.Zero(t, metrics.DataPointCount(), "what is not delivered is not counted")
	pipeline.refuseWith(nil)
	harness.AwaitNames(t, &pipeline.LogsSink, "a+2", "a+3", "b+1")
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, harness.Timeout, time.Millisecond)
}

func TestRecordsThatAreRejectedWithAPermanentErrorAreCounted(t *testing.T) {
	api := apitest.New(t)
	pipeline, metrics := &refusing{}, &consumertest.MetricsSink{}
	pipeline.refuseWith(consumererror.NewPermanent(errors.New("too large")))
	harness.Start(t, harness.ConfigFor(t, api.URL, "{start_at: beginning, collection_interval: 10ms}"), pipeline, metrics)
	api.Put(harness.Event("a", 2))
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, harness.Timeout, time.Millisecond)
	pipeline.refuseWith(nil)
	api.Put(harness.Event("a", 5))
	harness.AwaitNames(t, &pipeline.LogsSink, "a+3")
	require.Eventually(t, func() bool {
		all := metrics.AllMetrics()
		sum := all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum()
		return sum.DataPoints().At(0).IntValue() == 5
	}, harness.Timeout, time.Millisecond, "the metric is the sum over all records, the rejected ones included")
}

func TestRetriesThatMayEndEnd(t *testing.T) {
	for name, settings := range map[string]string{
		"switched off": "{start_at: beginning, collection_interval: 10ms, retry_on_failure: {enabled: false}}",
		"after a time": "{start_at: beginning, collection_interval: 10ms, retry_on_failure: {max_elapsed_time: 30ms, initial_interval: 10ms, max_interval: 10ms}}",
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			pipeline, metrics := &refusing{}, &consumertest.MetricsSink{}
			pipeline.refuseWith(errors.New("the queue is full"))
			harness.Start(t, harness.ConfigFor(t, api.URL, settings), pipeline, metrics)
			api.Put(harness.Event("a", 1))
			require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, harness.Timeout, time.Millisecond, "dropped, and counted")
			pipeline.refuseWith(nil)
			api.Put(harness.Event("b", 1))
			harness.AwaitNames(t, &pipeline.LogsSink, "b+1")
		})
	}
}

func TestARequestHasAtMostAMillionBytesOfOTLP(t *testing.T) {
	for name, on := range map[string]func() *harness.Disk{"with storage": harness.NewDisk, "without": func() *harness.Disk { return nil }} {
		t.Run(name, func(t *testing.T) {
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
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on()})
				p.AwaitRecords(t, want...)
				for _, request := range p.Logs.Requests() {
					assert.LessOrEqual(t, len(request), 1_000_000)
				}
				assert.Less(t, len(p.Logs.Requests()), 20, "requests are not much smaller than they may be")
			})
		})
	}
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

// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/goleak"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// Receivers that have stopped leave nothing behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLastWindowIsFlushedAtShutdown(t *testing.T) {
	api := apitest.New(t)
	sink, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	stop := harness.Start(t, harness.ConfigFor(t, api.URL, "{start_at: beginning, dedup_interval: 1h, collection_interval: 10ms}"), sink, metrics)
	api.Put(harness.Event("a", 1))
	harness.AwaitNames(t, sink, "a+1")
	api.Put(harness.Event("a", 4))
	time.Sleep(time.Second)
	assert.Len(t, harness.Names(sink.AllLogs()), 1)
	stop()
	assert.Equal(t, []string{"a+1", "a+3"}, harness.Names(sink.AllLogs()))
}

func TestWhatExistsAtTheFirstStart(t *testing.T) {
	for startAt, want := range map[string][]string{
		"end":       {"a+2", "b+1"},
		"beginning": {"a+3", "a+2", "b+1"},
	} {
		t.Run(startAt, func(t *testing.T) {
			api := apitest.New(t)
			api.Put(harness.Event("a", 3))
			sink := &consumertest.LogsSink{}
			r := harness.Start(t, harness.ConfigFor(t, api.URL, "start_at: "+startAt), sink, nil)
			require.Eventually(t, func() bool { return len(api.Requests()) > 0 }, harness.Timeout, time.Millisecond)
			if startAt == "beginning" {
				harness.AwaitNames(t, sink, "a+3")
			} else {
				awaitListed(t, api)
			}
			api.Put(harness.Event("a", 5))
			api.Put(harness.Event("b", 1))
			harness.AwaitNames(t, sink, want...)
			r()
		})
	}
}

// awaitListed waits until the streamed listing was read: the fake sends it before it looks for a
// cut, and a watch after a cut begins where the listing ended.
func awaitListed(t *testing.T, api *apitest.Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		api.Cut()
		requests := api.Requests()
		return requests[len(requests)-1] == "watch"
	}, harness.Timeout, 50*time.Millisecond)
}

// TestAnIdleReceiverDoesNothing: it neither writes nor reads the storage. Its only requests resume
// the watch, and check that the cluster's versions have not gone back.
func TestAnIdleReceiverDoesNothing(t *testing.T) {
	for _, config := range []string{"{}", "dedup_interval: 1m", "namespaces: [ns, other]"} {
		t.Run(config, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				p := harness.Launch(t, api, harness.Options{Config: config, Disk: on, Interval: 30 * time.Second})
				harness.Settle()
				api.Put(harness.Event("a", 1))
				api.Put(harness.Event("a", 2))
				time.Sleep(2 * time.Minute) // The window ends, and the metric has its first points.
				synctest.Wait()
				calls, requests := on.Calls, len(api.Requests())
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				assert.Equal(t, calls, on.Calls, "calls of the storage")
				assert.Subset(t, []string{"version", "watch"}, api.Requests()[requests:])
				assert.EqualValues(t, 2, harness.Occurrences(p.Logs.Records()...))
			})
		})
	}
}

func TestTheLogSaysOnceThatTheWatchWorks(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const works = "The watch works"
		api.Put(harness.Event("one", 1))
		api.Put(harness.Event("two", 1))
		p := harness.Launch(t, api, harness.Options{Config: "{namespaces: [ns, pay]}"})
		harness.Settle()
		assert.Equal(t, []map[string]any{{"streams": int64(2), "live_events": int64(2)}}, contexts(p, works))
		api.Put(harness.Event("three", 1))
		harness.Settle()
		assert.Len(t, contexts(p, works), 1)
	})
}

// contexts returns the fields of a message in the log of a process, each time that it has the message.
func contexts(p *harness.Process, message string) (all []map[string]any) {
	for _, entry := range p.Log.FilterMessage(message).All() {
		all = append(all, entry.ContextMap())
	}
	return all
}

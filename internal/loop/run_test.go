// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// Receivers that have stopped leave nothing behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLastWindowIsFlushedAtShutdown(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, dedup_interval: 1h}"})
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		api.Put(harness.Event("a", 4))
		p.AwaitRecords(t, "a+1")
		p.Stop()
		assert.Equal(t, []string{"a+1", "a+3"}, p.Logs.Names())
	})
}

func TestWhatExistsAtTheFirstStart(t *testing.T) {
	for startAt, want := range map[string][]string{
		"end":       {"a+2", "b+1"},
		"beginning": {"a+3", "a+2", "b+1"},
	} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(harness.Event("a", 3))
				p := harness.Launch(t, api, harness.Options{Config: "start_at: " + startAt})
				harness.Settle()
				api.Put(harness.Event("a", 5))
				api.Put(harness.Event("b", 1))
				p.AwaitRecords(t, want...)
			})
		})
	}
}

func TestWithoutStorageAndElectorEveryStartIsAFirstStart(t *testing.T) {
	for startAt, want := range map[string][]string{
		"end":       {"a+2"},
		"beginning": {"a+4", "b+1", "a+2"},
	} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				first := harness.Launch(t, api, harness.Options{Config: "start_at: " + startAt})
				harness.Settle()
				api.Put(harness.Event("a", 4))
				first.AwaitRecords(t, "a+4")
				first.Stop()
				api.Put(harness.Event("b", 1))
				second := harness.Launch(t, api, harness.Options{Config: "start_at: " + startAt})
				harness.Settle()
				api.Put(harness.Event("a", 6))
				second.AwaitRecords(t, want...)
			})
		})
	}
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
				assert.EqualValues(t, 2, p.Logs.Occurrences())
			})
		})
	}
}

// A network that drops packets shows itself only after a timeout.
func TestUntilTheAPIServerHasAnsweredTheReceiverDoesNotWork(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		release := make(chan struct{})
		api.Refuse(func(*http.Request) int {
			<-release
			return 0
		})
		p := harness.Launch(t, api, harness.Options{})
		time.Sleep(time.Second)
		_, text := p.Host.Status()
		assert.Contains(t, text, "the API server has not answered yet")
		close(release)
		harness.Settle()
		assert.False(t, p.Host.Fails())
		p.Stop()
		assert.False(t, p.Host.IsStandby(), "nobody else leads when it stops")
	})
}

func TestUntilTheAPIServerHasAnsweredALeaderDoesNotWork(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.Refuse(func(*http.Request) int { return -1 })
		p := harness.NewReplica(t, api, nil, "{}")
		assert.True(t, p.Host.IsStandby())
		p.Elect()
		time.Sleep(time.Second)
		assert.False(t, p.Host.IsStandby())
		_, text := p.Host.Status()
		assert.Contains(t, text, "the API server has not answered yet")
		api.Refuse(nil)
		time.Sleep(5 * time.Minute)
		assert.False(t, p.Host.Fails())
	})
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

// The queue has the list of a large cluster before the loop has accounted for it.
func TestTheWatchWorksOnceTheListIsAccountedFor(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const events = 2000
		for i := range events {
			api.Put(harness.Event(fmt.Sprint("e", i), 1))
		}
		release := make(chan struct{})
		logs := &harness.Pipeline{Before: func() { <-release }}
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Logs: logs})
		harness.Settle()
		close(release)
		harness.Eventually(t, func() bool { return logs.LogRecordCount() == events })
		assert.Equal(t, []map[string]any{{"streams": int64(1), "live_events": int64(events)}}, contexts(p, "The watch works"))
	})
}

func TestTheLogOfAQuietClusterSaysThatTheWatchWorks(t *testing.T) {
	const works = "The watch works"
	t.Run("after a restart with storage", func(t *testing.T) {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			api.Put(harness.Event("one", 1))
			deleted := api.Put(harness.Event("two", 1))
			disk := harness.NewDisk()
			first := harness.Launch(t, api, harness.Options{Disk: disk})
			harness.Settle()
			api.Delete(deleted)
			harness.Settle()
			first.Stop()
			second := harness.Launch(t, api, harness.Options{Disk: disk})
			time.Sleep(5 * time.Second)
			assert.Equal(t, []map[string]any{{"streams": int64(1), "live_events": int64(1)}}, contexts(second, works))
		})
	})
	t.Run("once a missing permission is there", func(t *testing.T) {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			api.Refuse(func(r *http.Request) int {
				if strings.Contains(r.URL.Path, "/pay/") {
					return http.StatusForbidden
				}
				return 0
			})
			p := harness.Launch(t, api, harness.Options{Config: "namespaces: [ns, pay]"})
			time.Sleep(10 * time.Second)
			assert.Empty(t, contexts(p, works))
			api.Refuse(nil)
			time.Sleep(2 * time.Minute)
			assert.Len(t, contexts(p, works), 1)
		})
	})
}

// contexts returns the fields of a message in the log of a process, each time that it has the message.
func contexts(p *harness.Process, message string) (all []map[string]any) {
	for _, entry := range p.Log.FilterMessage(message).All() {
		all = append(all, entry.ContextMap())
	}
	return all
}

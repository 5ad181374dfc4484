// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// takeAll takes batches until nothing more comes, and returns the names of their events.
func takeAll(queue *queue.Queue) (names []string) {
	synctest.Wait()
	for batch := queue.Take(nil); len(batch) > 0; batch = queue.Take(nil) {
		for _, c := range batch {
			if c.Event != nil {
				names = append(names, c.Event.Name)
			}
		}
		synctest.Wait()
	}
	return names
}

// Labels that no rule uses take no memory while an event waits.
func TestWhatNobodyUsesIsDroppedBeforeAnEventWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		labeled := func(name string) *corev1.Event {
			ev := event(name, "")
			ev.Labels = map[string]string{"unused": "x"}
			return ev
		}
		api.Put(labeled("listed"))
		start(t, api, queue, watch.Settings{Keep: func(ev *corev1.Event) { ev.Labels = nil }})
		synctest.Wait()
		api.Put(labeled("watched"))
		events := 0
		synctest.Wait()
		for batch := queue.Take(nil); len(batch) > 0; batch = queue.Take(nil) {
			for _, change := range batch {
				if change.Event != nil {
					events++
					assert.Empty(t, change.Event.Labels, change.Event.Name)
				}
			}
		}
		assert.Equal(t, 2, events)
	})
}

func TestConnectionsThatAreAlwaysClosedAtOnceAreAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Settings{Namespace: "ns"})
		takeAll(queue)
		api.Cut()
		synctest.Wait()
		assert.Len(t, connections(api), 2, "it does not connect again without a pause")
		time.Sleep(time.Second)
		assert.Len(t, connections(api), 3)
		for len(connections(api)) < 20 && !slices.Contains(o.seen(), watch.CauseUnavailable) {
			api.Cut()
			time.Sleep(50 * time.Millisecond)
		}
		require.Contains(t, o.seen(), watch.CauseUnavailable)
		assert.Greater(t, len(connections(api)), 2, "a few that are closed are no failure")
		answers := o.answersSeen()
		time.Sleep(time.Minute)
		assert.Greater(t, o.answersSeen(), answers, "a watch that stays open works, also if no event comes")
		api.Put(event("a", ""))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a"}, takeAll(queue))
		assert.Equal(t, map[string]bool{"ns": true}, o.of, "each report names the stream")
	})
}

func TestTheDelaysBeginAgainAfterAConnectionThatLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		start(t, api, queue, watch.Settings{})
		time.Sleep(5 * time.Minute) // The delays are 15 to 30 s now.
		api.Refuse(nil)
		time.Sleep(time.Minute)
		takeAll(queue)
		began := len(connections(api))
		var refused atomic.Bool
		api.Refuse(func(r *http.Request) int {
			if r.URL.Query().Has("watch") && refused.CompareAndSwap(false, true) {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		api.Cut()
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"watch", "watch"}, connections(api)[began:], "refused, and soon again")
	})
}

// A server that starts again must not have all its clients at once.
func TestAStreamThatResumesWaitsLongerForAServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Settings{})
		api.Put(event("a", ""))
		time.Sleep(time.Minute)
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		api.Cut()
		time.Sleep(10 * time.Minute)
		assert.Less(t, len(o.seen()), 60, "at last every 15 to 30 s")
	})
}

func TestFailuresBeforeAVersionExpiresDoNotDelayTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Settings{})
		api.Put(event("a", ""))
		time.Sleep(time.Minute)
		takeAll(queue)
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		api.Cut()
		time.Sleep(5 * time.Minute) // The delays are 15 to 30 s now.
		api.Put(event("b", ""))
		api.Put(event("c", ""))
		api.Compact()
		api.Refuse(nil)
		for !slices.Contains(o.seen(), watch.CauseExpired) {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1100 * time.Millisecond)
		assert.ElementsMatch(t, []string{"a", "b", "c"}, takeAll(queue))
	})
}

// The pages of a list, the lists of many namespaces, and what is read to compare versions follow each
// other: with pauses, they would take long.
func TestOnlyWatchesUseTheClientForWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, watches := apitest.NewInMemory(t), apitest.NewInMemory(t)
		start(t, lists, queue.New(10), watch.Settings{Watches: clientOf(t, watches)})
		synctest.Wait()
		watches.Cut()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"list", "version"}, lists.Requests())
		assert.Equal(t, []string{"watch", "watch"}, watches.Requests())
	})
}

func TestARequestThatIsNotAnsweredIsRepeatedAfterAMinute(t *testing.T) {
	for name, isKind := range map[string]func(url.Values) bool{
		"a page of a list": func(q url.Values) bool { return q.Get("watch") == "" },
		"a watch":          func(q url.Values) bool { return q.Get("watch") != "" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(10)
				var asked atomic.Bool
				api.Refuse(func(r *http.Request) int {
					if isKind(r.URL.Query()) && asked.CompareAndSwap(false, true) {
						<-r.Context().Done()
					}
					return 0
				})
				o := start(t, api, queue, watch.Settings{})
				time.Sleep(59 * time.Second)
				assert.Empty(t, o.seen())
				time.Sleep(3 * time.Second)
				assert.Equal(t, []watch.Cause{watch.CauseSilent}, o.seen())
				takeAll(queue)
				api.Put(event("a", ""))
				assert.Equal(t, []string{"a"}, takeAll(queue))
			})
		})
	}
}

func TestTheServerIsAskedToEndAWatchAfterFiveToTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewInMemory(t)
		var asked atomic.Value
		api.Refuse(func(r *http.Request) int {
			asked.Store(r.URL.Query())
			return 0
		})
		start(t, api, queue.New(10), watch.Settings{FieldSelector: "type=Warning"})
		synctest.Wait()
		query := asked.Load().(url.Values)
		assert.Equal(t, "type=Warning", query.Get("fieldSelector"))
		seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, seconds, 5*60)
		assert.LessOrEqual(t, seconds, 10*60)
	})
}

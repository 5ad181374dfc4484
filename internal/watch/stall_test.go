// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// takeAll takes batches until nothing more comes, and returns the names of their events.
func takeAll(queue *queue.Queue) (names []string) {
	// The first empty batch ends a stall.
	for empty := 0; empty < 2; empty++ {
		synctest.Wait()
		for batch := queue.Take(nil); len(batch) > 0; batch = queue.Take(nil) {
			empty = 0
			for _, c := range batch {
				if c.Event != nil {
					names = append(names, c.Event.Name)
				}
			}
			synctest.Wait()
		}
	}
	return names
}

const aWhile = 31 * time.Second // longer than a batch may wait

func TestAStallClosesTheWatchWhichThenResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Config{})
		takeAll(queue)
		api.Put(event("a", ""))
		synctest.Wait()
		require.Len(t, queue.Take(nil), 1)
		api.Put(event("b", ""))
		time.Sleep(aWhile)
		synctest.Wait()
		assert.Equal(t, []watch.Cause{watch.Stalled}, o.seen())
		api.Put(event("c", ""))
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"stream"}, connections(api), "it does not connect while the batch waits")
		assert.Equal(t, []string{"b", "c"}, takeAll(queue))
		assert.Equal(t, []string{"stream", "watch"}, connections(api), "it resumes without a listing")
	})
}

func TestAStallLosesNothingOfAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Config{})
		takeAll(queue)
		api.Put(event("first", ""))
		synctest.Wait()
		require.Len(t, queue.Take(nil), 1)
		var want []string
		for n := range 3 {
			want = append(want, fmt.Sprint("large", n))
			api.Put(event(want[n], strings.Repeat("x", 9<<18))) // Only one of them fits the queue.
		}
		time.Sleep(aWhile)
		synctest.Wait()
		require.Equal(t, []watch.Cause{watch.Stalled}, o.seen())
		assert.Equal(t, want, takeAll(queue), "each one, once, in order")
	})
}

// TestAListingEndsHoweverSlowThePipelineIs: the pipeline takes longer than a batch may wait for
// every batch that has something new.
func TestAListingEndsHoweverSlowThePipelineIs(t *testing.T) {
	for name, prepare := range map[string]func(*apitest.Server){
		"streamed": func(*apitest.Server) {},
		"paged":    (*apitest.Server).WithoutStreaming,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(100)
				prepare(api)
				const events = 520 // more than a page and, in bytes, more than the queue
				for n := range events {
					api.Put(event(fmt.Sprintf("e%05d", n), strings.Repeat("x", 10<<10)))
				}
				start(t, api, queue, watch.Config{})
				known, began := map[string]bool{}, 0
				for ended := false; !ended; {
					<-queue.Signal()
					before := len(known)
					for _, c := range queue.Take(nil) {
						if c.Event != nil {
							known[c.Event.Name] = true
						}
						if c.Kind == watch.ListBegan {
							began++
						}
						ended = ended || c.Kind == watch.ListEnded
					}
					if len(known) > before {
						time.Sleep(aWhile)
					}
					queue.Done()
				}
				assert.Len(t, known, events)
				assert.Equal(t, 2, began, "the streamed listing is given up, the paged one is not")
			})
		})
	}
}

func TestConnectionsThatAreAlwaysClosedAtOnceAreAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Config{})
		takeAll(queue)
		api.Cut()
		synctest.Wait()
		assert.Len(t, connections(api), 1, "it does not connect again without a pause")
		time.Sleep(time.Second)
		assert.Len(t, connections(api), 2)
		for len(connections(api)) < 20 && !slices.Contains(o.seen(), watch.Unavailable) {
			api.Cut()
			time.Sleep(50 * time.Millisecond)
		}
		require.Contains(t, o.seen(), watch.Unavailable)
		assert.Greater(t, len(connections(api)), 2, "a few that are closed are no failure")
		api.Put(event("a", ""))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a"}, takeAll(queue))
	})
}

func TestTheDelaysBeginAgainAfterAConnectionThatLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		start(t, api, queue, watch.Config{})
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

func TestFailuresBeforeAVersionExpiresDoNotDelayTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		o := start(t, api, queue, watch.Config{})
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
		for !slices.Contains(o.seen(), watch.Expired) {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1100 * time.Millisecond)
		assert.ElementsMatch(t, []string{"a", "b", "c"}, takeAll(queue))
	})
}

func TestARequestThatIsNotAnsweredIsRepeatedAfterAMinute(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*apitest.Server)
		is      func(url.Values) bool
	}{
		"a streamed list":  {func(*apitest.Server) {}, func(q url.Values) bool { return q.Get("sendInitialEvents") != "" }},
		"a page of a list": {(*apitest.Server).WithoutStreaming, func(q url.Values) bool { return q.Get("watch") == "" }},
		"a watch":          {(*apitest.Server).WithoutStreaming, func(q url.Values) bool { return q.Get("resourceVersion") != "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(10)
				tt.prepare(api)
				var asked atomic.Bool
				api.Refuse(func(r *http.Request) int {
					if tt.is(r.URL.Query()) && asked.CompareAndSwap(false, true) {
						<-r.Context().Done()
					}
					return 0
				})
				o := start(t, api, queue, watch.Config{})
				time.Sleep(59 * time.Second)
				assert.Empty(t, o.seen())
				time.Sleep(3 * time.Second)
				assert.Equal(t, []watch.Cause{watch.Silent}, o.seen())
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
		start(t, api, queue.New(10), watch.Config{FieldSelector: "type=Warning"})
		synctest.Wait()
		query := asked.Load().(url.Values)
		assert.Equal(t, "type=Warning", query.Get("fieldSelector"))
		seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, seconds, 5*60)
		assert.LessOrEqual(t, seconds, 10*60)
	})
}

func TestAServerThatNeverEndsAStreamedListing(t *testing.T) {
	for name, pause := range map[string]time.Duration{"and is silent": time.Hour, "and sends what changes": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(10)
				api.WithoutEndBookmark()
				api.Put(event("a", ""))
				o := start(t, api, queue, watch.Config{})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				ended := make(chan struct{})
				go func() {
					for ctx.Err() == nil {
						select {
						case <-queue.Signal():
						case <-ctx.Done():
						}
						if slices.ContainsFunc(queue.Take(nil), func(c watch.Change) bool { return c.Kind == watch.ListEnded }) {
							close(ended)
						}
						queue.Done()
					}
				}()
				go func() {
					for n := 0; ctx.Err() == nil; n++ {
						select {
						case <-time.After(pause):
							api.Put(event(fmt.Sprint("b", n), ""))
						case <-ctx.Done():
						}
					}
				}()
				select {
				case <-ended:
				case <-ctx.Done():
					t.Fatal("the listing does not end")
				}
				synctest.Wait()
				assert.Equal(t, []string{"stream", "stream", "list", "watch"}, connections(api))
				assert.Equal(t, []watch.Cause{watch.Silent, watch.Silent}, o.seen(), "the status names the problem")
			})
		})
	}
}

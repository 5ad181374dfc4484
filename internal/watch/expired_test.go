// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"fmt"
	"net/http"
	"slices"
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

// A proxy before the API server may answer each watch, or each further page, with 410. A list helps
// once or twice.
func TestVersionsThatAlwaysExpireAreAFailure(t *testing.T) {
	for name, expires := range map[string]func(*http.Request) bool{
		"in watches": func(r *http.Request) bool { return r.URL.Query().Has("watch") },
		"in lists":   func(r *http.Request) bool { return r.URL.Query().Has("continue") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(10_000)
				for n := range 2001 {
					api.Put(event(fmt.Sprint("e", n), ""))
				}
				var expired atomic.Int64
				api.Refuse(func(r *http.Request) int {
					switch {
					case !expires(r):
						time.Sleep(6 * time.Second) // A list that takes long does not show that watches work.
						return 0
					case expired.Add(1) > 1000:
						return -1 // Without pauses, no time would pass.
					}
					return http.StatusGone
				})
				o := start(t, api, queue, watch.Settings{})
				for len(o.seen()) < 3 {
					takeAll(queue)
					time.Sleep(100 * time.Millisecond)
				}
				assert.Equal(t, []watch.Cause{watch.CauseExpired, watch.CauseExpired, watch.CauseUnavailable}, o.seen())
				require.ErrorContains(t, o.lastError(), "check proxies before the API server")
				answers := o.answersSeen()
				for range 10 {
					time.Sleep(time.Minute)
					takeAll(queue)
				}
				assert.NotContains(t, o.seen()[2:], watch.CauseExpired)
				assert.Equal(t, answers, o.answersSeen(), "it is reported to work")
				assert.Less(t, expired.Load(), int64(50), "the pauses are short")

				api.Refuse(nil)
				time.Sleep(time.Minute)
				takeAll(queue)
				api.Put(event("new", ""))
				assert.Equal(t, []string{"new"}, takeAll(queue))
				assert.Greater(t, o.answersSeen(), answers)
			})
		})
	}
}

func TestAfterAFailureAListDoesNotShowThatWatchesWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		statuses := []int{http.StatusServiceUnavailable, http.StatusGone}
		watches := 0
		api.Refuse(func(r *http.Request) int {
			if !r.URL.Query().Has("watch") {
				return 0
			}
			watches++
			return statuses[watches%2]
		})
		o := start(t, api, queue, watch.Settings{})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Greater(t, watches, 4)
		assert.Equal(t, 2, o.answers, "the lists before the first failure")
	})
}

// An API server reports what expires within the answer to a watch.
func TestAWatchIsUselessIfItExpiresBeforeAMessage(t *testing.T) {
	const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`
	const event = `{"type":"ADDED","object":{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","resourceVersion":"6"}}}`
	const bookmark = `{"type":"BOOKMARK","object":{"kind":"Event","apiVersion":"v1","metadata":{"resourceVersion":"6"}}}`
	for name, tt := range map[string]struct {
		messages []string // of each watch, over and over
		fails    bool
	}{
		"none has a message":  {[]string{""}, true},
		"each has an event":   {[]string{event}, false},
		"each has a bookmark": {[]string{bookmark}, false},
		"each third one has":  {[]string{"", "", event}, false},
		"each fourth one has": {[]string{event, "", "", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watches := 0
				o := answered(t, watch.Settings{}, func(w http.ResponseWriter, r *http.Request) {
					if !r.URL.Query().Has("watch") {
						writeJSON(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
						return
					}
					writeJSON(w, tt.messages[watches%len(tt.messages)]+expired)
					watches++
				})
				synctest.Wait()
				require.Greater(t, len(o.causes), 4)
				assert.Equal(t, tt.fails, slices.Contains(o.causes, watch.CauseUnavailable))
				if len(tt.messages) == 1 && tt.fails {
					assert.Equal(t, 2*3, o.answers, "each list and each watch, until it fails")
				}
			})
		})
	}
}

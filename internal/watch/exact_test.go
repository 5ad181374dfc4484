// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestAStreamStartsAtAVersion(t *testing.T) {
	now := []string{"began", "began", "listed a=2", "listed c=1", "ended now"}
	for name, tt := range map[string]struct {
		at      string
		prepare func(*apitest.Server)
		want    []string
	}{
		"that the server has": {
			at:   "4", // a=1 and b=1 exist
			want: []string{"began", "existing a=1", "existing b=1", "ended at 4", "changed a=2", "deleted b=1", "changed c=1"},
		},
		"that is compacted":   {at: "4", prepare: (*apitest.Server).Compact, want: now},
		"that does not exist": {at: "99", want: append([]string{"went back"}, now[1:]...)},
		"that is no version":  {at: "x", want: now},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(1000)
				api.Put(counted("a", 1))
				b := api.Put(counted("b", 1))
				api.Put(counted("a", 2))
				api.Delete(b)
				api.Put(counted("c", 1))
				want := tt.want
				if tt.prepare != nil {
					tt.prepare(api)
				}
				start(t, api, queue, watch.Settings{ExactAt: tt.at})
				time.Sleep(time.Minute)
				if last := len(want) - 1; want[last] == "ended now" {
					want[last] = "ended at " + api.Version()
				}
				assert.Equal(t, want, changes(queue))
			})
		})
	}
}

func TestAListAtAVersionThatBreaksOffIsRepeatedThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10000)
		const events = 2001 // one more than a page holds
		for n := range events {
			api.Put(counted(fmt.Sprintf("e%05d", n), 1))
		}
		version := api.Version()
		api.Put(counted("e00000", 2))
		var broken atomic.Bool
		api.Refuse(func(r *http.Request) int {
			if r.URL.Query().Get("continue") != "" && broken.CompareAndSwap(false, true) {
				return http.StatusInternalServerError
			}
			return 0
		})
		start(t, api, queue, watch.Settings{ExactAt: version})
		time.Sleep(time.Minute)
		got := changes(queue)
		assert.Equal(t, []string{"exact", "more", "exact", "more", "watch"}, connections(api))
		assert.Len(t, got, 1+2000+1+events+1+1)
		assert.Equal(t, []string{"existing e02000=1", "ended at " + version, "changed e00000=2"}, got[len(got)-3:])
	})
}

// Pages of large events are bounded in bytes, and the list misses and repeats no event.
func TestPagesOfLargeEventsHaveFewerEvents(t *testing.T) {
	for _, isExact := range []bool{false, true} {
		t.Run(fmt.Sprint("exact: ", isExact), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { listLargeEvents(t, isExact) })
		})
	}
}

func listLargeEvents(t *testing.T, isExact bool) {
	api, queue := apitest.NewInMemory(t), queue.New(10000)
	var want []string
	for n := range 610 {
		ev := counted(fmt.Sprintf("e%05d", n), 1)
		if n < 14 {
			ev.Message = strings.Repeat("m", 512<<10)
		}
		api.Put(ev)
		want = append(want, ev.Name)
	}
	config, first := watch.Settings{}, ""
	if isExact {
		config.ExactAt = api.Version()
		first = " at " + api.Version()
	}
	var requests []string
	api.Refuse(func(r *http.Request) int {
		query := r.URL.Query()
		switch {
		case query.Get("watch") != "", isVersionRequest(r):
		case query.Get("continue") != "":
			requests = append(requests, query.Get("limit")+" more")
		default:
			request := query.Get("limit")
			if query.Get("resourceVersionMatch") == "Exact" {
				request += " at " + query.Get("resourceVersion")
			}
			requests = append(requests, request)
		}
		return 0
	})
	start(t, api, queue, config)
	time.Sleep(time.Minute)
	var got []string
	for _, change := range changes(queue) {
		if _, name, isEvent := strings.Cut(change, " e0"); isEvent {
			got = append(got, "e0"+strings.TrimSuffix(name, "=1"))
		}
	}
	assert.Equal(t, want, got)
	assert.Equal(t, []string{
		"2000" + first, "250" + first, "31" + first, "3" + first, // The first three have more than 4 MiB.
		"6 more", "6 more", "6 more", "12 more", "24 more", "48 more", "96 more", "192 more", "384 more",
	}, requests)
}

func TestAnEventThatIsLargerThanAPageIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10)
		for _, name := range []string{"a", "b", "c"} {
			api.Put(event(name, strings.Repeat("m", 5<<20)))
		}
		start(t, api, queue, watch.Settings{})
		assert.Equal(t, []string{"a", "b", "c"}, takeAll(queue))
	})
}

// The API server takes events whose names have any bytes, and its tokens are JSON: a page may end at each
// of these events.
func TestAListGoesOnAfterNamesThatAreNotUTF8(t *testing.T) {
	for name, tt := range map[string]struct{ names, want []string }{
		"between others":          {[]string{"a", "b\xff1", "b\xff2", "c", "d"}, []string{"a", "b\ufffd1", "c", "d"}},
		"before valid characters": {[]string{"a\x80", "aé", "b"}, []string{"a\ufffd", "b"}},
		"at the end":              {[]string{"a", "\xff\xfe", "\xff\xff"}, []string{"a", "\ufffd"}},
	} {
		for _, namespace := range []string{"", "ns"} {
			t.Run(name+" of "+namespace, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					api, queue := apitest.NewInMemory(t), queue.New(10)
					for _, name := range tt.names {
						api.Put(event(name, strings.Repeat("m", 5<<20)))
					}
					start(t, api, queue, watch.Settings{Namespace: namespace})
					assert.Equal(t, tt.want, takeAll(queue))
				})
			})
		}
	}
}

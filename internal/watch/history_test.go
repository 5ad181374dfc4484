// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func isVersionRequest(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

func number(requests []string, kind string) (n int) {
	for _, r := range requests {
		if r == kind {
			n++
		}
	}
	return n
}

// histories notes how versions went back.
type histories struct {
	mu       sync.Mutex
	wentBack []string
}

func (h *histories) begin(t *testing.T, api *apitest.Server) *watch.History {
	return watch.NewHistory(t.Context(), clientOf(t, api), nil, func(known, now uint64) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.wentBack = append(h.wentBack, fmt.Sprintf("%d to %d", known, now))
	})
}

func (h *histories) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.wentBack)
}

func TestABackupIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue, h := apitest.NewInMemory(t), queue.New(1000), &histories{}
		api.Put(counted("a", 1))
		backup := api.Version()
		history := h.begin(t, api)
		start(t, api, queue, watch.Config{History: history})
		assert.Equal(t, []string{"began", "listed a=1", "ended at 3"}, changes(queue))
		api.Put(counted("a", 2))
		api.Put(counted("b", 1))
		assert.Equal(t, []string{"changed a=2", "changed b=1"}, changes(queue))
		assert.Equal(t, []string{"stream"}, api.Requests(), "a first start asks for no version")

		time.Sleep(time.Minute)
		api.Cut()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"stream", "version", "watch"}, api.Requests())
		assert.Empty(t, changes(queue))
		assert.EqualValues(t, 5, history.Highest())

		api.Restore(backup)
		api.Cut()
		time.Sleep(time.Minute)
		assert.Empty(t, changes(queue), "the callers stop the streams")
		assert.Equal(t, []string{"5 to 3"}, h.seen())

		start(t, api, queue, watch.Config{History: h.begin(t, api)})
		assert.Equal(t, []string{"began", "listed a=1", "ended at 3"}, changes(queue))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"5 to 3"}, h.seen(), "once")
	})
}

func TestAVersionOfACheckpointIsCompared(t *testing.T) {
	for name, tt := range map[string]struct {
		version  string
		changes  []string
		wentBack []string
	}{
		"that exists":             {"3", []string{"changed b=1"}, nil},
		"that does not exist yet": {"9", nil, []string{"9 to 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue, h := apitest.NewInMemory(t), queue.New(1000), &histories{}
				api.Put(counted("a", 1))
				api.Put(counted("b", 1))
				start(t, api, queue, watch.Config{ResourceVersion: tt.version, History: h.begin(t, api)})
				time.Sleep(time.Minute)
				assert.Equal(t, tt.changes, changes(queue))
				assert.Equal(t, tt.wentBack, h.seen())
			})
		})
	}
}

func TestARestoreIsNoticedOnceForAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue, h := apitest.NewInMemory(t), queue.New(1000), &histories{}
		history := h.begin(t, api)
		start(t, api, queue, watch.Config{Namespace: "ns", History: history})
		assert.Equal(t, []string{"ns began", "ns ended at 2"}, changes(queue))
		backup := api.Version()
		api.Put(counted("a", 1))
		assert.Equal(t, []string{"ns changed a=1"}, changes(queue))
		api.Restore(backup)
		time.Sleep(time.Minute)
		assert.Empty(t, h.seen(), "a stream that is connected does not notice")

		for _, namespace := range []string{"other", "third"} {
			start(t, api, queue, watch.Config{Namespace: namespace, ResourceVersion: "3", History: history})
		}
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"3 to 2"}, h.seen())
		assert.Empty(t, changes(queue))
	})
}

func TestAVersionThatCannotBeReadIsAFailedConnection(t *testing.T) {
	for cause, status := range map[watch.Cause]int{
		watch.Unavailable: http.StatusInternalServerError, watch.Unauthorized: http.StatusUnauthorized,
		watch.Forbidden: http.StatusForbidden, watch.Silent: -1,
	} {
		t.Run(string(cause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(1000)
				api.Put(counted("a", 1))
				api.Refuse(func(r *http.Request) int {
					if isVersionRequest(r) {
						return status
					}
					return 0
				})
				o := start(t, api, queue, watch.Config{ResourceVersion: "2", History: watch.NewHistory(t.Context(), clientOf(t, api), nil, nil)})
				time.Sleep(5 * time.Minute)
				assert.Contains(t, o.seen(), cause)
				assert.Zero(t, number(api.Requests(), "watch"))
				api.Refuse(nil)
				time.Sleep(5 * time.Minute)
				assert.Equal(t, []string{"changed a=1"}, changes(queue))
			})
		})
	}
}

func TestAPermissionThatOneNamespaceLacksDoesNotConcernAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(1000)
		api.Put(counted("a", 1))
		api.Refuse(func(r *http.Request) int {
			if strings.Contains(r.URL.Path, "/secret/") {
				return http.StatusForbidden
			}
			return 0
		})
		history := watch.NewHistory(t.Context(), clientOf(t, api), nil, nil)
		start(t, api, queue, watch.Config{Namespace: "secret", ResourceVersion: "2", History: history})
		o := start(t, api, queue, watch.Config{Namespace: "ns", ResourceVersion: "2", History: history})
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"ns changed a=1"}, changes(queue))
		assert.Empty(t, o.seen())
	})
}

// TestAStreamAsksForTheVersionWhereItMayRead: in a tenant's namespaces, another one would be forbidden.
func TestAStreamAsksForTheVersionWhereItMayRead(t *testing.T) {
	for stream, want := range map[string]string{"": "kube-system", "shop": "shop"} {
		synctest.Test(t, func(t *testing.T) {
			api, queue := apitest.NewInMemory(t), queue.New(1000)
			asked := make(chan string, 100)
			api.Refuse(func(r *http.Request) int {
				if isVersionRequest(r) {
					asked <- r.URL.Path
				}
				return 0
			})
			start(t, api, queue, watch.Config{
				Namespace: stream, ResourceVersion: "2", History: watch.NewHistory(t.Context(), clientOf(t, api), nil, nil),
			})
			assert.Equal(t, "/api/v1/namespaces/"+want+"/events", <-asked)
		})
	}
}

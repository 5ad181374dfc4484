// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// TestTheVersionIsThatOfANameInANamespace: without a namespace, etcd reads all events of the cluster for it.
func TestTheVersionIsThatOfANameInANamespace(t *testing.T) {
	for _, namespace := range []string{"", "ns"} {
		synctest.Test(t, func(t *testing.T) {
			api, queue := apitest.NewInMemory(t), queue.New(1000)
			paths := make(chan string, 10)
			api.Refuse(func(r *http.Request) int {
				if isVersionRequest(r) {
					paths <- r.URL.Path
				}
				return 0
			})
			start(t, api, queue, watch.Settings{Namespace: namespace})
			api.Put(counted("a", 1))
			changes(queue)
			time.Sleep(time.Minute)
			api.Cut()
			time.Sleep(time.Minute)
			assert.Equal(t, "/api/v1/namespaces/"+cmp.Or(namespace, "kube-system")+"/events", <-paths)
		})
	}
}

func TestABackupIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(1000)
		api.Put(counted("a", 1))
		backup := api.Version()
		start(t, api, queue, watch.Settings{})
		assert.Equal(t, []string{"began", "listed a=1", "ended at 3"}, changes(queue))
		api.Put(counted("a", 2))
		api.Put(counted("b", 1))
		assert.Equal(t, []string{"changed a=2", "changed b=1"}, changes(queue))
		assert.Equal(t, []string{"list", "watch"}, api.Requests(), "a first start asks for no version")

		time.Sleep(time.Minute)
		api.Cut()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"list", "watch", "version", "watch"}, api.Requests())
		assert.Empty(t, changes(queue))

		api.Restore(backup)
		api.Cut()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"went back", "began", "listed a=1", "ended at 3"}, changes(queue))
		api.Put(counted("a", 2))
		assert.Equal(t, []string{"changed a=2"}, changes(queue))
		api.Cut()
		time.Sleep(time.Minute)
		assert.Empty(t, changes(queue), "from there on, its versions are compared")
	})
}

func TestAVersionOfTheProgressIsCompared(t *testing.T) {
	for name, tt := range map[string]struct {
		config watch.Settings
		want   []string
	}{
		"that exists":             {watch.Settings{ResourceVersion: "3"}, []string{"changed b=1"}},
		"that does not exist yet": {watch.Settings{ResourceVersion: "9"}, []string{"went back", "began", "listed a=1", "listed b=1", "ended at 4"}},
		"of another leader":       {watch.Settings{ExactAt: "9"}, []string{"went back", "began", "listed a=1", "listed b=1", "ended at 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, queue := apitest.NewInMemory(t), queue.New(1000)
				api.Put(counted("a", 1))
				api.Put(counted("b", 1))
				start(t, api, queue, tt.config)
				time.Sleep(time.Minute)
				assert.Equal(t, tt.want, changes(queue))
			})
		})
	}
}

func TestAVersionThatIsNoNumberIsNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches, lists := 0, 0
		answered(t, watch.Settings{ResourceVersion: "5"}, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Has("watch"):
				watches++
			case !isVersionRequest(r):
				lists++
			}
			writeJSON(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"opaque"}}`)
		})
		synctest.Wait()
		assert.Positive(t, watches)
		assert.Zero(t, lists)
	})
}

func TestVersionsAreComparedAfterAListThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(10_000)
		backup := api.Version()
		for n := range 2001 {
			api.Put(counted(fmt.Sprint("e", n), 1))
		}
		api.Refuse(func(r *http.Request) int {
			if r.URL.Query().Has("continue") {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		start(t, api, queue, watch.Settings{})
		assert.Len(t, changes(queue), 2001, "the beginning, and a page")
		api.Restore(backup)
		api.Refuse(nil)
		time.Sleep(time.Minute)
		assert.Contains(t, changes(queue), "went back")
	})
}

func TestAStreamThatCannotCompareVersionsDoesNotConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, queue := apitest.NewInMemory(t), queue.New(1000)
		api.Put(counted("a", 1))
		start(t, api, queue, watch.Settings{})
		assert.Len(t, changes(queue), 3)
		api.Refuse(func(r *http.Request) int {
			if isVersionRequest(r) {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		api.Cut()
		api.Put(counted("b", 1))
		time.Sleep(time.Minute)
		assert.Empty(t, changes(queue))
		assert.Positive(t, number(api.Requests(), "version"))
		api.Refuse(nil)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"changed b=1"}, changes(queue))
	})
}

// connections returns the requests without those for the store's version.
func connections(api *apitest.Server) []string {
	return slices.DeleteFunc(api.Requests(), func(r string) bool { return r == "version" })
}

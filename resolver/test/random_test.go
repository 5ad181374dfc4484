// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// TestAllIsFoundAfterRandomFaults resolves concurrently, for a random time, while the API server
// has random faults. No call waits too long. After the faults, every chain is complete.
func TestAllIsFoundAfterRandomFaults(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			var mu sync.Mutex
			n := func(i int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(i)
			}
			api := apitest.NewObjectsInMemory()
			api.Serve("example.com/v1", "Thing", "things", true)
			var refs []resolver.Reference
			for i := range 1 + n(8) {
				refs = append(refs, crowd(api, fmt.Sprint("n", i), 1+n(200))...)
			}
			for i := range 5 {
				api.Put(numberedThing("Thing", i))
				refs = append(refs, refTo(numberedThing("Thing", i)))
			}
			api.Put(node)
			refs = append(refs, refTo(node), resolver.Reference{Kind: "Node", Name: "n1", UID: "n1"}, resolver.Reference{Kind: "Node", Name: "n1", UID: "x"},
				resolver.Reference{APIVersion: "invented.io/v1", Kind: "Foo", Name: "x", UID: "u"})
			valid := len(refs) - 1
			var ill atomic.Bool
			ill.Store(true)
			r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
				if !ill.Load() {
					sleep(r, time.Millisecond)
					return false
				}
				sleep(r, time.Duration(n(50))*time.Millisecond)
				switch n(20) {
				case 0:
					sleep(r, time.Duration(n(12000))*time.Millisecond)
				case 1:
					w.Header().Set("Retry-After", fmt.Sprint(n(4)))
					http.Error(w, "x", http.StatusTooManyRequests)
					return true
				case 2:
					http.Error(w, "x", http.StatusInternalServerError)
					return true
				case 3:
					http.Error(w, "404 page not found", http.StatusNotFound)
					return true
				case 4:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusGone)
					_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}`)
					return true
				case 5:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","details":{"name":"x"},"code":403}`)
					return true
				}
				return false
			}}, resolver.Settings{CacheSize: []int{1, 10, 1000, 100000}[n(4)], Concurrency: []int{1, 4, 400}[n(3)], CacheTTL: time.Duration(1+n(600)) * time.Second})
			var callers sync.WaitGroup
			for range 1 + n(8) {
				callers.Go(func() {
					for range 1 + n(20) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n(4000))*time.Millisecond)
						from := n(len(refs))
						begun := time.Now()
						r.Resolve(ctx, refs[from:min(len(refs), from+1+n(100))])
						if took := time.Since(begun); took > 2*time.Second {
							t.Errorf("seed %d: %v", seed, took)
						}
						cancel()
						time.Sleep(time.Duration(n(3000)) * time.Millisecond)
					}
				})
			}
			callers.Wait()
			if seed%5 == 4 {
				r.Close()
				return
			}
			ill.Store(false)
			time.Sleep(90 * time.Second)
			r.Resolve(t.Context(), refs)
			time.Sleep(90 * time.Second)
			for i := 0; i < valid; i += 50 {
				r.Resolve(t.Context(), refs[i:min(valid, i+50)])
				for j, chain := range r.Resolve(t.Context(), refs[i:min(valid, i+50)]) {
					require.Equal(t, resolver.ResolutionComplete, chain.Resolution, "seed %d, %v: %s", seed, refs[i+j], text(chain))
				}
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// inMemory returns a resolver for a fake API server without a network, for a synctest bubble.
func inMemory(t *testing.T, api *apitest.Objects, settings resolver.Settings) *resolver.Resolver {
	r, err := resolver.New(&rest.Config{Host: "http://api", QPS: -1, Transport: api}, settings)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// application puts a Deployment with two ReplicaSets and ten pods of the second into a namespace.
func application(api *apitest.Objects, namespace string) []resolver.Reference {
	at := func(kind, apiVersion, name string, owners ...metav1.OwnerReference) apitest.Object {
		return apitest.Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: namespace + "/" + kind + "/" + name, Owners: owners}
	}
	deployment := at("Deployment", "apps/v1", "web")
	old := at("ReplicaSet", "apps/v1", "web-1", apitest.OwnedBy(deployment, true))
	replicaSet := at("ReplicaSet", "apps/v1", "web-2", apitest.OwnedBy(deployment, true))
	api.Put(deployment, old, replicaSet)
	var refs []resolver.Reference
	for i := range 10 {
		pod := at("Pod", "v1", fmt.Sprint("web-2-", i), apitest.OwnedBy(replicaSet, true))
		api.Put(pod)
		refs = append(refs, refTo(pod))
	}
	return refs
}

// TestAnyNumberOfNamespaces resolves events of pods in many namespaces with a cold resolver and the
// default timeout of 2 s, at 1,000 events per second.
func TestAnyNumberOfNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces, perNamespace int // events of each namespace, each of another pod
		delay                    time.Duration
		batch                    int
	}{
		"10 namespaces, near":                               {10, 10, time.Millisecond, 100},
		"1,000 namespaces, near":                            {1000, 10, time.Millisecond, 100},
		"1,000 namespaces, 50 ms away":                      {1000, 10, 50 * time.Millisecond, 100},
		"1,000 namespaces, 50 ms away, full batches":        {1000, 10, 50 * time.Millisecond, 500},
		"1,000 namespaces, 50 ms away, one event of each":   {1000, 1, 50 * time.Millisecond, 1000},
		"1,000 namespaces, 50 ms away, one event at a time": {1000, 2, 50 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Delay = test.delay
				var events []resolver.Reference
				if test.namespaces > 10 {
					test.namespaces = memorytest.Sized(test.namespaces, 100)
				}
				for i := range test.namespaces {
					pods := application(api, fmt.Sprintf("namespace-%04d", i))
					events = append(events, pods[:test.perNamespace]...)
				}
				rand.New(rand.NewPCG(1, 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
				r := inMemory(t, api, resolver.Settings{})
				for i := 0; i < len(events); i += test.batch {
					requireComplete(t, r.Resolve(t.Context(), events[i:min(len(events), i+test.batch)]))
				}
				needed := len(events) + 2*test.namespaces
				require.LessOrEqual(t, len(api.Seen()), 4*test.namespaces+20, "requests")
				require.LessOrEqual(t, api.Read(), 5*needed, "objects, of which %d are needed", needed)
			})
		})
	}
}

// A list of 20,000 pods takes 40 pages of 50 ms, as long as callers wait.
func TestALargeNamespace(t *testing.T) {
	for name, needed := range map[string]int{"a few": 10, "a full batch": 500} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Delay = 50 * time.Millisecond
				needed := memorytest.Sized(needed, needed/5)
				pods := crowd(api, "shop", memorytest.Sized(20_000, 4_000))
				pods = pods[len(pods)-needed:]
				r := inMemory(t, api, resolver.Settings{})
				r.Resolve(t.Context(), pods)
				requireComplete(t, r.Resolve(t.Context(), pods))
			})
		})
	}
}

// Of a large namespace, one pod after the other is needed, until a list is worth it for those that
// will be needed later. Its 10 pages take 3 s, longer than callers wait.
func TestAListForLaterHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = 300 * time.Millisecond
		pods := crowd(api, "shop", 5000)
		r := inMemory(t, api, resolver.Settings{})
		for i := range 1100 {
			last := len(pods) - i
			requireComplete(t, r.Resolve(t.Context(), pods[last-1:last]))
		}
		pages := 0
		for _, path := range api.Seen() {
			if strings.HasSuffix(path, "/pods?list") {
				pages++
			}
		}
		require.GreaterOrEqual(t, pages, 10, "a list was read")
	})
}

// withCustomOwners puts pods whose owners are custom resources.
func withCustomOwners(api *apitest.Objects, n int) (pods []resolver.Reference, paths []string) {
	api.Serve("example.com/v1", "Thing", "things", true, "get")
	for i := range n {
		thing := apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "custom", Name: fmt.Sprint("t", i), UID: fmt.Sprint("t", i)}
		pod := apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: "custom", Name: fmt.Sprint("p", i), UID: fmt.Sprint("p", i),
			Owners: []metav1.OwnerReference{apitest.OwnedBy(thing, true)},
		}
		api.Put(thing, pod)
		pods, paths = append(pods, refTo(pod)), append(paths, api.Path(thing))
	}
	return pods, paths
}

func TestAKindThatHangsOrFails(t *testing.T) {
	for name, test := range map[string]struct {
		fault      apitest.Fault
		resolution resolver.Resolution
		shownAfter time.Duration
	}{
		"it hangs": {apitest.Fault{Hang: make(chan struct{})}, resolver.ResolutionTimeout, 2 * time.Second},
		"it fails": {apitest.Fault{Status: http.StatusInternalServerError}, resolver.ResolutionUnavailable, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Delay = time.Millisecond
				pods, things := withCustomOwners(api, 100)
				hang := make(chan struct{})
				if test.fault.Hang != nil {
					test.fault.Hang = hang
				}
				for _, path := range things {
					api.Fail(path, test.fault)
				}
				api.Put(node)
				healthy := crowd(api, "shop", 100)
				r := inMemory(t, api, resolver.Settings{})
				requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node)}))

				begun := time.Now()
				for _, chain := range r.Resolve(t.Context(), append(healthy[:50:50], pods[:50]...))[50:] {
					require.Equal(t, test.resolution, chain.Resolution)
				}
				require.LessOrEqual(t, time.Since(begun), test.shownAfter, "a kind that hangs costs one batch its lookup_timeout")
				time.Sleep(10 * time.Millisecond)
				sent := countThings(api)
				require.LessOrEqual(t, sent, 100, "the slots of one kind")

				begun = time.Now()
				chains := r.Resolve(t.Context(), append(healthy[50:], pods...))
				requireComplete(t, chains[:50])
				for _, chain := range chains[50:] {
					require.Equal(t, test.resolution, chain.Resolution)
				}
				require.Less(t, time.Since(begun), 100*time.Millisecond, "it is answered immediately")
				require.Zero(t, countThings(api))

				time.Sleep(5 * time.Second)
				begun = time.Now()
				r.Resolve(t.Context(), pods)
				require.Less(t, time.Since(begun), 100*time.Millisecond)
				time.Sleep(time.Second)
				require.Equal(t, 1, countThings(api), "one request shows whether the kind works again")

				for _, path := range things {
					api.Heal(path)
				}
				close(hang)
				time.Sleep(15 * time.Second)
				r.Resolve(t.Context(), pods)
				time.Sleep(time.Second)
				requireComplete(t, r.Resolve(t.Context(), pods))
			})
		})
	}
}

// On a busy machine, the first answers about a kind can take long. A cold start costs no event its
// owners, as long as they come in time.
func TestAKindThatIsSlowAtItsFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 50)
		api.Put(node)
		hang := make(chan struct{})
		for _, path := range things {
			api.Fail(path, apitest.Fault{Hang: hang, Times: 1})
		}
		time.AfterFunc(1500*time.Millisecond, func() { close(hang) })
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), append(pods, refTo(node))))
	})
}

func TestSeveralKindsHangAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 10)
		api.Put(node)
		r := inMemory(t, api, resolver.Settings{})
		hang := make(chan struct{})
		defer close(hang)
		for _, path := range append(things, "/api/v1/nodes/"+node.Name) {
			api.Fail(path, apitest.Fault{Hang: hang})
		}
		for _, atMost := range []time.Duration{2 * time.Second, 10 * time.Millisecond, 10 * time.Millisecond} {
			begun := time.Now()
			for _, chain := range r.Resolve(t.Context(), append(pods, refTo(node))) {
				require.Equal(t, resolver.ResolutionTimeout, chain.Resolution)
			}
			require.LessOrEqual(t, time.Since(begun), atMost, "they cost one batch its lookup_timeout, all together")
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// An object may be unreadable alone, for example because its conversion fails. The others of its
// kind are read again soon, also if none of them was read before.
func TestOneUnreadableObjectDoesNotCutOffItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods, things := withCustomOwners(api, 2)
		api.Fail(things[0], apitest.Fault{Status: http.StatusInternalServerError})
		r := inMemory(t, api, resolver.Settings{})
		for range 3 {
			require.Equal(t, resolver.ResolutionUnavailable, r.Resolve(t.Context(), pods[:1])[0].Resolution)
			time.Sleep(6 * time.Second)
		}
		for range 3 { // Somebody goes on asking for the unreadable one.
			r.Resolve(t.Context(), pods[:1])
			r.Resolve(t.Context(), pods[1:])
			time.Sleep(6 * time.Second)
		}
		requireComplete(t, r.Resolve(t.Context(), pods[1:]))
	})
}

// While the API server as a whole is slow, no kind is given up.
func TestAnAPIServerThatIsSlowForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods, _ := withCustomOwners(api, 100)
		api.Put(node)
		healthy := crowd(api, "shop", 100)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), append(healthy[:10], refTo(node))))
		synctest.Wait()
		api.SetDelay(400 * time.Millisecond)
		requireComplete(t, r.Resolve(t.Context(), append(healthy, pods...)))
	})
}

// countThings returns how many requests for Things there were since the last call of it.
func countThings(api *apitest.Objects) (n int) {
	for _, path := range api.Seen() {
		n += strings.Count(path, "/things/")
	}
	return n
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 4)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1, Times: 1})
		}
		healthy := crowd(api, "shop", 40)
		r := inMemory(t, api, resolver.Settings{Concurrency: 1})
		done := make(chan []resolver.Chain, 1)
		begun := time.Now()
		go func() { done <- r.Resolve(t.Context(), pods[:1]) }()
		time.Sleep(100 * time.Millisecond)
		requireComplete(t, r.Resolve(t.Context(), healthy))
		require.Less(t, time.Since(begun), 500*time.Millisecond)
		requireComplete(t, <-done)
		require.GreaterOrEqual(t, time.Since(begun), time.Second)
	})
}

// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestFailures(t *testing.T) {
	tests := []struct {
		name       string
		fault      apitest.Fault
		resolution resolver.Resolution
		requests   int
		remembered time.Duration
	}{
		{"it is not there", apitest.Fault{Status: http.StatusNotFound}, resolver.ResolutionNotFound, 2, time.Minute}, // first in the watch cache, and then with a consistent read
		{"it may not be read", apitest.Fault{Status: http.StatusForbidden}, resolver.ResolutionForbidden, 1, time.Minute},
		{"the token is not accepted", apitest.Fault{Status: http.StatusUnauthorized}, resolver.ResolutionUnavailable, 1, 5 * time.Second},
		{"the API server is ill", apitest.Fault{Status: http.StatusInternalServerError}, resolver.ResolutionUnavailable, 1, 5 * time.Second},
		{"what the API server asks is too slow", apitest.Fault{Status: http.StatusGatewayTimeout}, resolver.ResolutionTimeout, 1, time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(pod, replicaSet, deployment)
			clock, observed := newClock(), &observed{}
			r := newResolver(t, api, resolver.Settings{Now: clock.Now, Observer: observed})
			api.Fail(api.Path(replicaSet), test.fault)
			want := "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1: " + string(test.resolution)

			require.Equal(t, want, text(resolve(t, r, refTo(pod))))
			results, hits := observed.counts()
			require.Equal(t, test.requests, results[string(test.resolution)], "the request is counted by its result")
			require.Equal(t, 3, results["found"], "so are two discovery documents and the pod")
			require.Zero(t, hits)
			if test.resolution == resolver.ResolutionForbidden {
				require.Equal(t, []string{"get replicasets.apps in shop"}, observed.refused)
			} else {
				require.Empty(t, observed.refused)
			}

			api.Heal(api.Path(replicaSet))
			api.Seen()
			clock.pass(test.remembered - time.Millisecond)
			require.Equal(t, want, text(resolve(t, r, refTo(pod))), "remembered")
			require.Empty(t, api.Seen())
			_, hits = observed.counts()
			require.Equal(t, 2, hits)

			clock.pass(time.Millisecond)
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(pod)).Resolution, "requested again")
		})
	}
}

// Only what does not exist yet is looked up again soon.
func TestANodeThatMayNotBeRead(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	api.Put(node)
	api.Fail(api.Path(node), apitest.Fault{Status: http.StatusForbidden})
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	require.Equal(t, resolver.ResolutionForbidden, resolve(t, r, refTo(node)).Resolution)
	api.Heal(api.Path(node))
	clock.pass(time.Minute - time.Millisecond)
	require.Equal(t, resolver.ResolutionForbidden, resolve(t, r, refTo(node)).Resolution)
	clock.pass(time.Millisecond)
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(node)).Resolution)
}

// A failure answers all that wait for it, also those that came after the request was sent.
func TestAFailureAnswersAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, hang := apitest.NewObjectsInMemory(), make(chan struct{})
		api.Put(deployment)
		api.Fail(api.Path(deployment), apitest.Fault{Hang: hang, Status: http.StatusInternalServerError})
		r := inMemory(t, api, resolver.Settings{})
		var callers sync.WaitGroup
		for _, uid := range []string{deployment.UID, "d2"} {
			callers.Go(func() {
				require.Equal(t, resolver.ResolutionUnavailable, resolve(t, r, refTo(withUID(deployment, uid))).Resolution)
			})
			time.Sleep(10 * time.Millisecond)
		}
		close(hang)
		callers.Wait()
		require.Equal(t, []string{api.Path(deployment)}, api.SeenObjects())
	})
}

func TestAnAPIServerThatIsAway(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Settings{})
	api.Close()
	require.Equal(t, "Pod/shop/fe-1-a=p1: unavailable", text(resolve(t, r, refTo(pod))))
}

func TestDiscoveryThatFails(t *testing.T) {
	tests := []struct {
		name       string
		status     int
		resolution resolver.Resolution
		remembered time.Duration
	}{
		{"forbidden", http.StatusForbidden, resolver.ResolutionForbidden, time.Minute},
		{"unavailable", http.StatusInternalServerError, resolver.ResolutionUnavailable, 5 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(pod, replicaSet, deployment)
			api.Fail("/apis", apitest.Fault{Status: test.status})
			clock := newClock()
			r := newResolver(t, api, resolver.Settings{Now: clock.Now})
			want := "Pod/shop/fe-1-a=p1: " + string(test.resolution)
			require.Equal(t, want, text(resolve(t, r, refTo(pod))))

			api.Heal("/apis")
			clock.pass(test.remembered - time.Millisecond)
			require.Equal(t, want, text(resolve(t, r, refTo(pod))))
			clock.pass(time.Millisecond)
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(pod)).Resolution)
		})
	}
}

func TestLookupTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Put(pod, replicaSet, deployment)
		r := inMemory(t, api, resolver.Settings{})
		release := api.Hang(t, api.Path(replicaSet))

		const short = "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1: timeout"
		require.Equal(t, short, text(resolve(t, r, refTo(pod))), "what was found in time is there")
		api.Seen()
		begun := time.Now()
		require.Equal(t, short, text(resolve(t, r, refTo(pod))), "no second wait")
		require.Zero(t, time.Since(begun))

		release()
		synctest.Wait()
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(pod)).Resolution, "the answer that came late is used, although 5 s have not passed")
		require.Equal(t, []string{api.Path(deployment)}, api.SeenObjects(), "without asking again")
	})
}

func TestATimeoutIsRememberedForFiveSeconds(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	clock := newClock()
	r := newResolver(t, api, resolver.Settings{LookupTimeout: 100 * time.Millisecond, Now: clock.Now})
	api.Hang(t, "/apis")
	require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(deployment)).Resolution)
	api.Heal("/apis")
	clock.pass(5*time.Second - time.Millisecond)
	require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(deployment)).Resolution)
	require.Equal(t, []string{"/api", "/apis"}, api.Seen(), "the request that hangs is not repeated")
}

func TestAListIsReadToItsEndWhenItsCallersHaveLeft(t *testing.T) {
	api := apitest.NewObjects(t)
	pods := crowd(api, "shop", 1200)
	const list = "/api/v1/pods?list"
	r := newResolver(t, api, resolver.Settings{})
	release := api.Hang(t, list)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []resolver.Chain)
	go func() { done <- r.Resolve(ctx, pods) }()
	api.AwaitRequest(t, list)
	cancel()
	<-done
	release()
	require.Eventually(t, func() bool { return r.Len() == len(pods) }, time.Minute, time.Millisecond)
	require.Equal(t, []string{list, list, list, list}, podRequests(api), "a short page, and three of 500")
}

func TestOneObjectThatHangsDoesNotUseUpTheTimeOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Put(pod, replicaSet, deployment, node)
		r := inMemory(t, api, resolver.Settings{})
		defer api.Hang(t, api.Path(node))()
		chains := r.Resolve(t.Context(), []resolver.Reference{refTo(node), refTo(pod)})
		require.Equal(t, "Node/n1=8f3c: timeout", text(chains[0]))
		require.Equal(t, resolver.ResolutionComplete, chains[1].Resolution)
	})
}

// One object of a kind hangs, and the others answer. Its Events keep coming. A batch waits for it
// once per 1, 2, 4, … 60 s, also while the request of an earlier batch still hangs.
func TestAnObjectThatHangsCostsFewBatchesTheirTime(t *testing.T) {
	for name, test := range map[string]struct {
		hanging    apitest.Object
		isKnown    bool // and its refresh hangs
		resolution resolver.Resolution
	}{
		"a custom resource":              {numberedThing("Thing", 0), false, resolver.ResolutionTimeout},
		"a Node":                         {node, false, resolver.ResolutionTimeout},
		"an object that was read before": {numberedThing("Thing", 0), true, resolver.ResolutionComplete},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Delay = time.Millisecond
				api.Serve("example.com/v1", "Thing", "things", true, "get")
				api.Put(test.hanging)
				api.Fail("/api/v1/nodes?list", apitest.Fault{Status: http.StatusForbidden})
				r := inMemory(t, api, resolver.Settings{CacheTTL: time.Minute})
				if test.isKnown {
					resolve(t, r, refTo(test.hanging))
					time.Sleep(time.Minute)
				}
				hang := api.Hang(t, api.Path(test.hanging))
				var waited []int // the batches that waited
				for i := range 200 {
					other := test.hanging
					other.Name, other.UID = fmt.Sprint("other-", i), fmt.Sprint("other-", i)
					api.Put(other)
					begun := time.Now()
					chains := r.Resolve(t.Context(), []resolver.Reference{refTo(test.hanging), refTo(other)})
					require.Equal(t, test.resolution, chains[0].Resolution)
					require.Equal(t, resolver.ResolutionComplete, chains[1].Resolution)
					if time.Since(begun) > 100*time.Millisecond {
						waited = append(waited, i)
					}
					time.Sleep(3*time.Second - time.Since(begun))
				}
				require.LessOrEqual(t, len(waited), 7+9, "after 1, 2, 4, … s, then once a minute: %v", waited)
				require.GreaterOrEqual(t, len(waited), 7+7, "it is looked up again: %v", waited)
				hang()
				time.Sleep(time.Minute)
				require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(test.hanging)).Resolution)
			})
		})
	}
}

// Callers that wait for the same object at the same time count as one.
func TestManyLookupsOfAnObjectThatHangsAreOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		hanging, healthy := numberedThing("Thing", 0), numberedThing("Thing", 1)
		api.Put(hanging, healthy)
		api.Hang(t, api.Path(hanging))
		r := inMemory(t, api, resolver.Settings{})
		r.Resolve(t.Context(), append(slices.Repeat([]resolver.Reference{refTo(hanging)}, 20), refTo(healthy)))

		begun := time.Now()
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(hanging)).Resolution)
		require.Zero(t, time.Since(begun), "it is remembered")
		time.Sleep(time.Second)
		begun = time.Now()
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(hanging)).Resolution)
		require.NotZero(t, time.Since(begun), "for a second")
	})
}

func TestACallerThatLeavesProvesNothing(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	clock := newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	release := api.Hang(t, api.Path(deployment))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []resolver.Chain)
	go func() { done <- r.Resolve(ctx, []resolver.Reference{refTo(deployment)}) }()
	api.AwaitRequest(t, api.Path(deployment))
	cancel()
	require.Equal(t, resolver.ResolutionTimeout, (<-done)[0].Resolution)
	release()
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution, "it is not taken for timed out")
}

// The same while the documents of all kinds are read.
func TestACallerThatLeavesDiscoveryProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Put(deployment)
		r := inMemory(t, api, resolver.Settings{})
		release := api.Hang(t, "/apis")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, resolver.ResolutionTimeout, r.Resolve(ctx, []resolver.Reference{refTo(deployment)})[0].Resolution)
		time.AfterFunc(time.Second, release)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution)
	})
}

func TestClose(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment, node)
	observed := &observed{}
	r := newResolver(t, api, resolver.Settings{Observer: observed})
	resolve(t, r, refTo(pod))
	observed.counts()
	api.Hang(t, api.Path(node))

	done := make(chan resolver.Chain)
	go func() { done <- r.Resolve(t.Context(), []resolver.Reference{refTo(node)})[0] }()
	api.AwaitRequest(t, api.Path(node))
	r.Close()
	require.Equal(t, resolver.ResolutionUnavailable, (<-done).Resolution, "who waits is let go")
	results, _ := observed.counts()
	require.Empty(t, results, "a request that Close ended shows nothing")
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(pod)).Resolution, "what is known stays known")
	require.Equal(t, resolver.ResolutionUnavailable, resolve(t, r, refTo(node)).Resolution)
	r.Close()
}

func TestBadConfigurations(t *testing.T) {
	api := apitest.NewObjects(t)
	_, err := resolver.New(nil, resolver.Settings{})
	require.ErrorContains(t, err, "API server")
	for field, settings := range map[string]resolver.Settings{
		"MaxDepth":      {MaxDepth: -1},
		"LookupTimeout": {LookupTimeout: -1},
		"CacheSize":     {CacheSize: -1},
		"CacheTTL":      {CacheTTL: -1},
		"Concurrency":   {Concurrency: -1},
	} {
		_, err := resolver.New(api.RESTConfig(), settings)
		require.ErrorContains(t, err, field)
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

const ttl = 10 * time.Minute

func TestWhatIsKnownIsServedForTheTTL(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment)
	clock, observed := newClock(), &observed{}
	r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: ttl, Trim: keepLabels, Observer: observed})
	resolve(t, r, refTo(pod))
	api.Seen()

	changed := deployment
	changed.Labels = map[string]string{"tilt-manifest": "new"}
	api.Put(changed)
	clock.pass(ttl - time.Millisecond)
	observed.counts()
	require.Equal(t, "fe", resolve(t, r, refTo(pod)).End().Labels["tilt-manifest"])
	require.Empty(t, api.Seen())
	results, hits := observed.counts()
	require.Empty(t, results)
	require.Equal(t, 3, hits, "one for each object")

	clock.pass(time.Millisecond)
	require.Equal(t, "new", resolve(t, r, refTo(pod)).End().Labels["tilt-manifest"], "it is refreshed on the next use")
	require.Len(t, api.Seen(), 3, "with one request for each object and none for discovery")
}

func TestDeletedObjects(t *testing.T) {
	const whole = "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete"
	begin := func(t *testing.T) (*apitest.Objects, *clock, *resolver.Resolver) {
		api, clock := apitest.NewObjects(t), newClock()
		api.Put(pod, replicaSet, deployment)
		r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: ttl})
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		api.Remove(pod, replicaSet, deployment)
		api.Seen()
		return api, clock, r
	}

	t.Run("a chain stays known as long as it is used", func(t *testing.T) {
		_, clock, r := begin(t)
		for range 5 {
			clock.pass(ttl - time.Second)
			require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		}
	})
	t.Run("a deleted object is requested once a minute", func(t *testing.T) {
		api, clock, r := begin(t)
		clock.pass(ttl)
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		require.Len(t, api.SeenObjects(), 3*2, "each in the API server's cache first")
		clock.pass(time.Minute - time.Millisecond)
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		require.Empty(t, api.Seen())
		clock.pass(time.Millisecond)
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		require.Len(t, api.SeenObjects(), 3*2, "each in the API server's cache first")
	})
	t.Run("it is forgotten when it was not used for the TTL", func(t *testing.T) {
		_, clock, r := begin(t)
		clock.pass(ttl)
		resolve(t, r, refTo(pod))
		clock.pass(ttl + time.Millisecond)
		require.Equal(t, "Pod/shop/fe-1-a=p1: not_found", text(resolve(t, r, refTo(pod))))
	})
	t.Run("it is forgotten when it was not used for the TTL before it was found gone", func(t *testing.T) {
		_, clock, r := begin(t)
		clock.pass(ttl + time.Millisecond)
		require.Equal(t, "Pod/shop/fe-1-a=p1: not_found", text(resolve(t, r, refTo(pod))))
	})
	t.Run("it stays known when its kind is gone as well", func(t *testing.T) {
		api, clock, r := begin(t)
		api.Unserve("v1", "Pod")
		clock.pass(ttl)
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
		clock.pass(time.Minute)
		require.Equal(t, whole, text(resolve(t, r, refTo(pod))))
	})
}

func TestARefreshThatFails(t *testing.T) {
	tests := []struct {
		name       string
		status     int
		remembered time.Duration
	}{
		{"unavailable", http.StatusInternalServerError, 5 * time.Second},
		{"timeout", http.StatusGatewayTimeout, time.Second},
		{"forbidden", http.StatusForbidden, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api, clock := apitest.NewObjects(t), newClock()
			api.Put(deployment)
			r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: ttl})
			resolve(t, r, refTo(deployment))
			api.Fail(api.Path(deployment), apitest.Fault{Status: test.status})
			clock.pass(5 * ttl)
			api.Seen()

			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution, "the known object stays")
			require.Len(t, api.Seen(), 1)
			clock.pass(test.remembered - time.Millisecond)
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution)
			require.Empty(t, api.Seen())
			clock.pass(time.Millisecond)
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution)
			require.Len(t, api.Seen(), 1)
		})
	}
}

func TestReusedNames(t *testing.T) {
	oldSet := apitest.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "web", UID: "s1"}
	newSet := withUID(oldSet, "s2")
	oldPod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "p1"}
	oldPod = withOwners(oldPod, apitest.OwnedBy(oldSet, true))
	newPod := withOwners(withUID(oldPod, "p2"), apitest.OwnedBy(newSet, true))
	const (
		oldChain = "Pod/shop/web-0=p1 < StatefulSet.apps/shop/web=s1: complete"
		newChain = "Pod/shop/web-0=p2 < StatefulSet.apps/shop/web=s2: complete"
	)

	api, clock := apitest.NewObjects(t), newClock()
	api.Put(oldSet, oldPod)
	r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: ttl})
	require.Equal(t, oldChain, text(resolve(t, r, refTo(oldPod))))
	clock.pass(time.Second)
	api.Put(newSet, newPod)
	require.Equal(t, newChain, text(resolve(t, r, refTo(newPod))))
	clock.pass(time.Second)

	require.Equal(t, oldChain, text(resolve(t, r, refTo(oldPod))), "the old one stays known")
	require.Equal(t, newChain, text(resolve(t, r, refTo(newPod))), "in addition to the new one")
	noUID := refTo(newPod)
	noUID.UID = ""
	require.Equal(t, newChain, text(resolve(t, r, noUID)), "a reference without a UID means the new one")

	clock.pass(ttl - time.Second)
	require.Equal(t, oldChain, text(resolve(t, r, refTo(oldPod))), "after a refresh that found the new one")
	require.Equal(t, newChain, text(resolve(t, r, noUID)))

	unknown := refTo(withUID(oldPod, "p0"))
	require.Equal(t, "Pod/shop/web-0=p0: not_found", text(resolve(t, r, unknown)))
}

func TestANameThatIsUsedAgainAfterItWasNotFound(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Settings{})
	require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, refTo(withUID(deployment, "d0"))).Resolution)
	api.Put(deployment)
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution, "a new UID is requested")
}

func TestARecreatedNode(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	api.Put(node)
	r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: ttl})
	ref := resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}
	require.Equal(t, "Node/n1=8f3c: complete", text(resolve(t, r, ref)))
	old := refTo(node)
	require.Equal(t, "Node/n1=8f3c: complete", text(resolve(t, r, old)))
	api.Put(withUID(node, "9a4d"))
	require.Equal(t, "Node/n1=9a4d: complete", text(resolve(t, r, refTo(withUID(node, "9a4d")))), "a new UID is looked up at once")
	require.Equal(t, "Node/n1=9a4d: complete", text(resolve(t, r, ref)))
	api.Put(withUID(node, "7c1e"))
	clock.pass(ttl)
	require.Equal(t, "Node/n1=7c1e: complete", text(resolve(t, r, ref)))
	require.Equal(t, "Node/n1=7c1e: complete", text(resolve(t, r, old)), "whatever UID the reference has")
	api.Seen()
	require.Equal(t, "Node/n1=7c1e: complete", text(resolve(t, r, refTo(withUID(node, "0000")))))
	require.Equal(t, "Node/n1=7c1e: complete", text(resolve(t, r, refTo(withUID(node, "0000")))))
	require.Len(t, api.Seen(), 2, "a UID that was never seen is looked up once: in the API server's cache, and consistently")
}

func TestTheCacheIsBounded(t *testing.T) {
	const size = 10
	deploymentNamed := func(i int) apitest.Object {
		return apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("d", i), UID: fmt.Sprint("u", i)}
	}
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Settings{CacheSize: size})
	for i := range 5 * size {
		if i%2 == 0 { // The others are not found.
			api.Put(deploymentNamed(i))
		}
		resolve(t, r, refTo(deploymentNamed(i)))
		resolve(t, r, refTo(deploymentNamed(0)))
		require.LessOrEqual(t, r.Len(), size)
	}
	require.Equal(t, size, r.Len())
	api.Seen()
	resolve(t, r, refTo(deploymentNamed(0)))
	require.Empty(t, api.Seen(), "what is used stays")
	resolve(t, r, refTo(deploymentNamed(2)))
	require.Len(t, api.Seen(), 1, "what was not used for longest has gone")
}

func TestMoreObjectsAtOnceThanTheCacheHolds(t *testing.T) {
	api := apitest.NewObjects(t)
	pods := crowd(api, "shop", 100)
	r := newResolver(t, api, resolver.Settings{CacheSize: 3})
	for i, chain := range r.Resolve(t.Context(), pods) {
		require.Equal(t, resolver.ResolutionComplete, chain.Resolution)
		require.Equal(t, pods[i].Name, chain.Objects[0].Name)
		require.Len(t, chain.Objects, 3)
	}
	require.Equal(t, 3, r.Len())
}

func keepLabels(meta *metav1.PartialObjectMetadata) { meta.Annotations = nil }

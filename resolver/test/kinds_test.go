// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

var thing = apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: "t", UID: "t1"}

func TestTheDocumentsOfAllKindsAreReadOnce(t *testing.T) {
	for name, ref := range map[string]resolver.Reference{
		"a version that is served":                       refTo(deployment),
		"a version that is not served":                   {APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
		"a group that another took over from":            {APIVersion: "extensions/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
		"a kind of core, without an API version":         {Kind: "Node", Name: "n1"},
		"a kind of another group without an API version": {Kind: "Deployment", Namespace: "shop", Name: "fe"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(deployment, node)
			r := newResolver(t, api, resolver.Settings{})
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, ref).Resolution)
			require.Equal(t, []string{"/api", "/apis"}, api.Seen()[:2])
			resolve(t, r, refTo(node))
			ref.Name = "other"
			resolve(t, r, ref)
			require.NotContains(t, api.Seen(), "/apis")
		})
	}
}

// Nobody validates the kinds in events: they must not cost a request each.
func TestReferencesToInventedGroupsCostNoRequest(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	invent := func(n int) {
		refs := make([]resolver.Reference, 100)
		for i := range refs {
			refs[i] = resolver.Reference{APIVersion: fmt.Sprintf("invented%d.example.com/v1", n*100+i), Kind: "Thing", Namespace: "shop", Name: "t"}
		}
		for _, chain := range r.Resolve(t.Context(), refs) {
			require.Equal(t, resolver.ResolutionNotFound, chain.Resolution)
		}
	}
	invent(0)
	invent(1)
	require.Equal(t, []string{"/api", "/apis"}, api.Seen(), "within a second")
	for n := range 60 {
		clock.pass(time.Second)
		invent(2 + n)
	}
	require.LessOrEqual(t, len(api.Seen()), 2*(10+6), "in a minute: ten reads, and then one every 10 s")
	for n := range 60 {
		clock.pass(time.Second)
		invent(62 + n)
	}
	require.LessOrEqual(t, len(api.Seen()), 2*6, "in the next minute")
}

// An operator installs its CRDs, and their first events come at once.
func TestCRDsThatAppearOneAfterTheOther(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	for i := range 10 {
		clock.pass(time.Second)
		kind := fmt.Sprint("Kind", i)
		api.Serve("example.com/v1", kind, strings.ToLower(kind)+"s", true)
		o := apitest.Object{APIVersion: "example.com/v1", Kind: kind, Namespace: "shop", Name: "o", UID: kind}
		api.Put(o)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(o)).Resolution)
	}
}

func TestACRDThatAppearsLater(t *testing.T) {
	for name, ref := range map[string]resolver.Reference{
		"with an API version":    refTo(thing),
		"without an API version": {Kind: "Thing", Namespace: "shop", Name: "t", UID: "t1"},
	} {
		t.Run(name, func(t *testing.T) {
			api, clock := apitest.NewObjects(t), newClock()
			r := newResolver(t, api, resolver.Settings{Now: clock.Now})
			require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, ref).Resolution)
			api.Seen()
			api.Serve("example.com/v1", "Thing", "things", true)
			api.Put(thing)
			require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, ref).Resolution)
			require.Empty(t, api.Seen(), "that it is not served is believed for a while")
			clock.pass(time.Second)
			require.Equal(t, resolver.ResolutionComplete, resolve(t, r, ref).Resolution)
		})
	}
}

func TestACRDThatIsReplaced(t *testing.T) {
	tests := []struct {
		name       string
		apiVersion string
		namespaced bool
		want       string
	}{
		{"by one of another version", "example.com/v2", true, "Thing.example.com/shop/u=u1: complete"},
		{"by one of another scope", "example.com/v1", false, "Thing.example.com/u=u1: complete"},
	}
	for _, test := range tests {
		for _, ref := range []resolver.Reference{
			{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: "u"},
			{Kind: "Thing", Namespace: "shop", Name: "u"},
		} {
			t.Run(test.name, func(t *testing.T) {
				api := apitest.NewObjects(t)
				api.Serve("example.com/v1", "Thing", "things", true)
				api.Put(thing)
				r := newResolver(t, api, resolver.Settings{})
				first := ref
				first.Name = thing.Name
				require.Equal(t, resolver.ResolutionComplete, resolve(t, r, first).Resolution)

				api.Unserve("example.com/v1", "Thing")
				api.Serve(test.apiVersion, "Thing", "things", test.namespaced)
				other := apitest.Object{APIVersion: test.apiVersion, Kind: "Thing", Name: "u", UID: "u1"}
				if test.namespaced {
					other.Namespace = "shop"
				}
				api.Put(other)
				require.Equal(t, test.want, text(resolve(t, r, ref)), "it is noticed at once")
			})
		}
	}
}

// All ten are looked up before the first list is sent, as the clock of the test stands still.
func TestACRDThatIsReplacedIsNoticedByLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true)
		api.Put(thing)
		r := inMemory(t, api, resolver.Settings{})
		resolve(t, r, refTo(thing))
		api.Unserve("example.com/v1", "Thing")
		api.Serve("example.com/v2", "Thing", "things", true)
		var refs []resolver.Reference
		for i := range 10 {
			o := apitest.Object{APIVersion: "example.com/v2", Kind: "Thing", Namespace: "shop", Name: fmt.Sprint("t", i), UID: fmt.Sprint("u", i)}
			api.Put(o)
			ref := refTo(o)
			ref.APIVersion = "example.com/v1"
			refs = append(refs, ref)
		}
		api.Seen()
		requireComplete(t, r.Resolve(t.Context(), refs))
		require.Equal(t, []string{
			"/apis/example.com/v1/namespaces/shop/things?list",
			"/api",
			"/apis",
			"/apis/example.com/v2/namespaces/shop/things?list",
		}, api.Seen())
	})
}

func TestACRDThatGoes(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	api.Serve("example.com/v1", "Thing", "things", true)
	api.Put(thing)
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(thing)).Resolution)
	api.Unserve("example.com/v1", "Thing")
	other := refTo(thing)
	other.Name, other.UID = "u", "u1"
	require.Equal(t, "Thing.example.com/shop/u=u1: not_found", text(resolve(t, r, other)))
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(thing)).Resolution, "its objects stay known")

	api.Serve("example.com/v1", "Thing", "things", true)
	clock.pass(10 * time.Second)
	other.Name, other.UID = "t", "t1"
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, other).Resolution, "and it may come back")
}

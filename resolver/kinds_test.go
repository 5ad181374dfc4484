// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

var thing = apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: "t", UID: "t1"}

func TestDiscoveryAsksForAsLittleAsItCan(t *testing.T) {
	tests := []struct {
		name string
		ref  resolver.Reference
		want []string
	}{
		{
			name: "the version that the reference names",
			ref:  refTo(deployment),
			want: []string{"/apis/apps/v1"},
		},
		{
			name: "a version that is not served",
			ref:  resolver.Reference{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: []string{"/apis/apps/v1beta1", "/apis/apps", "/apis/apps/v1"},
		},
		{
			name: "a group that another took over from",
			ref:  resolver.Reference{APIVersion: "extensions/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: []string{"/apis/apps", "/apis/apps/v1"},
		},
		{
			name: "a kind of core, without an API version",
			ref:  resolver.Reference{Kind: "Node", Name: "n1"},
			want: []string{"/api/v1"},
		},
		{
			name: "a kind of another group, without an API version",
			ref:  resolver.Reference{Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: []string{"/api/v1", "/apis"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(deployment, node)
			r := newResolver(t, api, resolver.Config{})
			require.Equal(t, resolver.Complete, resolve(t, r, test.ref).Resolution)
			seen := api.Seen()
			require.Equal(t, test.want, seen[:len(seen)-1])
			test.ref.Name = "other"
			resolve(t, r, test.ref)
			for _, path := range api.Seen() {
				require.NotContains(t, test.want, path, "it is requested once")
			}
		})
	}
}

func TestACRDThatAppearsLater(t *testing.T) {
	for name, ref := range map[string]resolver.Reference{
		"with an API version":    refTo(thing),
		"without an API version": {Kind: "Thing", Namespace: "shop", Name: "t", UID: "t1"},
	} {
		t.Run(name, func(t *testing.T) {
			api, clock := apitest.NewObjects(t), newClock()
			r := newResolver(t, api, resolver.Config{Now: clock.Now})
			require.Equal(t, resolver.NotFound, resolve(t, r, ref).Resolution)
			api.Seen()
			api.Serve("example.com/v1", "Thing", "things", true)
			api.Put(thing)
			require.Equal(t, resolver.NotFound, resolve(t, r, ref).Resolution)
			require.Empty(t, api.Seen(), "that it is not served is believed for a while")
			clock.pass(10 * time.Second)
			require.Equal(t, resolver.Complete, resolve(t, r, ref).Resolution)
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
				r := newResolver(t, api, resolver.Config{})
				first := ref
				first.Name = thing.Name
				require.Equal(t, resolver.Complete, resolve(t, r, first).Resolution)

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

func TestACRDThatIsReplacedIsNoticedByLists(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Serve("example.com/v1", "Thing", "things", true)
	api.Put(thing)
	r := newResolver(t, api, resolver.Config{})
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
		"/apis/example.com/v1",
		"/apis/example.com",
		"/apis/example.com/v2",
		"/apis/example.com/v2/namespaces/shop/things?list",
	}, api.Seen())
}

func TestACRDThatGoes(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	api.Serve("example.com/v1", "Thing", "things", true)
	api.Put(thing)
	r := newResolver(t, api, resolver.Config{Now: clock.Now})
	require.Equal(t, resolver.Complete, resolve(t, r, refTo(thing)).Resolution)
	api.Unserve("example.com/v1", "Thing")
	other := refTo(thing)
	other.Name, other.UID = "u", "u1"
	require.Equal(t, "Thing.example.com/shop/u=u1: not_found", text(resolve(t, r, other)))
	require.Equal(t, resolver.Complete, resolve(t, r, refTo(thing)).Resolution, "its objects stay known")

	api.Serve("example.com/v1", "Thing", "things", true)
	clock.pass(10 * time.Second)
	other.Name, other.UID = "t", "t1"
	require.Equal(t, resolver.Complete, resolve(t, r, other).Resolution, "and it may come back")
}

func TestAGroupWhoseDocumentFailsHidesNoOther(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Aggregated = false
	api.Put(deployment)
	api.Fail("/apis/batch/v1", apitest.Fault{Status: 503})
	r := newResolver(t, api, resolver.Config{})
	ref := resolver.Reference{Kind: "Deployment", Namespace: "shop", Name: "fe"}
	require.Equal(t, resolver.Complete, resolve(t, r, ref).Resolution)
}

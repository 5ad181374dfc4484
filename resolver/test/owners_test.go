// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// The objects that most tests use.
var (
	deployment = apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "fe", UID: "d1", Labels: map[string]string{"tilt-manifest": "fe"}}
	replicaSet = apitest.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "fe-1", UID: "r1", Owners: []metav1.OwnerReference{apitest.OwnedBy(deployment, true)}}
	pod        = apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "fe-1-a", UID: "p1", Owners: []metav1.OwnerReference{apitest.OwnedBy(replicaSet, true)}}
	node       = apitest.Object{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "8f3c"}
)

func TestOwners(t *testing.T) {
	named := func(kind, name, uid string, owners ...metav1.OwnerReference) apitest.Object {
		return apitest.Object{APIVersion: "example.com/v1", Kind: kind, Namespace: "shop", Name: name, UID: uid, Owners: owners}
	}
	a, b, c := named("Thing", "a", "a1"), named("Thing", "b", "b1"), named("Thing", "c", "c1")
	fleet := apitest.Object{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f", UID: "f1"}

	tests := []struct {
		name    string
		objects []apitest.Object
		ask     apitest.Object
		want    string
	}{
		{
			name: "an object that nothing owns is its own end",
			ask:  deployment, objects: []apitest.Object{deployment},
			want: "Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "controllers are followed to the end",
			ask:  pod, objects: []apitest.Object{pod, replicaSet, deployment},
			want: "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "a custom resource owns a Deployment",
			ask:  pod, objects: []apitest.Object{pod, replicaSet, withOwners(deployment, apitest.OwnedBy(a, true)), a},
			want: "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1 < Thing.example.com/shop/a=a1: complete",
		},
		{
			name: "the controller is followed at any index",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b), apitest.OwnedBy(c, true)), b, c},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/c=c1: complete",
		},
		{
			name: "a single owner is followed without being the controller",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b, false)), b},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1: complete",
		},
		{
			name: "of several owners none of which is the controller the first is followed, and it is said",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b), apitest.OwnedBy(c)), b, c},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1: ambiguous",
		},
		{
			name: "the owners of the first of several owners are followed, too",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b), apitest.OwnedBy(c)), withOwners(b, apitest.OwnedBy(fleet, true)), c, fleet},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1 < Fleet.example.com/f=f1: ambiguous",
		},
		{
			name: "why a chain is short matters more than that it is ambiguous",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b), apitest.OwnedBy(c)), c},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1: not_found",
		},
		{
			name: "a cluster-scoped owner has no namespace",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(fleet, true)), fleet},
			want: "Thing.example.com/shop/a=a1 < Fleet.example.com/f=f1: complete",
		},
		{
			name: "a cluster-scoped object can't be owned by one in a namespace",
			ask:  fleet, objects: []apitest.Object{withOwners(fleet, apitest.OwnedBy(a, true)), a},
			want: "Fleet.example.com/f=f1 < Thing.example.com/a=a1: not_found",
		},
		{
			name: "a mirror pod belongs to its node",
			ask:  pod, objects: []apitest.Object{withOwners(pod, apitest.OwnedBy(node, true)), node},
			want: "Pod/shop/fe-1-a=p1 < Node/n1=8f3c: complete",
		},
		{
			name: "a chain ends at a core Node, whoever owns the Node",
			ask:  pod, objects: []apitest.Object{withOwners(pod, apitest.OwnedBy(node, true)), withOwners(node, apitest.OwnedBy(fleet)), fleet},
			want: "Pod/shop/fe-1-a=p1 < Node/n1=8f3c: complete",
		},
		{
			name: "an owned Node is its own end, also if nobody may read its owner",
			ask:  node, objects: []apitest.Object{withOwners(node, apitest.OwnedBy(fleet), apitest.OwnedBy(a))},
			want: "Node/n1=8f3c: complete",
		},
		{
			name: "an owner that is gone is known from the reference",
			ask:  pod, objects: []apitest.Object{pod},
			want: "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1: not_found",
		},
		{
			name: "an owner with another UID is another object",
			ask:  pod, objects: []apitest.Object{pod, withUID(replicaSet, "r2"), deployment},
			want: "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1: not_found",
		},
		{
			name: "an owner of a kind that is not served is known from the reference, its scope is not",
			ask:  pod, objects: []apitest.Object{withOwners(pod, metav1.OwnerReference{APIVersion: "gone.io/v1", Kind: "Gone", Name: "g", UID: "g1"})},
			want: "Pod/shop/fe-1-a=p1 < Gone.gone.io/g=g1: not_found",
		},
		{
			name: "a cycle names each object once",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b, true)), withOwners(b, apitest.OwnedBy(c, true)), withOwners(c, apitest.OwnedBy(a, true))},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1 < Thing.example.com/shop/c=c1: cycle",
		},
		{
			name: "an object that owns itself",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(a, true))},
			want: "Thing.example.com/shop/a=a1: cycle",
		},
		{
			name: "a cycle through references without UIDs",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(withUID(b, ""), true)), withOwners(b, apitest.OwnedBy(withUID(a, ""), true))},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1: cycle",
		},
		{
			name: "in a cycle too, UIDs decide",
			ask:  a, objects: []apitest.Object{withOwners(a, apitest.OwnedBy(b, true)), withOwners(b, apitest.OwnedBy(withUID(a, "a0"), true))},
			want: "Thing.example.com/shop/a=a1 < Thing.example.com/shop/b=b1 < Thing.example.com/shop/a=a0: not_found",
		},
		{
			name: "an owner's version that is no longer served",
			ask:  replicaSet, objects: []apitest.Object{withOwners(replicaSet, metav1.OwnerReference{APIVersion: "extensions/v1beta1", Kind: "Deployment", Name: "fe", UID: "d1"}), deployment},
			want: "ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Serve("example.com/v1", "Thing", "things", true)
			api.Serve("example.com/v1", "Fleet", "fleets", false)
			api.Put(test.objects...)
			r := newResolver(t, api, resolver.Settings{})
			require.Equal(t, test.want, text(resolve(t, r, refTo(test.ask))), "cold")
			require.Equal(t, test.want, text(resolve(t, r, refTo(test.ask))), "warm")
		})
	}
}

func withOwners(o apitest.Object, owners ...metav1.OwnerReference) apitest.Object {
	o.Owners = owners
	return o
}

func withUID(o apitest.Object, uid string) apitest.Object {
	o.UID = uid
	return o
}

func TestAnObjectWithoutItsOwners(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment)
	gone := refTo(pod)
	gone.Name = "gone"
	objects := newResolver(t, api, resolver.Settings{}).Objects(t.Context(), []resolver.Reference{refTo(pod), gone})
	require.Equal(t, "Pod/shop/fe-1-a=p1", objectText(objects[0]))
	require.True(t, objects[0].Found())
	require.Equal(t, "gone", objects[1].Name)
	require.False(t, objects[1].Found())
	require.NotContains(t, api.SeenObjects(), api.Path(replicaSet))
}

func TestDepth(t *testing.T) {
	tests := []struct {
		name     string
		maxDepth int
		want     string
	}{
		{
			name:     "an object at the greatest depth that still has an owner",
			maxDepth: 1,
			want:     "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1: depth",
		},
		{
			name:     "an object at the greatest depth that nothing owns",
			maxDepth: 2,
			want:     "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(pod, replicaSet, deployment)
			r := newResolver(t, api, resolver.Settings{MaxDepth: test.maxDepth})
			require.Equal(t, test.want, text(resolve(t, r, refTo(pod))))
		})
	}
}

func TestKeptMetadata(t *testing.T) {
	api := apitest.NewObjects(t)
	pod := pod
	pod.Owners = nil
	pod.Labels = map[string]string{"app": "fe", "tilt-manifest": "fe", "pod-template-hash": "1"}
	pod.Annotations = map[string]string{"team": "a", "note": "b"}
	api.Put(pod)

	t.Run("nothing by default", func(t *testing.T) {
		chain := resolve(t, newResolver(t, api, resolver.Settings{}), refTo(pod))
		require.Nil(t, chain.Objects[0].Labels)
		require.Nil(t, chain.Objects[0].Annotations)
	})
	t.Run("what Trim leaves", func(t *testing.T) {
		r := newResolver(t, api, resolver.Settings{
			Trim: func(meta *metav1.PartialObjectMetadata) {
				delete(meta.Labels, "pod-template-hash")
				meta.Annotations = map[string]string{"team": meta.Annotations["team"]}
			},
		})
		chain := resolve(t, r, refTo(pod))
		require.Equal(t, map[string]string{"app": "fe", "tilt-manifest": "fe"}, chain.Objects[0].Labels)
		require.Equal(t, map[string]string{"team": "a"}, chain.Objects[0].Annotations)
	})
}

func TestMetadataAsJSON(t *testing.T) {
	api := apitest.NewObjects(t)
	api.JSON = true
	api.Put(pod, replicaSet, deployment)
	r := newResolver(t, api, resolver.Settings{})
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(pod)).Resolution)
}

func TestChainsComeInTheOrderAsked(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment, node)
	r := newResolver(t, api, resolver.Settings{})
	chains := r.Resolve(t.Context(), []resolver.Reference{refTo(node), refTo(pod), refTo(deployment), refTo(pod)})
	var ends []string
	for _, c := range chains {
		ends = append(ends, objectText(c.Objects[0])+" ends at "+objectText(c.End()))
	}
	require.Equal(t, []string{
		"Node/n1=8f3c ends at Node/n1=8f3c",
		"Pod/shop/fe-1-a=p1 ends at Deployment.apps/shop/fe=d1",
		"Deployment.apps/shop/fe=d1 ends at Deployment.apps/shop/fe=d1",
		"Pod/shop/fe-1-a=p1 ends at Deployment.apps/shop/fe=d1",
	}, ends)
	require.Empty(t, r.Resolve(t.Context(), nil))
}

// The end of a chain is what the requested object belongs to. It needs no permission for what nobody
// may read, because the reference names it.
func TestTheEndOfAChain(t *testing.T) {
	a := apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: "a", UID: "a1"}
	owned := withOwners(replicaSet, apitest.OwnedBy(a, true))
	const none = "nothing"
	tests := []struct {
		name    string
		ask     resolver.Reference
		forbid  apitest.Object
		status  int
		objects []apitest.Object
		want    string
	}{
		{"an object without owners", refTo(pod), a, 0, []apitest.Object{pod, owned, a}, "example.com/v1 Thing shop/a a1"},
		{"the first of several owners", refTo(owned), a, 0, []apitest.Object{withOwners(replicaSet, apitest.OwnedBy(a), apitest.OwnedBy(deployment)), a}, "example.com/v1 Thing shop/a a1"},
		{"an owner that may not be read", refTo(pod), a, http.StatusForbidden, []apitest.Object{pod, owned, a}, "example.com/v1 Thing shop/a a1"},
		{"an owner in the middle that may not be read", refTo(pod), owned, http.StatusForbidden, []apitest.Object{pod, owned, a}, "apps/v1 ReplicaSet shop/fe-1 r1"},
		{"an involved object that may not be read", refTo(a), a, http.StatusForbidden, []apitest.Object{a}, "example.com/v1 Thing shop/a a1"},
		{
			"an involved object without a version, which may not be read",
			resolver.Reference{Kind: "Thing", Namespace: "shop", Name: "a"}, a, http.StatusForbidden, []apitest.Object{a}, "example.com/v1 Thing shop/a ",
		},
		{"an owner that is gone", refTo(pod), a, 0, []apitest.Object{pod, owned}, none},
		{"an API server that fails", refTo(pod), a, http.StatusInternalServerError, []apitest.Object{pod, owned, a}, none},
		{"an API server that takes too long", refTo(pod), a, http.StatusGatewayTimeout, []apitest.Object{pod, owned, a}, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Serve("example.com/v1", "Thing", "things", true)
			api.Put(test.objects...)
			if test.status != 0 {
				api.Fail(api.Path(test.forbid), apitest.Fault{Status: test.status})
			}
			got := none
			if end := resolve(t, newResolver(t, api, resolver.Settings{}), test.ask).End(); end != nil {
				got = end.APIVersion + " " + end.Kind + " " + end.Namespace + "/" + end.Name + " " + string(end.UID)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// Tools that mirror clusters let objects own pods that run nothing.
func TestAnOwnerThatRunsNothingIsNotTheEnd(t *testing.T) {
	in := func(apiVersion, kind string, owners ...metav1.OwnerReference) apitest.Object {
		return apitest.Object{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: "x", UID: apiVersion + kind, Owners: owners}
	}
	volume := in("v1", "PersistentVolume")
	volume.Namespace = ""
	service, custom := in("v1", "Service"), in("example.com/v1", "Service")
	slice := in("discovery.k8s.io/v1", "EndpointSlice", apitest.OwnedBy(service, true))
	ownedBy := func(owner apitest.Object) apitest.Object { return withOwners(pod, apitest.OwnedBy(owner, true)) }
	for name, test := range map[string]struct {
		objects   []apitest.Object // the first one is requested
		forbidden bool             // the last one
		want      string
	}{
		"a Service":                             {objects: []apitest.Object{ownedBy(service), service}, want: "Pod/shop/fe-1-a=p1"},
		"a ConfigMap":                           {objects: []apitest.Object{ownedBy(in("v1", "ConfigMap")), in("v1", "ConfigMap")}, want: "Pod/shop/fe-1-a=p1"},
		"a ConfigMap that may not be read":      {objects: []apitest.Object{ownedBy(in("v1", "ConfigMap")), in("v1", "ConfigMap")}, forbidden: true, want: "Pod/shop/fe-1-a=p1"},
		"a Secret":                              {objects: []apitest.Object{ownedBy(in("v1", "Secret")), in("v1", "Secret")}, want: "Pod/shop/fe-1-a=p1"},
		"a PersistentVolumeClaim":               {objects: []apitest.Object{ownedBy(in("v1", "PersistentVolumeClaim")), in("v1", "PersistentVolumeClaim")}, want: "Pod/shop/fe-1-a=p1"},
		"a PersistentVolume":                    {objects: []apitest.Object{ownedBy(volume), volume}, want: "Pod/shop/fe-1-a=p1"},
		"Endpoints":                             {objects: []apitest.Object{ownedBy(in("v1", "Endpoints")), in("v1", "Endpoints")}, want: "Pod/shop/fe-1-a=p1"},
		"an EndpointSlice of a Service":         {objects: []apitest.Object{ownedBy(slice), slice, service}, want: "Pod/shop/fe-1-a=p1"},
		"above a Deployment":                    {objects: []apitest.Object{pod, replicaSet, withOwners(deployment, apitest.OwnedBy(service, true)), service}, want: "Deployment.apps/shop/fe=d1"},
		"a Service that a custom resource owns": {objects: []apitest.Object{ownedBy(service), withOwners(service, apitest.OwnedBy(custom, true)), custom}, want: "Service.example.com/shop/x=example.com/v1Service"},
		"a Service of another group":            {objects: []apitest.Object{ownedBy(custom), custom}, want: "Service.example.com/shop/x=example.com/v1Service"},
		"the requested object itself":           {objects: []apitest.Object{service}, want: "Service/shop/x=v1Service"},
		"the requested object, and its owner":   {objects: []apitest.Object{slice, service}, want: "EndpointSlice.discovery.k8s.io/shop/x=discovery.k8s.io/v1EndpointSlice"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			for _, o := range test.objects {
				api.Serve(o.APIVersion, o.Kind, strings.ToLower(o.Kind)+"s", o.Namespace != "")
				api.Put(o)
			}
			if last := test.objects[len(test.objects)-1]; test.forbidden {
				api.Fail(api.Path(last), apitest.Fault{Status: http.StatusForbidden})
			}
			chain := resolve(t, newResolver(t, api, resolver.Settings{}), refTo(test.objects[0]))
			require.Len(t, chain.Objects, len(test.objects), "it is on the chain")
			require.Equal(t, test.want, objectText(chain.End()))
		})
	}
}

func TestTheGeneratedNameOfAnObjectWithoutOwnersIsKnown(t *testing.T) {
	run := apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: "build-x7k2p", UID: "a1", GenerateName: "build-"}
	owned := pod
	owned.GenerateName, owned.Owners = "build-x7k2p-", []metav1.OwnerReference{apitest.OwnedBy(run, true)}
	api := apitest.NewObjects(t)
	api.Serve("example.com/v1", "Thing", "things", true)
	api.Put(owned, run)
	chain := resolve(t, newResolver(t, api, resolver.Settings{}), refTo(owned))
	require.Equal(t, "build-", chain.End().GenerateName)
	require.Empty(t, chain.Objects[0].GenerateName, "the pod has an owner")

	service := apitest.Object{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "fe", UID: "s1"}
	run.Owners = []metav1.OwnerReference{apitest.OwnedBy(service)}
	api.Put(run, service)
	chain = resolve(t, newResolver(t, api, resolver.Settings{}), refTo(owned))
	require.Equal(t, "build-", chain.End().GenerateName, "a Service is not the end")
}

func TestTheCreationTimeOfAnObjectThatWasReadIsKnown(t *testing.T) {
	run := apitest.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "run-1", UID: "a1"}
	before := time.Now().Unix()
	api := apitest.NewObjects(t)
	api.Put(run)
	chain := resolve(t, newResolver(t, api, resolver.Settings{}), refTo(run))
	require.Contains(t, []int64{before, before + 1, time.Now().Unix()}, chain.End().Created)
	require.Zero(t, refTo(run).Object().Created, "it is known only from a reference")
}

// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestReferencesThatLackSomething(t *testing.T) {
	ordered := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "p", UID: "p2"}
	service := apitest.Object{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "s", UID: "s1"}
	knative := apitest.Object{APIVersion: "serving.knative.dev/v1", Kind: "Service", Namespace: "shop", Name: "s", UID: "s2"}
	only := apitest.Object{APIVersion: "serving.knative.dev/v1", Kind: "Service", Namespace: "shop", Name: "only", UID: "s3"}
	alien := apitest.Object{APIVersion: "aliens.example.com/v1", Kind: "Ingress", Namespace: "shop", Name: "i", UID: "i1"}
	ingress := apitest.Object{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespace: "shop", Name: "i", UID: "i2"}

	tests := []struct {
		name string
		ref  resolver.Reference
		want string
	}{
		{
			name: "no UID: whatever bears the name, and its UID is filled in",
			ref:  resolver.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: "Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "another UID: another object",
			ref:  resolver.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "fe", UID: "d0"},
			want: "Deployment.apps/shop/fe=d0: not_found",
		},
		{
			name: "no namespace: events of such objects are in default, and so are these",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Pod", Name: "p"},
			want: "Pod/default/p=p2: complete",
		},
		{
			name: "no namespace, and not found: nothing is made up",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Pod", Name: "q"},
			want: "Pod/q: not_found",
		},
		{
			name: "a namespace for a cluster-scoped kind",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Node", Namespace: "default", Name: "n1"},
			want: "Node/n1=8f3c: complete",
		},
		{
			name: "a namespace for a cluster-scoped kind, and not found",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Namespace", Namespace: "default", Name: "n2"},
			want: "Namespace/n2: not_found",
		},
		{
			name: "kubelet writes a Node's name for its UID",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"},
			want: "Node/n1=8f3c: complete",
		},
		{
			name: "kubelet writes a Node's name for its UID, and it is not found",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "n2", UID: "n2"},
			want: "Node/n2: not_found",
		},
		{
			name: "a Node's UID is no proof of another Node",
			ref:  resolver.Reference{Kind: "Node", Name: "n1", UID: "1234"},
			want: "Node/n1=8f3c: complete",
		},
		{
			name: "kubelets from 1.37 on write a Node's UID",
			ref:  resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "8f3c"},
			want: "Node/n1=8f3c: complete",
		},
		{
			name: "no API version: core comes first",
			ref:  resolver.Reference{Kind: "Service", Namespace: "shop", Name: "s"},
			want: "Service/shop/s=s1: complete",
		},
		{
			name: "no API version: the UID decides",
			ref:  resolver.Reference{Kind: "Service", Namespace: "shop", Name: "s", UID: "s2"},
			want: "Service.serving.knative.dev/shop/s=s2: complete",
		},
		{
			name: "no API version and no UID: the first group in which it exists",
			ref:  resolver.Reference{Kind: "Service", Namespace: "shop", Name: "only"},
			want: "Service.serving.knative.dev/shop/only=s3: complete",
		},
		{
			name: "no API version and no UID: Kubernetes' own groups come first",
			ref:  resolver.Reference{Kind: "Ingress", Namespace: "shop", Name: "i"},
			want: "Ingress.networking.k8s.io/shop/i=i2: complete",
		},
		{
			name: "no API version, with a UID: the groups are all tried",
			ref:  resolver.Reference{Kind: "Ingress", Namespace: "shop", Name: "i", UID: "i1"},
			want: "Ingress.aliens.example.com/shop/i=i1: complete",
		},
		{
			name: "no API version, and the kind is in no group",
			ref:  resolver.Reference{Kind: "Unicorn", Namespace: "shop", Name: "u"},
			want: "Unicorn/shop/u: not_found",
		},
		{
			name: "a group without a version",
			ref:  resolver.Reference{APIVersion: "apps", Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: "Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "a version that is no longer served",
			ref:  resolver.Reference{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "fe"},
			want: "Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "the group that the kind was served in first",
			ref:  resolver.Reference{APIVersion: "extensions/v1beta1", Kind: "ReplicaSet", Namespace: "shop", Name: "fe-1"},
			want: "ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "the group that the kind was served in first, without a version",
			ref:  resolver.Reference{APIVersion: "extensions", Kind: "ReplicaSet", Namespace: "shop", Name: "fe-1"},
			want: "ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		},
		{
			name: "the group that Ingress was served in first",
			ref:  resolver.Reference{APIVersion: "extensions/v1beta1", Kind: "Ingress", Namespace: "shop", Name: "i"},
			want: "Ingress.networking.k8s.io/shop/i=i2: complete",
		},
		{
			name: "a kind that can't be read",
			ref:  resolver.Reference{APIVersion: "auth.example.com/v1", Kind: "Review", Namespace: "shop", Name: "r"},
			want: "Review.auth.example.com/shop/r: not_found",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Serve("serving.knative.dev/v1", "Service", "services", true)
			api.Serve("aliens.example.com/v1", "Ingress", "ingresses", true)
			api.ReverseDiscovery() // so that Kubernetes' own groups come last
			api.Serve("auth.example.com/v1", "Review", "reviews", true, "create")
			api.Put(deployment, replicaSet, node, ordered, service, knative, only, alien, ingress)
			r := newResolver(t, api, resolver.Settings{})
			require.Equal(t, test.want, text(resolve(t, r, test.ref)), "cold")
			require.Equal(t, test.want, text(resolve(t, r, test.ref)), "warm")
		})
	}
}

// A UID can prove which of several kinds is meant, although another one may not be read.
func TestAReferenceWithoutAVersionToAKindThatMayNotBeRead(t *testing.T) {
	core := apitest.Object{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "s", UID: "s1"}
	custom := apitest.Object{APIVersion: "example.com/v1", Kind: "Service", Namespace: "shop", Name: "s", UID: "s2"}
	for uid, want := range map[string]string{"s2": "Service.example.com/shop/s=s2: complete", "": "Service/shop/s: forbidden"} {
		api := apitest.NewObjects(t)
		api.Serve("example.com/v1", "Service", "services", true)
		api.Put(core, custom)
		api.Fail(api.Path(core), apitest.Fault{Status: http.StatusForbidden})
		ref := resolver.Reference{Kind: "Service", Namespace: "shop", Name: "s", UID: types.UID(uid)}
		require.Equal(t, want, text(resolve(t, newResolver(t, api, resolver.Settings{}), ref)))
	}
}

func TestANodeByItsNameIsOneRequest(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(node)
	r := newResolver(t, api, resolver.Settings{})
	resolve(t, r, refTo(withUID(node, node.Name))) // as kubelets write it
	require.Len(t, api.SeenObjects(), 1)
}

// A kubelet reports its start before it creates its Node.
func TestANodeThatDoesNotExistYet(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	byName := resolver.Reference{APIVersion: "v1", Kind: "Node", Name: node.Name}
	require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, byName).Resolution)

	api.Put(node)
	api.Seen()
	clock.pass(time.Second - time.Millisecond)
	require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, byName).Resolution)
	require.Empty(t, api.Seen(), "many events do not cause many requests")
	clock.pass(time.Millisecond)
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, byName).Resolution)
}

// A kubelet reports the first events of a static pod before it creates its mirror pod.
func TestAMirrorPodThatDoesNotExistYet(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef"
	mirror := apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "etcd-n1", UID: "m1",
		Annotations: map[string]string{"kubernetes.io/config.mirror": hash}, Owners: []metav1.OwnerReference{apitest.OwnedBy(node, true)},
	}
	api, clock := apitest.NewObjects(t), newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	static := refTo(withUID(mirror, hash))
	others := []resolver.Reference{
		refTo(withUID(mirror, "5ff49cb0-7b6e-4b4c-9fd5-1a2b3c4d5e6f")), refTo(withUID(mirror, "0123abcd")), refTo(withUID(deployment, hash)),
	}
	for _, ref := range append(others, static) {
		require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, ref).Resolution)
	}
	api.Put(mirror, node)
	api.Seen()
	clock.pass(time.Second)
	for _, other := range others {
		require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, other).Resolution)
	}
	require.Empty(t, api.Seen(), "another object is not created soon")
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, static).Resolution)
}

// Events keep coming about Nodes that never exist.
func TestANodeThatNeverExists(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	requests := func(seconds int) (paths int) {
		api.Seen()
		for range seconds {
			resolve(t, r, resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "typo"})
			clock.pass(time.Second)
		}
		return len(api.Seen())
	}
	require.LessOrEqual(t, requests(60), 2+6, "2 discovery documents, and a request after 1, 2, 4, … s")
	require.LessOrEqual(t, requests(10*60), 10+1, "then one each minute")
	clock.pass(3 * time.Minute)
	require.GreaterOrEqual(t, requests(10), 3, "after a quiet time, as at first")
}

// A kubelet knows a static pod before its mirror pod exists. Its events refer to it by a hash of
// its manifest, which the mirror pod has in an annotation.
func TestStaticPods(t *testing.T) {
	mirror := apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "etcd-n1", UID: "m1",
		Annotations: map[string]string{"kubernetes.io/config.mirror": "hash-1"}, Owners: []metav1.OwnerReference{apitest.OwnedBy(node, true)},
	}
	const whole = "Pod/kube-system/etcd-n1=m1 < Node/n1=8f3c: complete"
	byHash := refTo(mirror)
	byHash.UID = "hash-1"
	for name, test := range map[string]struct {
		ref  resolver.Reference
		want string
	}{
		"by the hash":                {byHash, whole},
		"by the UID of the mirror":   {refTo(mirror), whole},
		"by the hash of another pod": {refTo(withUID(mirror, "hash-2")), "Pod/kube-system/etcd-n1=hash-2: not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(mirror, node)
			r := newResolver(t, api, resolver.Settings{})
			require.Equal(t, test.want, text(resolve(t, r, test.ref)))
			if test.want == whole {
				require.Len(t, api.SeenObjects(), 2, "a request for each object")
			}
			api.Seen()
			require.Equal(t, test.want, text(resolve(t, r, test.ref)))
			require.Empty(t, api.Seen(), "it is known")
		})
	}
	t.Run("the mirror is created again", func(t *testing.T) {
		api, clock := apitest.NewObjects(t), newClock()
		api.Put(mirror, node)
		r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheTTL: time.Minute})
		resolve(t, r, byHash)
		api.Put(withUID(mirror, "m2"))
		require.Equal(t, whole, text(resolve(t, r, byHash)))
		clock.pass(time.Minute)
		require.Equal(t, "Pod/kube-system/etcd-n1=m2 < Node/n1=8f3c: complete", text(resolve(t, r, byHash)))
	})
	t.Run("many at once", func(t *testing.T) {
		api := apitest.NewObjects(t)
		api.Put(mirror, node)
		r := newResolver(t, api, resolver.Settings{})
		refs := append(crowd(api, "kube-system", 20), byHash)
		requireComplete(t, r.Resolve(t.Context(), refs))
	})
}

func TestTheAPIVersionOfWhatIsFound(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Serve("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true)
	api.Serve("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true)
	hpa := apitest.Object{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "h", UID: "h1"}
	v1 := hpa
	v1.APIVersion = "autoscaling/v1"
	api.Put(hpa, v1)
	r := newResolver(t, api, resolver.Settings{})
	for asked, want := range map[string]string{
		"autoscaling/v1":      "autoscaling/v1", // served
		"autoscaling/v2":      "autoscaling/v2",
		"autoscaling/v2beta2": "autoscaling/v2", // the preferred of those that are served
	} {
		ref := refTo(hpa)
		ref.APIVersion = asked
		require.Equal(t, want, resolve(t, r, ref).Objects[0].APIVersion, asked)
	}
	require.Len(t, api.SeenObjects(), 1, "it is one object in all versions")

	ref := resolver.Reference{APIVersion: "extensions/v1beta1", Kind: "ReplicaSet", Namespace: "shop", Name: "none"}
	require.Equal(t, "extensions/v1beta1", resolve(t, r, ref).Objects[0].APIVersion, "what is not found is as the reference says")
}

// Only for a Node, a UID that is the name means nothing.
func TestTheObjectOfAReference(t *testing.T) {
	ref := resolver.Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}
	require.Empty(t, ref.Object().UID)
	ref.Kind = "Pod"
	require.EqualValues(t, "n1", ref.Object().UID)
}

// Nobody validates an involved object: an event may contain anything there.
func TestHostileReferences(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	refs := map[string]resolver.Reference{
		"nothing at all":               {},
		"no name":                      {APIVersion: "v1", Kind: "Pod", Namespace: "shop"},
		"no kind":                      {APIVersion: "v1", Namespace: "shop", Name: "p"},
		"a name that leads elsewhere":  {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "../secrets/s"},
		"a name that leads up":         {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: ".."},
		"an escaped name":              {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "%2e%2e"},
		"a namespace that leads away":  {APIVersion: "v1", Kind: "Pod", Namespace: "../../..", Name: "p"},
		"a group that leads away":      {APIVersion: "../v1", Kind: "Pod", Namespace: "shop", Name: "p"},
		"a long name":                  {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: long},
		"a long namespace":             {APIVersion: "v1", Kind: "Pod", Namespace: long, Name: "p"},
		"a long UID":                   {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "p", UID: types.UID(long)},
		"a long kind":                  {APIVersion: "v1", Kind: long, Namespace: "shop", Name: "p"},
		"a long API version":           {APIVersion: long, Kind: "Pod", Namespace: "shop", Name: "p"},
		"a group that is only a slash": {APIVersion: "/", Kind: "Unicorn", Namespace: "shop", Name: "p"},
	}
	for name, ref := range refs {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			r := newResolver(t, api, resolver.Settings{})
			chain := resolve(t, r, ref)
			require.Equal(t, resolver.ResolutionNotFound, chain.Resolution)
			require.Len(t, chain.Objects, 1)
			require.Equal(t, ref.Name, chain.Objects[0].Name)
			require.Nil(t, chain.End())
			if strings.HasPrefix(name, "a group") {
				require.Empty(t, api.SeenObjects())
			} else {
				require.Empty(t, api.Seen(), "no kind is looked up")
			}
			require.Zero(t, r.Len(), "nothing is remembered")
		})
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("v1", "Pod", "shop", "fe-1-a", "p1")
	f.Add("extensions/v1beta1", "ReplicaSet", "shop", "fe-1", "")
	f.Add("", "Service", "", "../..", "\x00")
	f.Add("a/b/c", "%", "?", "#", "n1")
	api := apitest.NewObjects(f)
	api.Put(pod, replicaSet, deployment)
	r := newResolver(f, api, resolver.Settings{CacheSize: 100})
	f.Fuzz(func(t *testing.T, apiVersion, kind, namespace, name, uid string) {
		chain := resolve(t, r, resolver.Reference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)})
		require.Equal(t, name, chain.Objects[0].Name)
		require.Equal(t, kind, chain.Objects[0].Kind)
	})
}

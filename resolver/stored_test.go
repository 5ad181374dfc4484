// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"encoding"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

var (
	_ encoding.BinaryAppender    = &resolver.Object{}
	_ encoding.BinaryUnmarshaler = &resolver.Object{}
)

func keepAll(string) bool { return true }

// found returns the objects of the chain of the first object.
func found(t testing.TB, objects ...apitest.Object) []*resolver.Object {
	t.Helper()
	api := apitest.NewObjects(t)
	api.Put(objects...)
	r := newResolver(t, api, resolver.Config{KeepLabel: keepAll, KeepAnnotation: keepAll})
	chain := resolve(t, r, refTo(objects[0]))
	require.Equal(t, resolver.Complete, chain.Resolution)
	return chain.Objects
}

func stored(t testing.TB, o *resolver.Object) []byte {
	t.Helper()
	b, err := o.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

// restarted returns the objects as a restart restores them.
func restarted(t testing.TB, objects []*resolver.Object) []*resolver.Object {
	t.Helper()
	restored := make([]*resolver.Object, len(objects))
	for i, o := range objects {
		restored[i] = &resolver.Object{}
		require.NoError(t, restored[i].UnmarshalBinary(stored(t, o)))
	}
	return restored
}

func TestAStoredObjectIsRestoredAsItWas(t *testing.T) {
	owners := func(references ...metav1.OwnerReference) []metav1.OwnerReference { return references }
	named := func(o apitest.Object) apitest.Object {
		o.APIVersion, o.Kind, o.Namespace, o.Name = "v1", "Pod", "shop", "fe"
		if o.UID == "" {
			o.UID = "8f14e45f-ceea-467f-9b3e-0123456789ab"
		}
		return o
	}
	for name, o := range map[string]apitest.Object{
		"nothing but its name":     named(apitest.Object{}),
		"a UID of another form":    named(apitest.Object{UID: "p1"}),
		"a UID in capital letters": named(apitest.Object{UID: "8F14E45F-CEEA-467F-9B3E-0123456789AB"}),
		"a UID with other dashes":  named(apitest.Object{UID: "8f14e45fc-eea-467f-9b3e-0123456789ab"}),
		"cluster-scoped":           node,
		"a generated name":         named(apitest.Object{GenerateName: "build-"}),
		"labels and annotations": named(apitest.Object{
			Labels:      map[string]string{"app": "fe", "empty": "", "tier": "web"},
			Annotations: map[string]string{"app": "another", "note": strings.Repeat("long ", 1000)},
		}),
		"an owner":                 named(apitest.Object{Owners: owners(apitest.OwnedBy(replicaSet, true))}),
		"one of several owners":    named(apitest.Object{Owners: owners(apitest.OwnedBy(replicaSet), apitest.OwnedBy(node))}),
		"an owner with a real UID": named(apitest.Object{Owners: owners(apitest.OwnedBy(withUID(replicaSet, "8f14e45f-ceea-467f-9b3e-0123456789ac"), true))}),
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(o)
			r := newResolver(t, api, resolver.Config{KeepLabel: keepAll, KeepAnnotation: keepAll})
			object := resolve(t, r, refTo(o)).Objects[0]
			require.True(t, object.Found())
			restored := restarted(t, []*resolver.Object{object})[0]
			assert.Equal(t, object, restored)
			assert.True(t, restored.Found())
			assert.Equal(t, stored(t, object), stored(t, restored), "equal objects have equal forms")
		})
	}
}

func TestAStoredPodIsSmall(t *testing.T) {
	owner := withOwners(withUID(replicaSet, "8f14e45f-ceea-467f-9b3e-0123456789ac"))
	o := found(t, apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "frontend-6f5c9d7b4-x2x9k", UID: "8f14e45f-ceea-467f-9b3e-0123456789ab",
		Owners: []metav1.OwnerReference{apitest.OwnedBy(owner, true)},
	}, owner)[0]
	assert.Less(t, len(stored(t, o)), 110)
}

func TestAnObjectThatIsKnownOnlyFromAReferenceIsNotStored(t *testing.T) {
	o := resolver.Reference{Kind: "Pod", Name: "fe", UID: "p1"}.Object()
	assert.False(t, o.Found())
	_, err := o.AppendBinary(nil)
	assert.Error(t, err)
}

func TestACorruptObjectIsAnErrorAndChangesNothing(t *testing.T) {
	b := stored(t, found(t, pod, replicaSet, deployment)[0])
	for cut := range b {
		o := resolver.Object{Name: "before"}
		if err := o.UnmarshalBinary(b[:cut]); err != nil {
			require.Equal(t, resolver.Object{Name: "before"}, o, "cut after %d bytes", cut)
			continue
		}
		require.NotEmpty(t, o.Name, "cut after %d bytes", cut)
	}
	var o resolver.Object
	require.Error(t, o.UnmarshalBinary(nil))
}

func FuzzUnmarshalBinary(f *testing.F) {
	for _, o := range found(f, pod, replicaSet, deployment) {
		f.Add(stored(f, o))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var o, again resolver.Object
		if o.UnmarshalBinary(b) != nil {
			return
		}
		require.NoError(t, again.UnmarshalBinary(stored(t, &o)))
		require.Equal(t, o, again)
	})
}

func TestRestoredObjects(t *testing.T) {
	const whole = "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete"
	unnamed := refTo(withUID(pod, ""))
	changed := withOwners(pod, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "fe", UID: "d1"})
	fails := apitest.Fault{Status: http.StatusInternalServerError}
	for name, test := range map[string]struct {
		meanwhile func(api *apitest.Objects)
		refs      []resolver.Reference
		want      []string
	}{
		"all are gone": {
			func(api *apitest.Objects) { api.Remove(pod, replicaSet, deployment) },
			[]resolver.Reference{refTo(pod), unnamed}, []string{whole, whole},
		},
		"the owners are gone": {
			func(api *apitest.Objects) { api.Remove(replicaSet, deployment) },
			[]resolver.Reference{refTo(pod)}, []string{whole},
		},
		"nothing has changed": {
			func(*apitest.Objects) {}, []resolver.Reference{refTo(pod), unnamed}, []string{whole, whole},
		},
		"the owner has changed": {
			func(api *apitest.Objects) { api.Put(changed) },
			[]resolver.Reference{refTo(pod)}, []string{"Pod/shop/fe-1-a=p1 < Deployment.apps/shop/fe=d1: complete"},
		},
		"another pod has the name": {
			func(api *apitest.Objects) { api.Put(withUID(withOwners(pod), "p2")) },
			[]resolver.Reference{unnamed, refTo(withUID(pod, "p2")), refTo(pod), unnamed},
			[]string{"Pod/shop/fe-1-a=p2: complete", "Pod/shop/fe-1-a=p2: complete", whole, "Pod/shop/fe-1-a=p2: complete"},
		},
		"another pod had the name, and is gone": {
			func(api *apitest.Objects) { api.Remove(pod) },
			[]resolver.Reference{refTo(withUID(pod, "p2"))}, []string{"Pod/shop/fe-1-a=p2: not_found"},
		},
		"the pod cannot be read": {
			func(api *apitest.Objects) { api.Fail(api.Path(pod), fails) },
			[]resolver.Reference{refTo(pod)}, []string{whole},
		},
		"the pod cannot be read, and the reference has no UID": {
			func(api *apitest.Objects) { api.Fail(api.Path(pod), fails) },
			[]resolver.Reference{unnamed, unnamed, unnamed},
			[]string{"Pod/shop/fe-1-a: unavailable", "Pod/shop/fe-1-a: unavailable", "Pod/shop/fe-1-a: unavailable"},
		},
		"the pod cannot be read, first with its UID and then without": {
			func(api *apitest.Objects) { api.Fail(api.Path(pod), fails) },
			[]resolver.Reference{refTo(pod), unnamed}, []string{whole, "Pod/shop/fe-1-a: unavailable"},
		},
		"the pod may not be read": {
			func(api *apitest.Objects) { api.Fail(api.Path(pod), apitest.Fault{Status: http.StatusForbidden}) },
			[]resolver.Reference{refTo(pod)}, []string{whole},
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(pod, replicaSet, deployment)
			test.meanwhile(api)
			r := newResolver(t, api, resolver.Config{})
			r.Restore(restarted(t, found(t, pod, replicaSet, deployment)))
			require.Empty(t, api.Seen(), "restoring sends no request")
			for i, ref := range test.refs {
				require.Equal(t, test.want[i], text(resolve(t, r, ref)), "reference %d", i)
			}
		})
	}
}

func TestARestoredPodIsTheAnswerIfItsRequestHangs(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment)
	defer api.Hang(t, api.Path(pod))()
	r := newResolver(t, api, resolver.Config{LookupTimeout: 50 * time.Millisecond})
	resolve(t, r, refTo(replicaSet)) // The kinds of its chain are known then.
	r.Restore(restarted(t, found(t, pod, replicaSet, deployment)))
	require.Equal(t, "Pod/shop/fe-1-a=p1 < ReplicaSet.apps/shop/fe-1=r1 < Deployment.apps/shop/fe=d1: complete",
		text(resolve(t, r, refTo(pod))))
}

func TestRestoreReplacesNothing(t *testing.T) {
	old := deployment
	old.Labels = map[string]string{"tilt-manifest": "old"}
	api := apitest.NewObjects(t)
	api.Put(pod, replicaSet, deployment)
	r := newResolver(t, api, resolver.Config{KeepLabel: keepAll, CacheSize: 3})
	require.Equal(t, "fe", resolve(t, r, refTo(pod)).End().Labels["tilt-manifest"])
	api.Seen()
	r.Restore(restarted(t, found(t, old)))
	r.Restore(restarted(t, found(t, node)))
	require.Equal(t, "fe", resolve(t, r, refTo(pod)).End().Labels["tilt-manifest"])
	require.Empty(t, api.Seen(), "what the cache had is not expired, and was not removed to make room")
	require.Equal(t, 3, r.Len())
}

func TestARestoredNodeIsTheNodeOfItsNameOnlyIfNoneHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(api *apitest.Objects)
		want      string
	}{
		"it is gone":       {func(api *apitest.Objects) { api.Remove(node) }, "Node/n1=8f3c: complete"},
		"it is re-created": {func(api *apitest.Objects) { api.Put(withUID(node, "9a")) }, "Node/n1=9a: complete"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjects(t)
			api.Put(node)
			test.meanwhile(api)
			r := newResolver(t, api, resolver.Config{})
			r.Restore(restarted(t, found(t, node)))
			require.Equal(t, test.want, text(resolve(t, r, resolver.Reference{Kind: "Node", Name: "n1", UID: "n1"})))
		})
	}
}

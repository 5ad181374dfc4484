// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// newPod puts a new pod of a namespace's first ReplicaSet.
func newPod(api *apitest.Objects, namespace string, number int) resolver.Reference {
	replicaSet := apitest.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: "app-000-649447bf8", UID: namespace + "-r-app-000"}
	pod := apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("new-%05d", number),
		UID: fmt.Sprintf("%s-new-%05d", namespace, number), Owners: []metav1.OwnerReference{apitest.OwnedBy(replicaSet, true)},
	}
	api.Put(pod)
	return refTo(pod)
}

// storm lists the pods of some namespaces. Then it puts new pods and resolves each at once, until
// the resolver starts a watch.
func storm(t *testing.T, api *apitest.Objects, r *resolver.Resolver, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		requireComplete(t, r.Resolve(t.Context(), crowd(api, namespace, 10)))
	}
	for number := range 60 {
		for _, namespace := range namespaces {
			requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{newPod(api, namespace, number)}))
		}
	}
}

func isWatchPath(path string) bool { return strings.HasSuffix(path, "?watch") }

func TestWhileManyNewObjectsComeTheyAreWatched(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Config{})
	storm(t, api, r, "shop", "bank")
	api.AwaitRequest(t, "/api/v1/pods?watch")
	require.Eventually(t, func() bool {
		return api.Watchers() == 1
	}, 10*time.Second, time.Millisecond)
	api.Seen()

	known := r.Len()
	var pods []resolver.Reference
	for number := range 100 {
		pods = append(pods, newPod(api, "shop", 1000+number), newPod(api, "never-seen", 1000+number))
	}
	require.Eventually(t, func() bool { return r.Len() >= known+200 }, 10*time.Second, time.Millisecond)
	r.Resolve(t.Context(), pods)
	require.Empty(t, slices.DeleteFunc(api.Seen(), func(path string) bool { return !strings.Contains(path, "/pods") }),
		"watched objects are not requested, in any namespace")
}

// A watch has every change of every pod, which costs more than it saves once few new ones come.
func TestAWatchEndsWhenFewNewObjectsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		r := inMemory(t, api, resolver.Config{})
		storm(t, api, r, "shop", "bank")
		synctest.Wait()
		require.Equal(t, 1, api.Watchers())
		for number := range 30 {
			newPod(api, "shop", 1000+number)
			newPod(api, "shop", 2000+number)
			time.Sleep(time.Second)
		}
		require.Equal(t, 1, api.Watchers(), "two a second are many")
		time.Sleep(30 * time.Second)
		require.Zero(t, api.Watchers())
	})
}

// Some events of a pod come after it is deleted.
func TestADeletedObjectThatWasWatchedIsKnown(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Config{CacheSize: 50})
	storm(t, api, r, "shop", "bank")
	api.AwaitRequest(t, "/api/v1/pods?watch")
	require.Eventually(t, func() bool { return api.Watchers() == 1 }, 10*time.Second, time.Millisecond)
	early := newPod(api, "shop", 1000)
	for number := range 100 {
		newPod(api, "shop", 2000+number) // They take its place in the cache.
	}
	api.Remove(apitest.Object{APIVersion: early.APIVersion, Kind: early.Kind, Namespace: early.Namespace, Name: early.Name})
	require.Eventually(t, func() bool {
		return resolve(t, r, early).Resolution == resolver.Complete
	}, 10*time.Second, time.Millisecond)
}

func TestOnlyTheConfiguredNamespacesAreWatched(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Config{Namespaces: []string{"shop", "bank"}})
	storm(t, api, r, "shop", "bank")
	api.AwaitRequest(t, "/api/v1/namespaces/shop/pods?watch")
	api.AwaitRequest(t, "/api/v1/namespaces/bank/pods?watch")
	require.NotContains(t, api.Seen(), "/api/v1/pods?watch")
}

func TestWithoutAWatchTheResolverStillWorks(t *testing.T) {
	for name, status := range map[string]int{
		"no permission": http.StatusForbidden, "no such thing": http.StatusNotFound, "too old": http.StatusGone,
		"answers something else": http.StatusOK,
	} {
		t.Run(name, func(t *testing.T) {
			api, observed := apitest.NewObjects(t), &observed{}
			api.Fail("/api/v1/pods?watch", apitest.Fault{Status: status})
			r := newResolver(t, api, resolver.Config{Observer: observed})
			storm(t, api, r, "shop", "bank")
			api.AwaitRequest(t, "/api/v1/pods?watch")
			storm(t, api, r, "town")
			watches := slices.DeleteFunc(api.Seen(), func(path string) bool { return !isWatchPath(path) })
			require.Len(t, watches, 1, "one attempt")
			require.Empty(t, observed.refused, "an optional permission is not reported as missing")
		})
	}
}

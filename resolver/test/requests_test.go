// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// crowd puts pods into a namespace, ten per ReplicaSet, each ReplicaSet with its own Deployment. It
// returns references to the pods.
func crowd(api *apitest.Objects, namespace string, pods int) []resolver.Reference {
	var refs []resolver.Reference
	var replicaSet apitest.Object
	for i := range pods {
		if i%10 == 0 {
			name := fmt.Sprintf("app-%03d", i/10)
			deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name, UID: namespace + "-d-" + name}
			replicaSet = apitest.Object{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: name + "-649447bf8", UID: namespace + "-r-" + name,
				Owners: []metav1.OwnerReference{apitest.OwnedBy(deployment, true)},
			}
			api.Put(deployment, replicaSet)
		}
		pod := apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("%s-%05d", replicaSet.Name, i),
			UID: fmt.Sprintf("%s-p-%05d", namespace, i), Owners: []metav1.OwnerReference{apitest.OwnedBy(replicaSet, true)},
		}
		api.Put(pod)
		refs = append(refs, refTo(pod))
	}
	return refs
}

func requireComplete(t testing.TB, chains []resolver.Chain) {
	for _, chain := range chains {
		require.Equal(t, resolver.ResolutionComplete, chain.Resolution, text(chain))
	}
}

func TestTheFirstUnknownObjectOfANamespaceIsReadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 8)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods[:1]))
		seen := api.Seen()
		require.Len(t, seen, 2+1+1+1, "2 discovery documents, the pod, its ReplicaSet, its Deployment")
		require.False(t, slices.ContainsFunc(seen, isListPath), seen)

		requireComplete(t, r.Resolve(t.Context(), pods[1:2]))
		require.Equal(t, []string{"/api/v1/namespaces/shop/pods?list"}, api.Seen(), "with the second, a list of ten objects is worth it")
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Empty(t, api.Seen())
	})
}

// A list is worth 20 times the objects that are needed.
func TestTheScopeOfAListIsChosenByItsCost(t *testing.T) {
	const inShop, everywhere = "/api/v1/namespaces/shop/pods?list", "/api/v1/pods?list"
	for name, test := range map[string]struct {
		inShop, inOthers, needed int
		want                     []string
	}{
		"few of a small namespace":             {10, 1000, 4, []string{inShop}},
		"many of a namespace":                  {500, 4000, 100, []string{everywhere, inShop, inShop}},
		"few of a large namespace":             {1000, 1000, 3, append(slices.Repeat([]string{"get"}, 3), inShop)},
		"many of a cluster with few elsewhere": {400, 100, 350, []string{everywhere, everywhere}},
		"few of a large cluster":               {100, 5000, 60, []string{everywhere, inShop}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				pods := crowd(api, "shop", test.inShop)
				crowd(api, "other", test.inOthers)
				r := inMemory(t, api, resolver.Settings{})
				requireComplete(t, r.Resolve(t.Context(), pods[len(pods)-test.needed:]))
				got := podRequests(api)
				for i, path := range got {
					if !isListPath(path) {
						got[i] = "get"
					}
				}
				slices.Sort(got)
				slices.Sort(test.want)
				require.Equal(t, test.want, got)
			})
		})
	}
}

func TestObjectsAreReadFromTheCacheOfTheAPIServer(t *testing.T) {
	api := apitest.NewObjects(t)
	pods := crowd(api, "shop", 1)
	requireComplete(t, newResolver(t, api, resolver.Settings{}).Resolve(t.Context(), pods))
	require.Equal(t, []string{
		"/api/v1/namespaces/shop/pods/app-000-649447bf8-00000",
		"/apis/apps/v1/namespaces/shop/deployments/app-000",
		"/apis/apps/v1/namespaces/shop/replicasets/app-000-649447bf8",
	}, api.FromCache())
}

func isListPath(path string) bool { return strings.HasSuffix(path, "?list") }

func TestManyUnknownObjectsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := append(crowd(api, "shop", 100), crowd(api, "bank", 100)...)
		crowd(api, "town", 1500)
		r := inMemory(t, api, resolver.Settings{ListNamespacesOnly: true})
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Equal(t, []string{
			"/api/v1/namespaces/bank/pods?list",
			"/api/v1/namespaces/shop/pods?list",
			"/apis/apps/v1/namespaces/bank/deployments?list",
			"/apis/apps/v1/namespaces/bank/replicasets?list",
			"/apis/apps/v1/namespaces/shop/deployments?list",
			"/apis/apps/v1/namespaces/shop/replicasets?list",
		}, api.SeenObjects(), "one list for each kind and namespace, none of all namespaces if only some are resolved")

		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Empty(t, api.Seen())
	})
}

func TestOneObjectAskedForManyTimesIsNotMany(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	r := newResolver(t, api, resolver.Settings{})
	requireComplete(t, r.Resolve(t.Context(), slices.Repeat([]resolver.Reference{refTo(deployment)}, 100)))
	require.Equal(t, []string{api.Path(deployment)}, api.SeenObjects())
}

func TestWhatAListBringsIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 100)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods[:90]))
		api.Seen()
		requireComplete(t, r.Resolve(t.Context(), pods[90:]))
		require.Empty(t, api.Seen(), "their ReplicaSet and its Deployment were in the lists of the others")
	})
}

func TestWhatAWholeListDoesNotHoldIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 10)
		gone := pods[0]
		gone.Name = "gone"
		another := pods[1]
		another.UID = "other"
		r := inMemory(t, api, resolver.Settings{})
		chains := r.Resolve(t.Context(), append(pods[2:], gone, another))
		requireComplete(t, chains[:8])
		require.Equal(t, resolver.ResolutionNotFound, chains[8].Resolution)
		require.Equal(t, resolver.ResolutionNotFound, chains[9].Resolution)
		require.Len(t, podRequests(api), 2, "a list from the API server's cache, and one that proves what does not exist")
	})
}

func TestAListIsReadInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 600)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Len(t, podRequests(api), 2, "a short one, which shows the size, and one of 500")
	})
}

// podRequests returns the requests for pods.
func podRequests(api *apitest.Objects) []string {
	return slices.DeleteFunc(api.Seen(), func(path string) bool { return !strings.Contains(path, "/pods") })
}

func TestANamespaceThatMayNotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, clock := apitest.NewObjectsInMemory(), newClock()
		pods := crowd(api, "shop", 20)
		api.Fail("/api/v1/namespaces/shop/pods?list", apitest.Fault{Status: http.StatusForbidden})
		r := inMemory(t, api, resolver.Settings{Now: clock.Now, ListNamespacesOnly: true})
		requireComplete(t, r.Resolve(t.Context(), pods[:10]))
		require.Len(t, podRequests(api), 1+10, "its objects are read one by one")
		requireComplete(t, r.Resolve(t.Context(), pods[10:]))
		require.Len(t, podRequests(api), 10, "and the list is not tried again")

		api.Heal("/api/v1/namespaces/shop/pods?list")
		clock.pass(time.Minute)
		requireComplete(t, r.Resolve(t.Context(), crowd(api, "shop", 40)[20:]))
		require.Len(t, podRequests(api), 1, "for a minute")
	})
}

// Without permission to list a kind in the whole cluster, its lists in namespaces do. Nobody has to
// permit more.
func TestAMissingPermissionThatIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, observed := apitest.NewObjectsInMemory(), &observed{}
		api.Fail("/api/v1/pods?list", apitest.Fault{Status: http.StatusForbidden})
		api.Fail("/api/v1/nodes?list", apitest.Fault{Status: http.StatusForbidden})
		r := inMemory(t, api, resolver.Settings{Observer: observed})
		requireComplete(t, r.Resolve(t.Context(), crowd(api, "shop", 30)))
		require.Empty(t, observed.refused)

		other := withUID(node, "n2")
		other.Name = "n2"
		api.Put(node, other)
		requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node), refTo(other)}))
		require.Equal(t, []string{"list nodes in "}, observed.refused, "a kind without namespaces has only this list")
	})
}

// A list that was never sent is not taken for one that failed.
func TestAListThatWasNeverSentIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		things := []resolver.Reference{refTo(numberedThing("Thing", 0)), refTo(numberedThing("Thing", 1))}
		api.Serve("example.com/v1", "Thing", "things", true)
		api.Put(node, numberedThing("Thing", 0), numberedThing("Thing", 1))
		config := &rest.Config{Host: "http://api", QPS: 1 / 1.5, Burst: 1, Transport: api}
		r, err := resolver.New(config, resolver.Settings{LookupTimeout: time.Second})
		require.NoError(t, err)
		defer r.Close()
		resolve(t, r, refTo(node))
		r.Resolve(t.Context(), things)
		api.Seen()
		requireComplete(t, r.Resolve(t.Context(), things))
		require.Equal(t, []string{"/apis/example.com/v1/namespaces/shop/things?list"}, api.Seen())
	})
}

func TestANamespaceThatMayNotBeRead(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	pods := crowd(api, "shop", 100)
	for _, ref := range pods {
		api.Fail("/api/v1/namespaces/shop/pods/"+ref.Name, apitest.Fault{Status: http.StatusForbidden})
	}
	api.Fail("/api/v1/namespaces/shop/pods?list", apitest.Fault{Status: http.StatusForbidden})
	r := newResolver(t, api, resolver.Settings{Now: clock.Now})
	for _, ref := range pods {
		require.Equal(t, resolver.ResolutionForbidden, resolve(t, r, ref).Resolution)
	}
	require.Len(t, podRequests(api), 3, "not one request per object")

	for _, ref := range pods {
		api.Heal("/api/v1/namespaces/shop/pods/" + ref.Name)
	}
	clock.pass(time.Minute)
	for _, ref := range pods {
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, ref).Resolution, "for a minute")
	}
}

func TestAKindThatCannotBeListed(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Serve("example.com/v1", "Thing", "things", true, "get")
	var refs []resolver.Reference
	for i := range 10 {
		o := apitest.Object{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "shop", Name: fmt.Sprint("t", i), UID: fmt.Sprint("u", i)}
		api.Put(o)
		refs = append(refs, refTo(o))
	}
	r := newResolver(t, api, resolver.Settings{})
	requireComplete(t, r.Resolve(t.Context(), refs))
	require.False(t, slices.ContainsFunc(api.Seen(), isListPath))
}

func TestCallsThatAskTheSameShareTheRequest(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	r := newResolver(t, api, resolver.Settings{})
	release := api.Hang(t, api.Path(deployment))

	answers := make(chan []resolver.Chain, 20)
	for range cap(answers) {
		go func() { answers <- r.Resolve(t.Context(), []resolver.Reference{refTo(deployment)}) }()
	}
	api.AwaitRequest(t, api.Path(deployment))
	release()
	for range cap(answers) {
		requireComplete(t, <-answers)
	}
	require.Equal(t, []string{api.Path(deployment)}, api.SeenObjects())
}

func TestACallWaitsForAListThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 20)
		const list = "/api/v1/namespaces/shop/pods?list"
		r := inMemory(t, api, resolver.Settings{})
		resolve(t, r, pods[19]) // so that discovery is done
		podRequests(api)
		release := api.Hang(t, list)

		answers := make(chan []resolver.Chain, 2)
		go func() { answers <- r.Resolve(t.Context(), pods[:10]) }()
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		go func() { answers <- r.Resolve(t.Context(), pods[10:12]) }()
		time.Sleep(100 * time.Millisecond)
		release()
		requireComplete(t, <-answers)
		requireComplete(t, <-answers)
		require.Equal(t, []string{list}, podRequests(api))
	})
}

// But it does not wait for a list that is slow.
func TestASlowListHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 16)
		r := inMemory(t, api, resolver.Settings{})
		defer api.Hang(t, "/api/v1/namespaces/shop/pods?list")()
		requireComplete(t, r.Resolve(t.Context(), pods[:8]))
		begun := time.Now()
		requireComplete(t, r.Resolve(t.Context(), pods[8:]))
		require.Less(t, time.Since(begun), 100*time.Millisecond)
		require.Len(t, podRequests(api), 1+16, "one list, and each object")
	})
}

// An object may be newer than a request that is in flight.
func TestARequestUnderWayProvesNothingAgainstANewerObject(t *testing.T) {
	api := apitest.NewObjects(t)
	r := newResolver(t, api, resolver.Settings{})
	older, hang := withUID(deployment, "d0"), make(chan struct{})
	api.Fail(api.Path(deployment), apitest.Fault{Hang: hang, Status: http.StatusNotFound, Times: 1})

	var callers sync.WaitGroup
	callers.Go(func() { require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, refTo(older)).Resolution) })
	api.AwaitRequest(t, api.Path(deployment))
	api.Put(deployment)
	callers.Go(func() { require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution) })
	time.Sleep(50 * time.Millisecond) // so that the second call has joined the first
	close(hang)
	callers.Wait()
}

// The API server answered a consistent request before the object was created, and the answer comes
// after it.
func TestAnAnswerFromBeforeProvesNothingAgainstANewerObject(t *testing.T) {
	for name, uids := range map[string]struct{ earlier, later string }{
		"two objects of one name":                      {"d0", deployment.UID},
		"an object, then whatever object has the name": {"d0", ""},
		"whatever object has the name, then an object": {"", deployment.UID},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, release := apitest.NewObjectsInMemory(), make(chan struct{})
				r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
					response, err := api.RoundTrip(r)
					if r.URL.Path == api.Path(deployment) && !r.URL.Query().Has("resourceVersion") {
						<-release
					}
					return response, err
				}), resolver.Settings{})
				earlier, later := refTo(withUID(deployment, uids.earlier)), refTo(withUID(deployment, uids.later))
				var callers sync.WaitGroup
				callers.Go(func() { require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, earlier).Resolution) })
				synctest.Wait()
				time.Sleep(10 * time.Millisecond)
				api.Put(deployment)
				callers.Go(func() { require.Equal(t, resolver.ResolutionComplete, resolve(t, r, later).Resolution) })
				time.Sleep(10 * time.Millisecond)
				close(release)
				callers.Wait()
			})
		})
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 7)
		r := inMemory(t, api, resolver.Settings{Concurrency: 2, LookupTimeout: 200 * time.Millisecond})
		resolve(t, r, resolver.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "none"})
		api.Seen()
		api.Fail("/api/v1/namespaces/shop/pods?list", apitest.Fault{Status: http.StatusForbidden})
		for _, ref := range pods {
			defer api.Hang(t, "/api/v1/namespaces/shop/pods/"+ref.Name)()
		}
		for _, chain := range r.Resolve(t.Context(), pods) {
			require.Equal(t, resolver.ResolutionTimeout, chain.Resolution)
		}
		require.Len(t, api.Seen(), 1+2, "one list, and two reads")
		for _, ref := range pods {
			api.Heal("/api/v1/namespaces/shop/pods/" + ref.Name)
		}
		require.Empty(t, api.Seen(), "what could not be sent in time is not sent later")
	})
}

func TestTheRateLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 30)
		config := &rest.Config{Host: "http://api", QPS: 0.001, Burst: 3, Transport: api}
		r, err := resolver.New(config, resolver.Settings{LookupTimeout: 200 * time.Millisecond})
		require.NoError(t, err)
		defer r.Close()
		r.Resolve(t.Context(), pods)
		require.Len(t, api.Seen(), 2+3, "2 discovery documents, which no limit counts, and a list of each kind")
		r.Resolve(t.Context(), crowd(api, "bank", 30))
		require.Empty(t, api.Seen())
		r.Resolve(t.Context(), crowd(api, "bank", 30))
		require.Empty(t, api.Seen(), "no queue is left behind")
	})
}

func TestARequestThatWasNeverSentIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		api.Put(numberedThing("Thing", 0), numberedThing("Thing", 1))
		config := &rest.Config{Host: "http://api", QPS: 1 / 1.5, Burst: 1, Transport: api}
		r, err := resolver.New(config, resolver.Settings{LookupTimeout: time.Second})
		require.NoError(t, err)
		defer r.Close()
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 0))).Resolution)
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(numberedThing("Thing", 1))).Resolution)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 1))).Resolution)
	})
}

// A Role can permit to read its own Namespace, but not to list all.
func TestTheClusterIsNotListedIfOnlyNamespacesMayBe(t *testing.T) {
	api := apitest.NewObjects(t)
	var refs []resolver.Reference
	for i := range 30 {
		o := apitest.Object{APIVersion: "v1", Kind: "Namespace", Name: fmt.Sprint("n", i), UID: fmt.Sprint("u", i)}
		api.Put(o)
		refs = append(refs, refTo(o))
	}
	r := newResolver(t, api, resolver.Settings{ListNamespacesOnly: true})
	requireComplete(t, r.Resolve(t.Context(), refs))
	require.False(t, slices.ContainsFunc(api.Seen(), isListPath))
}

func TestRequestsSayWhoAsks(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	resolve(t, newResolver(t, api, resolver.Settings{}), refTo(deployment))
	require.Equal(t, []string{"resolver-test"}, api.UserAgents())
}

func TestManyCallsAtOnce(t *testing.T) {
	api, clock := apitest.NewObjects(t), newClock()
	pods := append(crowd(api, "shop", 200), crowd(api, "bank", 200)...)
	r := newResolver(t, api, resolver.Settings{Now: clock.Now, CacheSize: 300, Observer: &observed{}})
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 50 {
				from := (i*37 + j*11) % (len(pods) - 20)
				requireComplete(t, r.Resolve(t.Context(), pods[from:from+20]))
				clock.pass(time.Second)
				require.LessOrEqual(t, r.Len(), 300)
			}
		})
	}
	callers.Wait()
}

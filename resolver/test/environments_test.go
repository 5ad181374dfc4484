// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// before is a fake API server that first does something with each request.
type before struct {
	*apitest.Objects
	handle func(w http.ResponseWriter, r *http.Request) (isAnswered bool)
}

func (b *before) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if b.handle(w, r) {
		return w.Result(), nil
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return b.Objects.RoundTrip(r)
}

func sleep(r *http.Request, d time.Duration) {
	if d <= 0 { // The race detector may crash if goroutines of one bubble read timers at once that are due.
		return
	}
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func withTransport(t *testing.T, api http.RoundTripper, settings resolver.Settings) *resolver.Resolver {
	r, err := resolver.New(&rest.Config{Host: "http://api", QPS: -1, Transport: api}, settings)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func numberedThing(kind string, i int) apitest.Object {
	return apitest.Object{APIVersion: "example.com/v1", Kind: kind, Namespace: "shop", Name: fmt.Sprint("t", i), UID: fmt.Sprint(kind, i)}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A replica of the API server that has just started does not serve all paths.
func TestKindsWhosePathIsMissingForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true)
		api.Serve("example.com/v1", "Gadget", "gadgets", true)
		api.Put(numberedThing("Thing", 1), numberedThing("Gadget", 1))
		var away atomic.Bool
		away.Store(true)
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			if away.Load() && strings.Contains(r.URL.Path, "/apis/example.com/v1/") {
				http.Error(w, "404 page not found", http.StatusNotFound)
				return true
			}
			return false
		}}, resolver.Settings{})
		for range 3 {
			resolve(t, r, refTo(numberedThing("Thing", 1)))
			resolve(t, r, refTo(numberedThing("Gadget", 1)))
			time.Sleep(time.Second)
		}
		away.Store(false)
		time.Sleep(15 * time.Second)
		resolve(t, r, refTo(numberedThing("Thing", 1)))
		time.Sleep(2 * time.Minute)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 1))).Resolution)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Gadget", 1))).Resolution)
	})
}

func TestADeletedObjectStaysKnownWhileTheDocumentsLagBehindItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true)
		api.Put(numberedThing("Thing", 1))
		var away atomic.Bool
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			if away.Load() && strings.Contains(r.URL.Path, "/apis/example.com/v1/") {
				http.Error(w, "404 page not found", http.StatusNotFound)
				return true
			}
			return false
		}}, resolver.Settings{CacheTTL: time.Minute})
		resolve(t, r, refTo(numberedThing("Thing", 1)))
		time.Sleep(61 * time.Second)
		away.Store(true)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 1))).Resolution)
		time.Sleep(3 * time.Second)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 1))).Resolution)
	})
}

func TestAnAnswerThatComesLateRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Put(node)
		r := inMemory(t, api, resolver.Settings{Trim: keepLabels, CacheTTL: time.Minute, LookupTimeout: 50 * time.Millisecond})
		resolve(t, r, refTo(deploymentLabelled(api, "old")))
		time.Sleep(2 * time.Minute)
		deploymentLabelled(api, "new")
		synctest.Wait()
		api.Delay = 80 * time.Millisecond // slower than callers wait
		resolve(t, r, refTo(deployment))
		time.Sleep(time.Second)
		got := resolve(t, r, refTo(deployment))
		require.Equal(t, "new", got.Objects[0].Labels["tilt-manifest"])
	})
}

func deploymentLabelled(api *apitest.Objects, value string) apitest.Object {
	d := deployment
	d.Labels = map[string]string{"tilt-manifest": value}
	api.Put(d)
	return d
}

func TestUnusualValuesOfRetryAfter(t *testing.T) {
	for _, value := range []string{"0", "-1", "86400", "99999999999", "9999999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 GMT"} {
		for _, where := range []string{"/apis/apps/v1/", "/apis"} {
			t.Run(value+" "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					api := apitest.NewObjectsInMemory()
					api.Delay = time.Millisecond
					api.Put(deployment)
					var busy atomic.Bool
					var n atomic.Int64
					busy.Store(true)
					r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
						if busy.Load() && (strings.HasPrefix(r.URL.Path, where) && where != "/apis" || r.URL.Path == where) {
							n.Add(1)
							sleep(r, time.Millisecond)
							w.Header().Set("Retry-After", value)
							http.Error(w, "too many requests", http.StatusTooManyRequests)
							return true
						}
						return false
					}}, resolver.Settings{})
					resolve(t, r, refTo(deployment))
					time.Sleep(2 * time.Second)
					require.Less(t, n.Load(), int64(20))
					busy.Store(false)
					time.Sleep(3 * time.Minute)
					resolve(t, r, refTo(deployment))
					require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution)
				})
			})
		}
	}
}

func TestTheWatchCacheDoesNotProveThatANewerObjectDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale, api := apitest.NewObjectsInMemory(), apitest.NewObjectsInMemory()
		r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("resourceVersion") == "0" {
				return stale.RoundTrip(r)
			}
			return api.RoundTrip(r)
		}), resolver.Settings{})
		for i := range 20 { // The order of the two is random.
			older := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: fmt.Sprint("n", i), Name: "web-0", UID: fmt.Sprint("old", i)}
			newer := withUID(older, fmt.Sprint("new", i))
			stale.Put(older)
			api.Put(newer)
			chains := r.Resolve(t.Context(), []resolver.Reference{refTo(older), refTo(newer)})
			require.Equal(t, resolver.ResolutionComplete, chains[1].Resolution)
		}
	})
}

func TestAListThatDoesNotSayHowMuchIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.JSON = true
		pods := crowd(api, "shop", memorytest.Sized(30_000, 6_000))
		half := len(pods) / 2
		r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := api.RoundTrip(r)
			if err != nil || !strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Has("watch") {
				return response, err
			}
			return withoutRemaining(t, response), nil
		}), resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods[half:half+30]))
		time.Sleep(time.Minute)
		require.Less(t, api.Read(), 2000)
	})
}

// withoutRemaining removes the count from a page.
func withoutRemaining(t *testing.T, response *http.Response) *http.Response {
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var all map[string]any
	if json.Unmarshal(b, &all) == nil {
		if m, ok := all["metadata"].(map[string]any); ok {
			delete(m, "remainingItemCount")
		}
		b, _ = json.Marshal(all)
	}
	response.Body = io.NopCloser(bytes.NewReader(b))
	return response
}

func TestTheRateLimitHoldsAfterCallersThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		var refs []resolver.Reference
		for i := range 2000 {
			api.Put(numberedThing("Thing", i))
			refs = append(refs, refTo(numberedThing("Thing", i)))
		}
		var delay atomic.Int64
		slowed := &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
			sleep(r, time.Duration(delay.Load()))
			return false
		}}
		r, err := resolver.New(&rest.Config{Host: "http://api", QPS: 10, Burst: 10, Transport: slowed}, resolver.Settings{Concurrency: 4, LookupTimeout: 20 * time.Millisecond})
		require.NoError(t, err)
		defer r.Close()
		resolve(t, r, refs[0])
		for i := range 60 {
			delay.Store(int64(30 * time.Millisecond))
			r.Resolve(t.Context(), refs[1+i*30:1+i*30+30])
			time.Sleep(2 * time.Second)
		}
		delay.Store(0)
		api.Seen()
		r.Resolve(t.Context(), refs[1801:2000])
		require.LessOrEqual(t, countThings(api), 10+10+1)
	})
}

func TestTooManyRequestsWhileAKindHangsDoNotCloseOtherKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 4)
		api.Put(node)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node)}))
		hang := make(chan struct{})
		defer close(hang)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Hang: hang})
		}
		api.Fail("/api/v1/nodes/n1", apitest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1, Times: 3})
		r.Resolve(t.Context(), pods)
		other := apitest.Object{APIVersion: "v1", Kind: "Node", Name: "n2", UID: "n2-uid"}
		api.Put(other)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(other)).Resolution)
	})
}

func TestAListThatIsSlowWhileSingleReadsAreQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Put(node)
		pods := crowd(api, "shop", 500)
		r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				sleep(r, 3*time.Second)
			}
			return false
		}}, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node)}))
		requireComplete(t, r.Resolve(t.Context(), pods[:50]))
		requireComplete(t, r.Resolve(t.Context(), pods[50:100]))
	})
}

func TestAnAPIServerThatIsSlowButInTime(t *testing.T) {
	for _, delay := range []time.Duration{600 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Put(node, deployment)
				r := inMemory(t, api, resolver.Settings{})
				requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node)}))
				synctest.Wait()
				api.Delay = delay
				requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(deployment)}))
			})
		})
	}
}

// On a busy machine, the requests that are sent first are answered one after the other.
func TestRequestsThatAreSentTogetherAreComparedWithEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		first, others, timeout time.Duration
	}{
		"the first is answered soon enough to be compared": {90 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second},
		"callers have more time":                           {20 * time.Millisecond, 2 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				var pods []resolver.Reference
				for i := range 10 { // Each is read by itself.
					pods = append(pods, crowd(api, fmt.Sprint("n", i), 1)...)
				}
				r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
					switch {
					case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/n0/pods/"):
						sleep(r, test.first)
					case strings.Contains(r.URL.Path, "/pods/"):
						sleep(r, test.others)
					}
					return false
				}}, resolver.Settings{LookupTimeout: test.timeout})
				requireComplete(t, r.Resolve(t.Context(), pods))
			})
		})
	}
}

func TestAKindThatIsSlowIsNotGivenUpAgainAndAgain(t *testing.T) {
	for name, isSlow := range map[string]func(thing int) bool{
		"all objects are slow": func(int) bool { return true },
		"some objects are":     func(thing int) bool { return thing%3 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.NewObjectsInMemory()
				api.Serve("example.com/v1", "Thing", "things", true)
				api.Delay = time.Millisecond
				api.Put(node)
				r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
					var thing int
					if _, name, isThing := strings.Cut(r.URL.Path, "/things/t"); isThing {
						thing, _ = strconv.Atoi(name)
						if isSlow(thing) {
							sleep(r, 400*time.Millisecond)
						}
					}
					return false
				}}, resolver.Settings{})
				resolve(t, r, refTo(node))
				var got []resolver.Resolution
				for i := range 10 {
					api.Put(numberedThing("Thing", i))
					got = append(got, resolve(t, r, refTo(numberedThing("Thing", i))).Resolution)
					time.Sleep(65 * time.Second)
				}
				require.NotContains(t, got[1:], resolver.ResolutionTimeout, got)
			})
		})
	}
}

func TestAKindThatIsRefusedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 400)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1})
		}
		healthy := crowd(api, "shop", 400)
		r := inMemory(t, api, resolver.Settings{})
		slow := 0
		for i := range 40 {
			begun := time.Now()
			r.Resolve(t.Context(), append(healthy[i*10:i*10+10:i*10+10], pods[i*10:i*10+10]...))
			if time.Since(begun) > 200*time.Millisecond {
				slow++
			}
		}
		require.Less(t, slow, 6)
	})
}

// Others do not wait for a kind that the API server wants later than callers wait.
func TestAKindThatIsWantedMuchLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods, things := withCustomOwners(api, 10)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 60})
		}
		r := inMemory(t, api, resolver.Settings{})
		r.Resolve(t.Context(), pods[:1])
		begun := time.Now()
		for i := 1; i < len(pods); i++ {
			require.Equal(t, resolver.ResolutionTimeout, r.Resolve(t.Context(), pods[i:i+1])[0].Resolution)
		}
		require.Less(t, time.Since(begun), 100*time.Millisecond)
	})
}

func TestEtcdStallsWhileTheWatchCacheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Put(node, deployment)
		one := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "new"}
		api.Put(one)
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/web-0") {
				if r.URL.Query().Get("resourceVersion") == "0" {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusNotFound)
					_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","details":{"name":"web-0","kind":"pods"},"code":404}`)
					return true
				}
			}
			if r.URL.Query().Get("resourceVersion") == "" && strings.Contains(r.URL.Path, "/v1/") {
				sleep(r, 800*time.Millisecond)
			}
			return false
		}}, resolver.Settings{})
		resolve(t, r, refTo(node))
		go func() { // The watch cache answers this one while the other waits for etcd.
			time.Sleep(100 * time.Millisecond)
			r.Resolve(t.Context(), []resolver.Reference{refTo(deployment)})
		}()
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(one)).Resolution)
	})
}

// That an object does not exist is an answer, too: its kind works.
func TestAnObjectThatDoesNotExistShowsThatItsKindWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		hanging, gone, other := numberedThing("Thing", 0), numberedThing("Thing", 1), numberedThing("Thing", 2)
		api.Put(hanging, other)
		api.Hang(t, api.Path(hanging))
		r := inMemory(t, api, resolver.Settings{})
		go r.Resolve(t.Context(), []resolver.Reference{refTo(hanging)})
		time.Sleep(time.Second)
		require.Equal(t, resolver.ResolutionNotFound, resolve(t, r, refTo(gone)).Resolution)
		time.Sleep(2 * time.Second)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(other)).Resolution)
	})
}

// The watch cache goes on to answer that it does not have the objects, and only etcd could prove it.
func TestAnswersOfTheWatchCacheDoNotHideThatEtcdHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/things/") && !r.URL.Query().Has("resourceVersion") {
				sleep(r, time.Hour)
			}
			return false
		}}, resolver.Settings{})
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() { resolve(t, r, refTo(numberedThing("Thing", i))) })
			time.Sleep(100 * time.Millisecond)
		}
		begun := time.Now()
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(numberedThing("Thing", 30))).Resolution)
		require.Zero(t, time.Since(begun))
		callers.Wait()
	})
}

func TestAKindThatFailedAndIsThenForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		api.Serve("example.com/v1", "Thing", "things", true, "get")
		for i := range 10 {
			api.Fail(fmt.Sprint("/apis/example.com/v1/namespaces/shop/things/t", i), apitest.Fault{Status: 500})
		}
		r := inMemory(t, api, resolver.Settings{})
		for i := range 4 {
			resolve(t, r, refTo(numberedThing("Thing", i)))
		}
		for i := range 10 {
			api.Fail(fmt.Sprint("/apis/example.com/v1/namespaces/shop/things/t", i), apitest.Fault{Status: 403})
		}
		time.Sleep(6 * time.Second)
		resolve(t, r, refTo(numberedThing("Thing", 5)))
		time.Sleep(6 * time.Second)
		require.Equal(t, resolver.ResolutionForbidden, resolve(t, r, refTo(numberedThing("Thing", 6))).Resolution)
	})
}

// After a while without lookups, a kind that works again is not taken for one that hangs.
func TestAKindThatWorksAgainBeforeItsNextLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 5)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Status: http.StatusInternalServerError})
		}
		r := inMemory(t, api, resolver.Settings{})
		r.Resolve(t.Context(), pods[:4])
		for _, path := range things {
			api.Heal(path)
		}
		time.Sleep(20 * time.Second)
		requireComplete(t, r.Resolve(t.Context(), pods[4:]))
	})
}

// Any user may write 256 KiB of annotations to an object, and a page of 500 such objects takes
// hundreds of MiB. What the first page shows counts for the next ones, and for the next list.
func TestPagesOfLargeObjectsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		var refs []resolver.Reference
		for i := range 300 {
			large := numberedThing("Service", i)
			large.APIVersion = "v1"
			large.Annotations = map[string]string{"note": strings.Repeat("n", 250<<10)}
			api.Put(large)
			refs = append(refs, refTo(large))
		}
		var limits []int
		r := withTransport(t, roundTrip(func(request *http.Request) (*http.Response, error) {
			if limit, err := strconv.Atoi(request.URL.Query().Get("limit")); err == nil {
				limits = append(limits, limit)
			}
			return api.RoundTrip(request)
		}), resolver.Settings{CacheSize: 10})
		for range 2 {
			for _, chain := range r.Resolve(t.Context(), refs) {
				require.Equal(t, resolver.ResolutionComplete, chain.Resolution)
			}
			time.Sleep(time.Minute)
		}
		require.Greater(t, len(limits), 10)
		require.LessOrEqual(t, slices.Max(limits[:1]), 100)
		require.LessOrEqual(t, slices.Max(limits[1:]), 8<<20/(250<<10))
	})
}

// A consistent list that is in flight may be older than an object that a later caller needs.
func TestAListUnderWayProvesNothingAgainstANewerObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 10)
		release := make(chan struct{})
		r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := api.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/pods") && !r.URL.Query().Has("resourceVersion") {
				b, _ := io.ReadAll(response.Body)
				response.Body = io.NopCloser(bytes.NewReader(b))
				<-release
			}
			return response, err
		}), resolver.Settings{})
		gone, alsoGone := pods[0], pods[1]
		gone.Name, alsoGone.Name = "gone", "gone-too"
		var callers sync.WaitGroup
		callers.Go(func() {
			chains := r.Resolve(t.Context(), append(pods, gone, alsoGone))
			require.Equal(t, resolver.ResolutionNotFound, chains[len(pods)].Resolution)
		})
		time.Sleep(10 * time.Millisecond)
		newer := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "newer", UID: "newer"}
		api.Put(newer)
		callers.Go(func() { require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(newer)).Resolution) })
		time.Sleep(10 * time.Millisecond)
		close(release)
		callers.Wait()
	})
}

// A list shows that objects are missing, and the list that would prove it fails.
func TestAListThatFailsProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 10)
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			isList := strings.HasSuffix(r.URL.Path, "/pods")
			if isList && r.URL.Query().Has("resourceVersion") { // The watch cache lags behind.
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`)
			} else if isList {
				http.Error(w, "etcd is away", http.StatusInternalServerError)
			}
			return isList
		}}, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods))
	})
}

// While discovery hangs, only the first callers wait for it.
func TestDiscoveryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Put(deployment)
		hang := make(chan struct{})
		defer close(hang)
		api.Fail("/apis", apitest.Fault{Hang: hang})
		r := inMemory(t, api, resolver.Settings{})
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(deployment)).Resolution)
		begun := time.Now()
		require.Equal(t, resolver.ResolutionTimeout, resolve(t, r, refTo(deployment)).Resolution)
		require.Zero(t, time.Since(begun))
	})
}

// Requests that hang go on to hang when their kind works again.
func TestAKindThatWorksAgainWhileFormerReadsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		pods, things := withCustomOwners(api, 40)
		api.Put(node)
		r := inMemory(t, api, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), []resolver.Reference{refTo(node)}))
		hang := make(chan struct{})
		defer close(hang)
		for _, path := range things {
			api.Fail(path, apitest.Fault{Hang: hang})
		}
		require.Equal(t, resolver.ResolutionTimeout, r.Resolve(t.Context(), pods[:5])[0].Resolution)
		for _, path := range things {
			api.Heal(path)
		}
		time.Sleep(6 * time.Second)
		for i := 5; i < len(pods); i += 5 { // until after their timeout, 10 s
			requireComplete(t, r.Resolve(t.Context(), pods[i:i+5]))
			time.Sleep(time.Second)
		}
	})
}

// The object that was answered last is the only one that stays unreadable.
func TestAKindWorksAgainAlthoughTheObjectThatWasAnsweredLastDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true)
		for i := range 5 {
			api.Put(numberedThing("Thing", i))
		}
		var failing atomic.Value
		failing.Store("none")
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			isList := strings.HasSuffix(r.URL.Path, "/things")
			if !isList && !strings.Contains(r.URL.Path, failing.Load().(string)) {
				return false
			}
			http.Error(w, "conversion failed", http.StatusInternalServerError)
			return true
		}}, resolver.Settings{})
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 0))).Resolution)
		failing.Store("/things/")
		for i := range 3 {
			require.Equal(t, resolver.ResolutionUnavailable, resolve(t, r, refTo(numberedThing("Thing", i+1))).Resolution)
		}
		failing.Store("/things/t0")
		time.Sleep(time.Second)
		require.Equal(t, resolver.ResolutionUnavailable, resolve(t, r, refTo(numberedThing("Thing", 4))).Resolution, "it is not worth waiting for")
		time.Sleep(time.Minute)
		require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(numberedThing("Thing", 4))).Resolution)
	})
}

// A server or a proxy may ignore the limit of a page, and answer with everything.
// A proxy may reject names that anyone may write into an Event, such as one with a control character.
func TestNamesThatAreRejectedStopNoLookupsOfTheirKind(t *testing.T) {
	api := apitest.NewObjects(t)
	api.Put(deployment)
	r := newResolver(t, api, resolver.Settings{})
	for i := range 4 {
		rejected := deployment
		rejected.Name, rejected.UID = fmt.Sprint("rejected-", i), fmt.Sprint("r", i)
		api.Fail(api.Path(rejected), apitest.Fault{Status: http.StatusBadRequest})
		require.Equal(t, resolver.ResolutionUnavailable, resolve(t, r, refTo(rejected)).Resolution)
	}
	require.Equal(t, resolver.ResolutionComplete, resolve(t, r, refTo(deployment)).Resolution)
}

func TestAnEndlessAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 5)
		var read atomic.Int64
		r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := api.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/pods") {
				response.Body = io.NopCloser(io.TeeReader(endless{}, counter{&read}))
			}
			return response, err
		}), resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Less(t, read.Load(), int64(40<<20))
	})
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// The caller that an object was first requested for leaves while a list is under way. Others want the
// same objects, which are newer than the list.
func TestACallerThatLeavesAListLeavesTheRequestToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Serve("example.com/v1", "Thing", "things", true)
		r := withTransport(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := api.RoundTrip(r)
			if err == nil && strings.Contains(r.URL.Path, "/things") {
				b, _ := io.ReadAll(response.Body)
				response.Body = io.NopCloser(bytes.NewReader(b))
				sleep(r, 300*time.Millisecond)
			}
			return response, err
		}), resolver.Settings{})
		things := []resolver.Reference{refTo(numberedThing("Thing", 1)), refTo(numberedThing("Thing", 2))}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		var first sync.WaitGroup
		first.Go(func() { r.Resolve(ctx, things) })
		time.Sleep(100 * time.Millisecond)
		api.Put(numberedThing("Thing", 1), numberedThing("Thing", 2))
		requireComplete(t, r.Resolve(t.Context(), things))
		first.Wait()
	})
}

// With many namespaces, many lists hang at a time. Single reads have slots of their own.
func TestListsThatHangLeaveTheirSlotsToReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		var pods []resolver.Reference
		for i := range 150 {
			pods = append(pods, crowd(api, fmt.Sprint("n", i), 4)...)
		}
		r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				sleep(r, time.Hour)
			}
			return false
		}}, resolver.Settings{})
		for range 2 {
			requireComplete(t, r.Resolve(t.Context(), pods[:300]))
			time.Sleep(time.Second)
			pods = pods[300:]
		}
	})
}

// One webhook often converts several kinds.
func TestFiveKindsThatHangHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		api.Delay = time.Millisecond
		var hanging []resolver.Reference
		for k := range 5 {
			kind := fmt.Sprint("Thing", k)
			api.Serve("example.com/v1", kind, strings.ToLower(kind)+"s", true)
			for i := range 110 {
				hanging = append(hanging, refTo(numberedThing(kind, i)))
			}
		}
		pods := crowd(api, "shop", 50)
		r := withTransport(t, &before{api, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/thing") {
				sleep(r, time.Hour)
			}
			return false
		}}, resolver.Settings{})
		r.Resolve(t.Context(), hanging)
		begun := time.Now()
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.Less(t, time.Since(begun), 100*time.Millisecond)
	})
}

// A broken server answers with empty pages that always name another one.
func TestEmptyPagesAreNotReadForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewObjectsInMemory()
		pods := crowd(api, "shop", 5)
		var lists atomic.Int64
		r := withTransport(t, &before{api, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/pods") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"%d"},"items":[]}`, lists.Add(1))
			return true
		}}, resolver.Settings{})
		requireComplete(t, r.Resolve(t.Context(), pods))
		require.EqualValues(t, 1, lists.Load())
	})
}

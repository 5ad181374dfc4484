// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

var pods = schema.GroupResource{Resource: "pods"}

// inBubble runs a test in simulated time, with a server that runs.
func inBubble(t *testing.T, options Options, test func(t *testing.T, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		s := New(options)
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		test(t, s)
		cancel()
		synctest.Wait()
	})
}

func newEvent(name string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Count: count}
}

func (s *Server) mustCreate(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := s.Create(eventsResource, newEvent(name, 1))
		require.NoError(t, err)
	}
}

// ask sends a request. The status is 0 if the connection breaks.
func ask(s *Server, method, url, body string) (status int, answer string, header http.Header) {
	recorder := httptest.NewRecorder()
	defer func() {
		if recovered := recover(); recovered != nil {
			status, answer = 0, recorder.Body.String()
		}
	}()
	request := httptest.NewRequest(method, url, strings.NewReader(body))
	request.Header.Set("Accept", runtime.ContentTypeProtobuf)
	s.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String(), recorder.Header()
}

// history writes down what happened to events since a number of writes.
func history(s *Server, since int) (all []string) {
	for _, w := range s.History()[since:] {
		all = append(all, fmt.Sprintf("%d: %s %s", w.Version, w.Type, w.Event.Name))
	}
	return all
}

func TestEventsShareLeases(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a", "b")
		time.Sleep(30 * time.Second)
		s.mustCreate(t, "c")
		time.Sleep(40 * time.Second)
		s.mustCreate(t, "d") // It needs a lease that lasts longer.
		_, err := s.Update(eventsResource, newEvent("b", 2))
		require.NoError(t, err)
		// That changes nothing, not even the lease.
		_, err = s.Update(eventsResource, newEvent("c", 1))
		require.NoError(t, err)
		time.Sleep(time.Hour + 60*time.Second - 71*time.Second)
		assert.Len(t, s.History(), 5)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"8: DELETED a", "8: DELETED c"}, history(s, 5))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"9: DELETED b", "9: DELETED d"}, history(s, 7))
	})
}

func TestALeaseHoldsAThousandEvents(t *testing.T) {
	inBubble(t, Options{EventTTL: 10 * time.Minute}, func(t *testing.T, s *Server) {
		for i := range mostOnLease + 1 {
			s.mustCreate(t, fmt.Sprintf("e%04d", i))
		}
		before := s.Version()
		time.Sleep(10*time.Minute + 30*time.Second)
		synctest.Wait()
		assert.Equal(t, before+2, s.Version())
		assert.Equal(t, []string{fmt.Sprintf("%d: DELETED e1000", before+2)},
			history(s, 2*mostOnLease+1))
	})
}

func TestVersionsAreCompacted(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a", "b")
		old, recent := s.Version()-1, s.Version()+1
		watched := func(version int64) string {
			_, messages, _ := ask(s, http.MethodGet,
				fmt.Sprintf("/api/v1/events?watch=1&timeoutSeconds=1&resourceVersion=%d", version),
				"")
			return messages
		}
		time.Sleep(6 * time.Minute) // Up to the version at the start.
		s.mustCreate(t, "c", "d")
		assert.Contains(t, watched(old), "ADDED")
		time.Sleep(5 * time.Minute) // Up to the version of five minutes ago.
		assert.Contains(t, watched(recent), "ADDED")
		assert.NotContains(t, watched(old), "ERROR", "the compacted version itself is there")
		assert.Contains(t, watched(old-1), "Expired")
		time.Sleep(5 * time.Minute)
		assert.Contains(t, watched(old), "Expired")
	})
}

func TestTheWatchCacheIsBehind(t *testing.T) {
	inBubble(t, Options{CacheLag: 2 * time.Second}, func(t *testing.T, s *Server) {
		_, err := s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
			Name: "a-pod"}})
		require.NoError(t, err)
		const pod, list = "/api/v1/namespaces/ns/pods/a-pod", "/api/v1/pods?resourceVersion="
		statusOf := func(url string) int {
			status, _, _ := ask(s, http.MethodGet, url, "")
			return status
		}
		assert.Equal(t, http.StatusNotFound, statusOf(pod+"?resourceVersion=0"))
		assert.Equal(t, http.StatusOK, statusOf(pod))
		_, stale, _ := ask(s, http.MethodGet, list+"0", "")
		assert.NotContains(t, stale, "a-pod")

		began := time.Now()
		_, messages, _ := ask(s, http.MethodGet,
			"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=1", "")
		assert.Empty(t, messages)
		_, messages, _ = ask(s, http.MethodGet,
			"/api/v1/pods?watch=1&timeoutSeconds=2&resourceVersion=1", "")
		assert.Contains(t, messages, "ADDED")
		assert.Equal(t, 3*time.Second, time.Since(began))

		s.mustCreate(t, "an-event")
		began = time.Now()
		assert.Equal(t, http.StatusOK, statusOf(list+fmt.Sprint(s.Version())),
			"it waits for the version")
		assert.InDelta(t, 2, time.Since(began).Seconds(), 0.1)
		assert.Equal(t, http.StatusGatewayTimeout, statusOf(list+"1000"))
	})
}

func TestWhatIsDecidedHappens(t *testing.T) {
	var answer Answer
	var asked []Request
	decide := func(r Request) Answer {
		asked = append(asked, r)
		return answer
	}
	inBubble(t, Options{Decide: decide}, func(t *testing.T, s *Server) {
		const configMaps = "/api/v1/namespaces/ns/configmaps"
		answer = Answer{Status: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond,
			Delay: time.Second}
		began := time.Now()
		status, _, header := ask(s, http.MethodGet, configMaps+"/a", "")
		assert.Equal(t, http.StatusTooManyRequests, status)
		assert.Equal(t, "2", header.Get("Retry-After"))
		assert.Equal(t, time.Second, time.Since(began))

		answer = Answer{LoseAnswer: true}
		status, body, _ := ask(s, http.MethodPost, configMaps,
			`{"metadata":{"namespace":"ns","name":"a"}}`)
		assert.Zero(t, status)
		assert.Empty(t, body)
		answer = Answer{}
		status, _, _ = ask(s, http.MethodGet, configMaps+"/a", "")
		assert.Equal(t, http.StatusOK, status, "the server acted")

		s.mustCreate(t, "a", "b", "c")
		answer = Answer{CutAfter: 2}
		for range 2 {
			status, body, _ = ask(s, http.MethodGet, "/api/v1/events?watch=1&timeoutSeconds=60", "")
			assert.Zero(t, status)
			assert.Equal(t, 2, strings.Count(body, "ADDED"))
		}
		assert.Equal(t, Request{Verb: "watch", Resource: eventsResource, Number: 1}, asked[len(asked)-1])
	})
}

const single = "/api/v1/namespaces/ns/events?fieldSelector=metadata.name%3D"

// listOf decodes an answer that must be a list of events.
func listOf(t *testing.T, s *Server, url string) *corev1.EventList {
	t.Helper()
	status, body, _ := ask(s, http.MethodGet, url, "")
	require.Equal(t, http.StatusOK, status, url)
	list, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
	require.NoError(t, err)
	return list.(*corev1.EventList)
}

func TestAListOfASingleName(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a", "b", "c")
		for name, items := range map[string]int{"b": 1, "none": 0} {
			list := listOf(t, s, single+name+"&limit=1")
			assert.Len(t, list.Items, items)
			assert.Equal(t, fmt.Sprint(s.Version()), list.ResourceVersion)
			assert.Empty(t, list.Continue)
		}
		exact := "&limit=1&resourceVersionMatch=Exact&resourceVersion="
		assert.Empty(t, listOf(t, s, single+"c"+exact+fmt.Sprint(s.Version()-1)).Items)
	})
}

func TestAListAtAnExactVersion(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a", "b", "c")
		at := s.Version()
		s.mustCreate(t, "d")
		const all = "/api/v1/events?limit=2"
		exact := all + "&resourceVersionMatch=Exact&resourceVersion="
		first := listOf(t, s, exact+fmt.Sprint(at))
		assert.Len(t, first.Items, 2)
		rest := listOf(t, s, all+"&continue="+first.Continue)
		assert.Len(t, rest.Items, 1)
		assert.Equal(t, fmt.Sprint(at), rest.ResourceVersion)
		status, body, _ := ask(s, http.MethodGet, exact+"1000", "")
		assert.Equal(t, http.StatusGatewayTimeout, status)
		assert.Contains(t, body, metav1.CauseTypeResourceVersionTooLarge)
		s.Compact()
		status, _, _ = ask(s, http.MethodGet, exact+fmt.Sprint(at), "")
		assert.Equal(t, http.StatusGone, status)
	})
}

func TestARestoredBackup(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a")
		backup := s.Backup()
		s.mustCreate(t, "b")
		at := s.Version()
		broke := make(chan string)
		go func() {
			status, messages, _ := ask(s, http.MethodGet,
				"/api/v1/events?watch=1&resourceVersion="+fmt.Sprint(at), "")
			broke <- fmt.Sprint(status, messages)
		}()
		synctest.Wait()
		s.Restore(backup)
		assert.Equal(t, "0", <-broke)
		assert.Equal(t, at-1, s.Version())
		s.mustCreate(t, "c")
		assert.Equal(t, s.History()[1].Version, s.History()[2].Version)
		assert.Equal(t, []int{0, 0, 1}, []int{s.History()[0].Epoch, s.History()[1].Epoch,
			s.History()[2].Epoch})

		s.Replace("another")
		assert.EqualValues(t, 2, s.Version())
		system, err := s.Get(namespacesResource, "", metav1.NamespaceSystem)
		require.NoError(t, err)
		assert.EqualValues(t, "another", system.GetUID())
	})
}

func TestWhatIsSentIsReported(t *testing.T) {
	var reports []string
	options := Options{
		Listed: func(l List) {
			reports = append(reports, fmt.Sprintln(l.Client, l.Namespace, l.Version, l.Complete))
		},
		Sent: func(client string, change watch.EventType, ev *corev1.Event, size int) {
			reports = append(reports, fmt.Sprintln(client, change, ev.Name, size > 0))
		},
	}
	inBubble(t, options, func(t *testing.T, s *Server) {
		s.mustCreate(t, "a", "b")
		_, page, _ := ask(s, http.MethodGet, "/api/v1/namespaces/ns/events?limit=1", "")
		list, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(page), nil, nil)
		require.NoError(t, err)
		token := list.(*corev1.EventList).Continue
		s.mustCreate(t, "c")
		ask(s, http.MethodGet, "/api/v1/namespaces/ns/events?limit=1&continue="+token, "")
		ask(s, http.MethodGet, single+"a&limit=1", "") // is not reported
		assert.Equal(t, []string{" ns 4 false\n", " ADDED a true\n", " ADDED b true\n",
			" ns 4 true\n"}, reports)
	})
}

func TestAListOfTheWholeClusterHasPages(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		for i := range 5 {
			_, err := s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint("ns-", i), Name: "a-pod"}})
			require.NoError(t, err)
		}
		read := func(query string) (items int, list *metav1.PartialObjectMetadataList) {
			request := httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+query, nil)
			request.Header.Set("Accept", runtime.ContentTypeProtobuf+
				";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
			recorder := httptest.NewRecorder()
			s.ServeHTTP(recorder, request)
			require.Equal(t, http.StatusOK, recorder.Code)
			var unknown runtime.Unknown
			require.NoError(t, unknown.Unmarshal(recorder.Body.Bytes()[4:]))
			list = &metav1.PartialObjectMetadataList{}
			require.NoError(t, list.Unmarshal(unknown.Raw))
			return len(list.Items), list
		}
		items, first := read("limit=3")
		assert.Equal(t, 3, items)
		assert.EqualValues(t, 2, *first.RemainingItemCount)
		items, rest := read("limit=3&continue=" + first.Continue)
		assert.Equal(t, 2, items)
		assert.Equal(t, "ns-3", rest.Items[0].Namespace)
		assert.Empty(t, rest.Continue)
		assert.Nil(t, rest.RemainingItemCount)
		items, cached := read("limit=3&resourceVersion=0")
		assert.Equal(t, 5, items, "the watch cache has no pages")
		assert.Nil(t, cached.RemainingItemCount)
	})
}

func TestAnOldServerHasTheOldDiscovery(t *testing.T) {
	inBubble(t, Options{OldDiscovery: true}, func(t *testing.T, s *Server) {
		const as = "application/json;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;v="
		for _, path := range []string{"/api", "/apis"} {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Header.Set("Accept", as+"v2,"+as+"v2beta1,application/json")
			recorder := httptest.NewRecorder()
			s.ServeHTTP(recorder, request)
			assert.Contains(t, recorder.Header().Get("Content-Type"), "v=v2beta1")
			assert.Contains(t, recorder.Body.String(), map[string]string{
				"/api": `"resource":"pods"`, "/apis": `"resource":"deployments"`}[path])
		}
	})
}

func TestAnAggregatedAPIThatDoesNotAnswer(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.AddKind(Kind{Group: "example.com", Versions: []string{"v1"}, Kind: "Thing", Resource: "things"})
		discover := func() string {
			request := httptest.NewRequest(http.MethodGet, "/apis", nil)
			request.Header.Set("Accept",
				"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			recorder := httptest.NewRecorder()
			s.ServeHTTP(recorder, request)
			return recorder.Body.String()
		}
		assert.Contains(t, discover(), "things")
		s.SetStale("example.com", true)
		assert.NotContains(t, discover(), "things")
		assert.Contains(t, discover(), "Stale")
		status, _, _ := ask(s, http.MethodGet, "/apis/example.com/v1/things", "")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		s.SetStale("example.com", false)
		status, _, _ = ask(s, http.MethodGet, "/apis/example.com/v1/things", "")
		assert.Equal(t, http.StatusOK, status)
	})
}

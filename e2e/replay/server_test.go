// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// began is when the events of these tests happened.
var began = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// live are events of a fleet's pods, one for each.
type live struct{ fleet *replay.Fleet }

func (l live) Len() int { return l.fleet.Pods }

func (l live) Event(i int) *corev1.Event {
	return l.fleet.Started(i, began.Add(time.Duration(i)*time.Millisecond))
}

func start(t *testing.T, options replay.Options) (*replay.Server, *rest.Config) {
	t.Helper()
	server, err := replay.Start(options)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, server.WriteKubeconfig(path))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	config.QPS = -1
	return server, config
}

// forEachEncoding runs a test in protobuf and in JSON, over HTTP/2 with TLS and over plain
// HTTP/1.1.
func forEachEncoding(t *testing.T, test func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config)) {
	for _, contentType := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s plain=%v", contentType, plain), func(t *testing.T) {
				test(t, plain, func(config *rest.Config) *rest.Config {
					config.ContentType, config.AcceptContentTypes = contentType, contentType
					return config
				})
			})
		}
	}
}

func TestEventsAreListedByPages(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 7}
		server, config := start(t, replay.Options{Live: live{fleet}, Fleet: fleet, Plain: plain})
		events := kubernetes.NewForConfigOrDie(configure(config)).CoreV1().Events("")

		first, err := events.List(t.Context(), metav1.ListOptions{Limit: 4})
		require.NoError(t, err)
		require.Len(t, first.Items, 4)
		second, err := events.List(t.Context(), metav1.ListOptions{Limit: 4, Continue: first.Continue})
		require.NoError(t, err)
		require.Len(t, second.Items, 3)
		assert.Empty(t, second.Continue)
		want := fleet.Started(5, began.Add(5*time.Millisecond))
		got := second.Items[1]
		assert.Equal(t, want.Name, got.Name)
		assert.Equal(t, want.InvolvedObject, got.InvolvedObject)
		assert.True(t, want.LastTimestamp.Equal(&got.LastTimestamp))
		assert.Equal(t, map[replay.Kind]int{replay.EventsList: 2}, server.Requests())
	})
}

func TestChangesAreStreamedAsTheyAreReleased(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 7}
		server, config := start(t, replay.Options{Fleet: fleet, Plain: plain})
		core := kubernetes.NewForConfigOrDie(configure(config)).CoreV1()
		list, err := core.Events("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, list.Items)

		recorder := replay.NewRecorder()
		scheduled := fleet.Scheduled(0, began)
		frames := []replay.Frame{
			recorder.Frame(watch.Added, scheduled),
			recorder.Frame(watch.Modified, replay.Repeat(scheduled, 3, began.Add(time.Minute))),
			recorder.Frame(watch.Added, fleet.HandMade(1, began)),
			recorder.Frame(watch.Deleted, scheduled),
		}
		server.Release(frames[:2]...)
		all := newWatch(t, core.Events(""), list.ResourceVersion)
		assert.Equal(t, "ADDED Scheduled 0", next(t, all))
		assert.Equal(t, "MODIFIED Scheduled 4", next(t, all))
		server.Release(frames[2:]...)
		assert.Equal(t, "ADDED Injected 0", next(t, all))
		assert.Equal(t, "DELETED Scheduled 0", next(t, all))

		assert.Equal(t, "ADDED Injected 0", next(t, newWatch(t, core.Events("team-001"), list.ResourceVersion)), "one namespace")
		assert.Equal(t, "MODIFIED Scheduled 4", next(t, newWatch(t, core.Events(""), "1000000001")), "resumed")

		none, err := core.Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=none"})
		require.NoError(t, err)
		assert.Empty(t, none.Items)
		assert.Equal(t, "1000000004", none.ResourceVersion, "the newest one: it never goes back")
	})
}

func newWatch(t *testing.T, events interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}, version string) watch.Interface {
	t.Helper()
	w, err := events.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// next waits for the next change of a watch.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	change, ok := <-w.ResultChan()
	require.True(t, ok, "the watch has ended")
	ev, ok := change.Object.(*corev1.Event)
	require.True(t, ok, "%v", change.Object)
	if change.Type == watch.Bookmark {
		return fmt.Sprint(change.Type, " ", ev.Annotations[metav1.InitialEventsAnnotationKey])
	}
	count := ev.Count
	if ev.Series != nil {
		count = ev.Series.Count
	}
	return fmt.Sprint(change.Type, " ", ev.Reason, " ", count)
}

func TestAListingIsStreamed(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 2}
		server, config := start(t, replay.Options{Live: live{fleet}, Fleet: fleet, Plain: plain})
		server.Release(replay.NewRecorder().Frame(watch.Added, fleet.Killing(1, began)))
		initial := true
		w, err := kubernetes.NewForConfigOrDie(configure(config)).CoreV1().Events("").Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
		require.NoError(t, err)
		defer w.Stop()
		for _, want := range []string{"ADDED Started 1", "ADDED Started 1", "BOOKMARK true", "ADDED Killing 1"} {
			assert.Equal(t, want, next(t, w))
		}
		assert.Equal(t, map[replay.Kind]int{replay.EventsStream: 1}, server.Requests())
	})
}

func TestMetadata(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 30}
		server, config := start(t, replay.Options{Fleet: fleet, Plain: plain})
		client := metadata.NewForConfigOrDie(configure(config))
		pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})

		var names []string
		options := metav1.ListOptions{Limit: 6}
		for {
			page, err := pods.Namespace("team-000").List(t.Context(), options)
			require.NoError(t, err)
			for _, item := range page.Items {
				names = append(names, item.Name)
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
			assert.EqualValues(t, 20-len(names), *page.RemainingItemCount)
		}
		assert.Len(t, names, 20, "of two of the three Deployments")
		assert.IsIncreasing(t, names)

		cached, err := pods.Namespace("team-000").List(t.Context(), metav1.ListOptions{Limit: 6, ResourceVersion: "0"})
		require.NoError(t, err)
		assert.Len(t, cached.Items, 20, "no pages")

		pod, err := pods.Namespace("team-000").Get(t.Context(), names[7], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "ReplicaSet", pod.OwnerReferences[0].Kind)
		_, err = pods.Namespace("team-001").Get(t.Context(), names[7], metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "in another namespace: %v", err)
		assert.Equal(t, map[replay.Kind]int{replay.OwnerList: 5, replay.OwnerGet: 2}, server.Requests())
	})
}

func TestChainsCanBeResolved(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 30}
		server, config := start(t, replay.Options{Fleet: fleet, Plain: plain})
		r, err := resolver.New(configure(config), resolver.Config{KeepLabel: func(string) bool { return true }})
		require.NoError(t, err)
		defer r.Close()
		var pods []resolver.Reference
		for i := range fleet.Pods {
			involved := fleet.Started(i, began).InvolvedObject
			pods = append(pods, resolver.Reference{
				APIVersion: "v1", Kind: "Pod", Namespace: involved.Namespace, Name: involved.Name, UID: involved.UID,
			})
		}
		for i, chain := range r.Resolve(t.Context(), pods) {
			require.Equal(t, resolver.Complete, chain.Resolution)
			require.Len(t, chain.Objects, 3)
			require.Equal(t, fmt.Sprint("manifest-", i%3), chain.End().Labels["tilt-manifest"])
		}
		assert.Zero(t, server.Requests()[replay.Other])
		assert.Equal(t, 2, server.Requests()[replay.Discovery], "pods and replicasets are learned from one document each")
	})
}

func TestPodsComeAndGo(t *testing.T) {
	now := time.Now()
	fleet := &replay.Fleet{Namespaces: 1, Deployments: 1, Pods: 100, Begin: now.Add(-time.Hour), Every: time.Minute, Lifetime: 10*time.Minute + time.Second}
	_, config := start(t, replay.Options{Fleet: fleet})
	pods := metadata.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("team-000")

	for pod, exists := range map[int]bool{49: false, 50: true, 60: true, 61: false} {
		_, err := pods.Get(t.Context(), fleet.Started(pod, now).InvolvedObject.Name, metav1.GetOptions{})
		assert.Equal(t, !exists, apierrors.IsNotFound(err), "pod %d: %v", pod, err)
	}
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 11)
}

func TestDiscovery(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		_, config := start(t, replay.Options{Plain: plain})
		client := kubernetes.NewForConfigOrDie(configure(config))
		_, lists, err := client.Discovery().ServerGroupsAndResources()
		require.NoError(t, err)
		var found []string
		for _, list := range lists {
			for _, resource := range list.APIResources {
				found = append(found, list.GroupVersion+" "+resource.Kind)
			}
		}
		assert.ElementsMatch(t, []string{"v1 Event", "v1 Namespace", "v1 Node", "v1 Pod", "apps/v1 Deployment", "apps/v1 ReplicaSet"}, found)
		cluster, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, cluster.UID)
	})
}

func TestDiscoveryInSmallDocuments(t *testing.T) {
	server, _ := start(t, replay.Options{Plain: true})
	for path, code := range map[string]int{
		"/api": 200, "/api/v1": 200, "/apis": 200, "/apis/apps": 200, "/apis/apps/v1": 200, "/apis/batch": 404, "/apis/batch/v1": 404, "/version": 404,
	} {
		response, err := http.Get(server.URL() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, code, response.StatusCode, path)
		assert.True(t, strings.HasPrefix(response.Header.Get("Content-Type"), "application/json"), path)
	}
}

func TestAnAggregatedDocumentIsSentOnce(t *testing.T) {
	server, _ := start(t, replay.Options{Plain: true})
	read := func(known string) (code int, tag string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"/apis", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		request.Header.Set("If-None-Match", known)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("ETag")
	}
	code, tag := read("")
	assert.Equal(t, http.StatusOK, code)
	code, _ = read(tag)
	assert.Equal(t, http.StatusNotModified, code)
	code, _ = read(`"another"`)
	assert.Equal(t, http.StatusOK, code)
}

func TestEarlierRevisionsHaveReplicaSets(t *testing.T) {
	fleet := &replay.Fleet{Namespaces: 2, Deployments: 3, Pods: 7, Retired: 2}
	server, config := start(t, replay.Options{Fleet: fleet})
	sets := metadata.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"})
	for namespace, want := range map[string]int{"": 9, "team-000": 6, "team-001": 3, "team-002": 0, "other": 0} {
		list, err := sets.Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, want, namespace)
		for _, item := range list.Items {
			found, err := sets.Namespace(item.Namespace).Get(t.Context(), item.Name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, item.UID, found.UID)
		}
	}
	assert.Equal(t, 2*(9+6+3), server.Objects(), "objects that were sent")
}

func TestClientsKeepObjects(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, plain bool, configure func(*rest.Config) *rest.Config) {
		_, config := start(t, replay.Options{Plain: plain})
		maps := kubernetes.NewForConfigOrDie(configure(config)).CoreV1().ConfigMaps("default")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "progress"}, Data: map[string]string{"at": "1"}}

		_, err := maps.Get(t.Context(), "progress", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
		_, err = maps.Update(t.Context(), object, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
		_, err = maps.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(t, err)
		created, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = maps.Create(t.Context(), object, metav1.CreateOptions{})
		assert.True(t, apierrors.IsAlreadyExists(err), err)

		changed := created.DeepCopy()
		changed.Data["at"] = "2"
		_, err = maps.Update(t.Context(), changed, metav1.UpdateOptions{})
		require.NoError(t, err)
		_, err = maps.Update(t.Context(), created, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsConflict(err), err)
		found, err := maps.Get(t.Context(), "progress", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "2", found.Data["at"])
	})
}

func TestAWatchEndsWithTheServer(t *testing.T) {
	server, config := start(t, replay.Options{})
	w := newWatch(t, kubernetes.NewForConfigOrDie(config).CoreV1().Events(""), "1000000000")
	server.Close()
	_, ok := <-w.ResultChan()
	assert.False(t, ok)
	server.Close()
}

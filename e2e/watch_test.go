// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

func TestOneWatchServesBothPipelines(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, g.config(), "start_at: beginning", "include_reasons: [Shared]")
	r.of(t, kube.makeEvent(t, ns, eventOf("Shared", "pod")).Name)
	r.awaitSum(t, 1, withReason("Shared"))

	watches := g.requests(isWatch)
	assert.Equal(t, "/api/v1/events", watches[0].URL.Path, "v1 events of the whole cluster")
	assert.Contains(t, watches[0].Header.Get("Accept"), "application/vnd.kubernetes.protobuf")
	assert.Len(t, g.requests(isFirstPage), 1)
	assert.Len(t, watches, 1)
}

// API servers before Kubernetes 1.38 ignore the parameter, like this one.
func TestManagedFieldsAreLeftOutByNewServers(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	pod := kube.make(t, ns, "v1", "Pod", "pod")
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), g.config())
	ev := kube.makeEvent(t, ns, eventOf("LeftOut", pod.GetName()))
	assert.Equal(t, "complete", r.of(t, ev.Name).resolution())

	const parameter = ";drop=metadata.managedFields"
	client, err := rest.HTTPClientFor(kube.RESTConfig())
	require.NoError(t, err)
	get := func(path, accept string) []byte {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, kube.RESTConfig().Host+path, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", accept)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
		require.Equal(t, "application/vnd.kubernetes.protobuf", response.Header.Get("Content-Type"))
		return body
	}
	events, pods := "/api/v1/namespaces/"+ns+"/events", "/api/v1/namespaces/"+ns+"/pods"
	for path, of := range map[string]func(*http.Request) bool{events + "/" + ev.Name: isWatch, pods + "/pod": isOn("pods")} {
		requests := g.requests(of)
		require.NotEmpty(t, requests)
		for _, request := range requests {
			accept := request.Header.Get("Accept")
			first, _, _ := strings.Cut(accept, ",")
			require.Contains(t, first, parameter)
			accept = strings.ReplaceAll(accept, "PartialObjectMetadataList", "PartialObjectMetadata")
			assert.Equal(t, get(path, strings.ReplaceAll(accept, parameter, "")), get(path, accept))
		}
	}
}

func TestNamespacesHaveAWatchEach(t *testing.T) {
	t.Parallel()
	a, b, other := kube.newNamespace(t), kube.newNamespace(t), kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, in(a, b), g.config())
	kube.makeEvent(t, other, eventOf("Elsewhere", "pod"))
	for _, ns := range []string{a, b} {
		ev := kube.makeEvent(t, ns, eventOf("Here", "pod"))
		assert.Equal(t, ns, r.of(t, ev.Name).text("k8s.namespace.name"))
		kube.updateEvent(t, withCount(ev, 3))
	}
	r.awaitSum(t, 6, withReason("Here"))
	assert.Empty(t, r.records(about("", "Elsewhere")))

	paths := map[string]int{}
	for _, watch := range g.requests(isWatch) {
		paths[watch.URL.Path]++
	}
	assert.Equal(t, map[string]int{"/api/v1/namespaces/" + a + "/events": 1, "/api/v1/namespaces/" + b + "/events": 1}, paths)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	all := []string{"Killing", "FailedMount", "FailedScheduling", "failedlater", "Failed[1]", "BackOff", "Odd"}
	types := map[string]string{"BackOff": "Warning", "Odd": "Panic"}
	write := func(t *testing.T, namespace, reason, pod string) string {
		ev := eventOf(reason, pod)
		ev.Type = cmp.Or(types[reason], "Normal")
		return kube.makeEvent(t, namespace, ev).Name
	}
	for _, reason := range all {
		write(t, ns, reason, "pod")
	}

	for config, test := range map[string]struct {
		passes string // a reason that comes through
		want   []string
	}{
		"":                                       {"Killing", all},
		"include_reasons: [Failed*]":             {"FailedMount", []string{"FailedMount", "FailedScheduling", "Failed[1]"}},
		"include_reasons: ['Kill???', '*later']": {"Killing", []string{"Killing", "failedlater"}},
		"include_reasons: ['[KB]*']":             {"Killing", []string{"Killing", "BackOff"}},
		`include_reasons: ['Failed\[1\]']`:       {"Failed[1]", []string{"Failed[1]"}},
		"include_reasons: [Failed]":              {"Failed", nil}, // A glob is for the whole reason.
		"exclude_reasons: [Failed*]":             {"Killing", []string{"Killing", "failedlater", "BackOff", "Odd"}},
		"include_reasons: [Failed*]\nexclude_reasons: ['*Mount']":  {"FailedScheduling", []string{"FailedScheduling", "Failed[1]"}},
		"include_reasons: ['Kill*', Odd]\nexclude_reasons: ['K*']": {"Odd", []string{"Odd"}},
		"event_types: [Warning]":                                   {"BackOff", []string{"BackOff"}},
		"event_types: [Warning, Panic]":                            {"BackOff", []string{"BackOff", "Odd"}},
		"event_types: [Normal]\nexclude_reasons: ['*ailed*']":      {"Killing", []string{"Killing"}},
		"exclude_namespaces: ['t*-testfilters*']":                  {"Killing", nil},
		"exclude_namespaces: [kube-n*, 'T*']":                      {"Killing", all},
	} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			where, streams := ns, in(ns)
			if strings.Contains(config, "exclude_namespaces") {
				where, streams = "kube-public", "start_at: beginning"
			}
			r := kube.run(t, streams, config)
			// The first may come with the listing; the second comes after all of it.
			for range 2 {
				r.of(t, write(t, where, test.passes, "fence"))
			}
			var reasons []string
			for _, rec := range r.records(func(r record) bool { return r.text("k8s.namespace.name") == ns && r.text("k8s.pod.name") == "pod" }) {
				reasons = append(reasons, rec.text("k8s.event.reason"))
			}
			assert.ElementsMatch(t, test.want, reasons)
		})
	}
}

func TestOneEventTypeIsTheServersWork(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	for types, selector := range map[string]string{"[Warning]": "type=Warning", "[Warning, Normal]": "", "[]": ""} {
		t.Run(types, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, kube.Kubeconfig())
			r := kube.run(t, in(ns), g.config(), "event_types: "+types)
			ev := eventOf("Typed", "pod")
			ev.Type = "Warning"
			r.of(t, kube.makeEvent(t, ns, ev).Name)
			assert.Equal(t, selector, g.requests(isWatch)[0].URL.Query().Get("fieldSelector"))
		})
	}
}

// TestExcludedNamespacesAreTheInvolvedObjects: the events of cluster-scoped objects are in the
// namespace default, but are never excluded with it.
func TestExcludedNamespacesAreTheInvolvedObjects(t *testing.T) {
	t.Parallel()
	reason := "Excluded" + unique("")
	r := kube.run(t, "start_at: beginning", "exclude_namespaces: [default]", "include_reasons: ["+reason+"]")
	pod := kube.makeEvent(t, "default", eventAbout(reason, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "any"}))
	node := kube.makeEvent(t, "default", eventAbout(reason, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0"}))
	r.of(t, node.Name)
	assert.Empty(t, r.records(named(pod.Name)))
}

// TestAListOfPages: an API server that cannot stream a listing gives it by pages.
func TestAListOfPages(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	const events = 4200
	c.makeEvents(t, ns, events, func(i int) *corev1.Event {
		ev := withCount(eventOf("Listed", "pod"), 2)
		ev.Name = fmt.Sprint("listed-", i)
		return ev
	})
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	assert.Len(t, r.await(events, about(ns, "Listed")), events)
	r.fence(t, ns)
	assert.EqualValues(t, 2*events, total(r.records(about(ns, "Listed"))))

	lists := g.requests(isEventsList)
	require.Len(t, lists, 3)
	for i, list := range lists {
		assert.NotEmpty(t, list.URL.Query().Get("limit"))
		assert.Equal(t, i > 0, list.URL.Query().Has("continue"))
	}
}

// TestAListingThatBreaksOff begins again, and neither loses nor repeats anything.
func TestAListingThatBreaksOff(t *testing.T) {
	t.Parallel()
	const events = 2100
	for name, test := range map[string]struct {
		c     *cluster
		fault func(g *gateway) func(http.ResponseWriter, *http.Request) bool
	}{
		"a page is refused because its list is too old": {bare.get(t), func(*gateway) func(http.ResponseWriter, *http.Request) bool {
			return once(refuse(http.StatusGone, func(r *http.Request) bool { return r.URL.Query().Has("continue") }))
		}},
		"a page breaks": {kube, func(g *gateway) func(http.ResponseWriter, *http.Request) bool {
			return once(func(w http.ResponseWriter, r *http.Request) bool {
				if !isFirstPage(r) {
					return false
				}
				r.Header.Del("Accept-Encoding") // Compressed, a page is too small to break within it.
				g.forward.ServeHTTP(&brokenWriter{ResponseWriter: w, left: 100_000}, r)
				return true
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := test.c.newNamespace(t)
			test.c.makeEvents(t, ns, events, func(int) *corev1.Event {
				ev := withCount(eventOf("Listed", "pod"), 2)
				ev.Name = unique("listed")
				return ev
			})
			g := newGateway(t, test.c.Kubeconfig())
			g.inject(test.fault(g))
			r := test.c.run(t, in(ns), g.config())
			r.await(events, about(ns, "Listed"))
			r.fence(t, ns)
			assert.Len(t, r.records(about(ns, "Listed")), events)
			assert.Greater(t, len(g.requests(isFirstPage)), 1, "it was listed again")
		})
	}
}

// brokenWriter breaks the connection after n bytes.
type brokenWriter struct {
	http.ResponseWriter
	left int
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return w.ResponseWriter.Write(p)
}

func (w *brokenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestARelistCountsNothingTwice: after 410 Gone everything is listed again, and reconciled with
// what is remembered.
func TestARelistCountsNothingTwice(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), g.config())
	kube.makeEvent(t, ns, withCount(eventOf("Kept", "pod"), 4))
	r.listed(t, ns)

	g.inject(once(refuse(http.StatusGone, isWatch)))
	g.cut()
	r.fence(t, ns)
	assert.Equal(t, []observation{{4, 4}}, observationsOf(r.records(about(ns, "Kept"))))
	assert.Len(t, g.requests(isFirstPage), 2, "it was listed again")
}

// TestABrokenConnection: the watch goes on where it was.
func TestABrokenConnection(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), g.config())
	ev := kube.makeEvent(t, ns, eventOf("Broken", "pod"))
	r.listed(t, ns)
	for n := int32(2); n <= 4; n++ {
		g.cut()
		ev = kube.updateEvent(t, withCount(ev, n))
	}
	r.fence(t, ns)
	assert.Equal(t, []observation{{1, 1}, {2, 1}, {3, 1}, {4, 1}}, observationsOf(r.records(named(ev.Name))))
	assert.Len(t, g.requests(isFirstPage), 1, "nothing was listed again")
}

// TestAnAPIServerThatFails has a cluster of its own, which it breaks.
func TestAnAPIServerThatFails(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, controlplane.Options{})
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	h := &history{t: t, c: c, ns: ns}
	h.counted(2)
	r.listed(t, ns)

	t.Run("it is killed and started again", func(t *testing.T) {
		require.NoError(t, c.KillAPIServer())
		r.host.await(t, componentstatus.StatusRecoverableError)
		require.NoError(t, c.StartAPIServer(t.Context()))
		h.count(5)
		r.fence(t, ns)
		r.host.await(t, componentstatus.StatusOK)
		assert.Equal(t, []observation{{2, 2}, {5, 3}}, observationsOf(r.records(named(h.ev.Name))))
	})

	t.Run("an API that it aggregates is away", func(t *testing.T) {
		deployment := c.make(t, ns, "apps/v1", "Deployment", "any")
		c.make(t, "", "apiregistration.k8s.io/v1", "APIService", "v1.away.example.com", with("spec", map[string]any{
			"group": "away.example.com", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(1),
			"service": map[string]any{"namespace": ns, "name": "away"}, "insecureSkipTLSVerify": true,
		}))
		involved := referenceTo(deployment)
		involved.APIVersion = "" // So that all groups are asked.
		rec := r.of(t, c.makeEvent(t, ns, eventAbout("Aggregated", involved)).Name)
		resourceIs(t, rec, completeChainOf(deployment))
		rec = r.of(t, c.makeEvent(t, ns, eventAbout("Aggregated", corev1.ObjectReference{APIVersion: "away.example.com/v1", Kind: "Away", Name: "any"})).Name)
		assert.Contains(t, []string{"unavailable", "not_found"}, rec.resolution())
	})

	t.Run("it forgot the place where the watch was", func(t *testing.T) {
		kept := c.makeEvent(t, ns, withCount(eventOf("Kept", "pod"), 3))
		dropped := c.makeEvent(t, ns, withCount(eventOf("Dropped", "pod"), 3))
		again := &history{t: t, c: c, ns: ns}
		again.counted(6)
		r.fence(t, ns)
		listings := len(g.requests(isFirstPage))
		g.inject(refuse(http.StatusServiceUnavailable, anyRequest))
		g.cut()

		h.count(9)
		h.count(12)
		fresh := c.makeEvent(t, ns, withCount(eventOf("Fresh", "pod"), 4))
		c.deleteEvent(t, dropped)
		again.delete()
		again.counted(7)
		c.Compact(t)
		g.inject(nil)
		r.fence(t, ns)

		assert.Len(t, g.requests(isFirstPage), listings+1, "410 Gone makes it list again")
		assert.Equal(t, []observation{{2, 2}, {5, 3}, {12, 7}}, observationsOf(r.records(named(h.ev.Name))), "what happened in the gap")
		assert.Equal(t, []observation{{4, 4}}, observationsOf(r.records(named(fresh.Name))), "what came in the gap")
		assert.Equal(t, []observation{{3, 3}}, observationsOf(r.records(named(kept.Name))), "what is as it was")
		assert.Equal(t, []observation{{6, 6}, {7, 1}}, observationsOf(r.records(named(again.ev.Name))), "what was deleted and made again")

		// What was deleted in the gap is remembered as if the deletion had been seen.
		dropped.UID, dropped.ResourceVersion = "", ""
		c.makeEvent(t, ns, withCount(dropped, 4))
		r.fence(t, ns)
		assert.Equal(t, []observation{{3, 3}, {4, 1}}, observationsOf(r.records(named(dropped.Name))))
	})
}

// TestAPermissionThatIsTakenAway: the status names what is missing, and nothing is lost when it is
// given back.
func TestAPermissionThatIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		namespaced bool
		parts      []string
	}{
		"for the whole cluster": {false, []string{"ClusterRole", "cluster"}},
		"for a namespace":       {true, []string{"Role", "namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			account := unique("revoked")
			kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
			require.NoError(t, err)
			g := newGateway(t, kubeconfig)
			config := "start_at: beginning"
			if test.namespaced {
				config = in(ns)
			}
			r := kube.run(t, config, g.config(), "include_reasons: [Revoked, Fence]")
			ev := kube.makeEvent(t, ns, eventOf("Revoked", "pod"))
			r.listed(t, ns)

			binding := kube.revoke(t, account)
			g.cut()
			// It names the rule that is missing.
			r.host.await(t, componentstatus.StatusRecoverableError,
				append(test.parts, `apiGroups: ['']`, "resources: [events]", "verbs: [get, list, watch]")...)
			for n := int32(2); n <= 3; n++ {
				ev = kube.updateEvent(t, withCount(ev, n))
			}
			_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
			require.NoError(t, err)
			r.host.await(t, componentstatus.StatusOK)
			r.fence(t, ns)
			assert.Equal(t, []observation{{1, 1}, {2, 1}, {3, 1}}, observationsOf(r.records(named(ev.Name))))
		})
	}
}

// revoke deletes the binding of an account, and returns it to be created again once the API server
// heeds the deletion: a watch that is begun before goes on.
func (c *cluster) revoke(t *testing.T, account string) *rbacv1.ClusterRoleBinding {
	t.Helper()
	bindings := c.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, bindings.Delete(t.Context(), account, metav1.DeleteOptions{}))
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:default:" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Resource: "events"},
	}}
	eventually(t, func() bool {
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		require.NoError(t, err)
		return !answer.Status.Allowed
	}, "the end of the permission")
	binding.UID, binding.ResourceVersion = "", ""
	return binding
}

// TestAPermissionForOneOfTwoNamespaces: the other is watched, and the status names the one that is
// not.
func TestAPermissionForOneOfTwoNamespaces(t *testing.T) {
	t.Parallel()
	allowed, denied := kube.newNamespace(t), kube.newNamespace(t)
	account := unique("half")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	binding := kube.revoke(t, account)
	_, err = kube.RbacV1().RoleBindings(allowed).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account}, Subjects: binding.Subjects, RoleRef: binding.RoleRef,
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	r := kube.run(t, in(allowed, denied), "kubeconfig: "+kubeconfig)
	r.fence(t, allowed)
	r.host.await(t, componentstatus.StatusRecoverableError, denied)
	r.fence(t, allowed)
	assert.Equal(t, componentstatus.StatusRecoverableError, r.host.last().Status(), "one that works does not hide one that does not")

	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	r.fence(t, denied)
	r.host.await(t, componentstatus.StatusOK)
}

func TestAPermissionThatIsGivenLate(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	account := unique("late")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	binding := kube.revoke(t, account)
	r := kube.run(t, in(ns), "kubeconfig: "+kubeconfig) // A missing permission does not keep it from starting.
	r.host.await(t, componentstatus.StatusRecoverableError, "no permission to list and watch events")
	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	r.host.await(t, componentstatus.StatusOK)
	r.fence(t, ns)
}

// TestATokenThatIsRotated: 401 until the new token is in its file, and then on without loss.
func TestATokenThatIsRotated(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	kubeconfig, token := tokenInFile(t, kube.Kubeconfig())
	right, err := os.ReadFile(token)
	require.NoError(t, err)
	g := newGateway(t, kubeconfig)
	r := kube.run(t, in(ns), g.config())
	ev := kube.makeEvent(t, ns, eventOf("Rotated", "pod"))
	r.listed(t, ns)

	require.NoError(t, os.WriteFile(token, []byte("expired"), 0o600))
	// The client keeps a token for a minute, unless the API server refuses it.
	g.inject(refuse(http.StatusUnauthorized, func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "Bearer "+string(right)
	}))
	g.cut()
	r.host.await(t, componentstatus.StatusRecoverableError, "credentials")
	assert.False(t, r.host.mentions(string(right)), "secrets stay secret")
	kube.updateEvent(t, withCount(ev, 2))

	g.inject(nil)
	require.NoError(t, os.WriteFile(token, right, 0o600))
	r.host.await(t, componentstatus.StatusOK)
	r.fence(t, ns)
	assert.Equal(t, []observation{{1, 1}, {2, 1}}, observationsOf(r.records(named(ev.Name))))
}

// tokenInFile moves the token of a kubeconfig to a file of its own, as service accounts have it.
func tokenInFile(t *testing.T, kubeconfig string) (path, token string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	token = filepath.Join(t.TempDir(), "token")
	for _, user := range config.AuthInfos {
		require.NoError(t, os.WriteFile(token, []byte(user.Token), 0o600))
		user.Token, user.TokenFile = "", token
	}
	path = filepath.Join(t.TempDir(), "token.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path, token
}

func TestAnAPIServerThatIsAway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kube.Kubeconfig())
	g.server.Close()
	r := kube.run(t, g.config())
	r.host.await(t, componentstatus.StatusRecoverableError, "refused")
}

func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	g.inject(refuse(http.StatusTooManyRequests, anyRequest))
	r := kube.run(t, in(ns), g.config())
	r.host.await(t, componentstatus.StatusRecoverableError, "refused by the test")
	g.inject(nil)
	r.fence(t, ns)
	r.host.await(t, componentstatus.StatusOK)
}

// TestADeadConnection: the network drops everything, and neither side notices.
func TestADeadConnection(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	proxy := fakeapi.NewTCPProxy(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), "kubeconfig: "+proxy.Kubeconfig)
	ev := kube.makeEvent(t, ns, eventOf("Dead", "pod"))
	r.listed(t, ns)
	proxy.Silence()
	kube.updateEvent(t, withCount(ev, 4))
	// A client may take a minute or so to find out.
	harness.Poll(3*pollTimeout, func() bool { return len(r.records(named(ev.Name))) >= 2 })
	assert.Equal(t, []observation{{1, 1}, {4, 3}}, observationsOf(r.records(named(ev.Name))))
}

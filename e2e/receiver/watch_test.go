// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
)

func TestOneEventTypeIsAFieldSelector(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), g.config(), "event_types: [Warning]")
	kube.makeEvent(t, ns, eventOf("Normal", "pod"))
	ev := eventOf("Warning", "pod")
	ev.Type = "Warning"
	r.recordOf(t, kube.makeEvent(t, ns, ev).Name)
	assert.Empty(t, r.records(about(ns, "Normal")))
	assert.Equal(t, "type=Warning", g.requests(isWatch)[0].URL.Query().Get("fieldSelector"))
}

// TestAListOfPages: a page whose list is too old makes the receiver list again, and nothing is lost
// or repeated.
func TestAListOfPages(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	const events = 4200
	c.makeEvents(t, ns, events, func(i int) *corev1.Event {
		ev := withCount(eventOf("Listed", "pod"), 2)
		ev.Name = fmt.Sprint("listed-", i)
		return ev
	})
	g := newGateway(t, c.Kubeconfig())
	g.inject(once(refuse(http.StatusGone, func(r *http.Request) bool { return r.URL.Query().Has("continue") })))
	r := c.run(t, in(ns), g.config(), "include_reasons: [Listed, Fence]")
	r.await(events, about(ns, "Listed"))
	r.fence(t, ns)
	assert.Len(t, r.records(about(ns, "Listed")), events)
	assert.EqualValues(t, 2*events, total(r.records(about(ns, "Listed"))))
	assert.Len(t, g.requests(isFirstPage), 2)
}

// TestAnAPIServerThatFails has a cluster of its own, which it breaks.
func TestAnAPIServerThatFails(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	make3 := func(reason string) *corev1.Event { return c.makeEvent(t, ns, withCount(eventOf(reason, "pod"), 3)) }
	counted := make3("Counted")
	r.listed(t, ns)

	t.Run("it is killed and started again", func(t *testing.T) {
		require.NoError(t, c.KillAPIServer())
		r.host.await(t, componentstatus.StatusRecoverableError)
		require.NoError(t, c.StartAPIServer(t.Context()))
		c.updateEvent(t, withCount(counted, 5))
		r.fence(t, ns)
		r.host.await(t, componentstatus.StatusOK)
		assert.Equal(t, []observation{{3, 3}, {5, 2}}, observationsOf(r.records(named(counted.Name))))
	})

	t.Run("an API that it aggregates is away", func(t *testing.T) { testAggregatedAPIAway(t, c, r, ns) })

	t.Run("it forgot the place where the watch was", func(t *testing.T) {
		kept, dropped, again := make3("Kept"), make3("Dropped"), make3("Again")
		r.fence(t, ns)
		listings := len(g.requests(isFirstPage))
		g.inject(refuse(http.StatusServiceUnavailable, anyRequest))
		g.cut()

		c.updateEvent(t, withCount(counted, 9))
		c.updateEvent(t, withCount(counted, 12))
		fresh := make3("Fresh")
		c.deleteEvent(t, dropped)
		c.deleteEvent(t, again)
		c.makeEvent(t, ns, recreated(again, 4))
		c.Compact(t)
		g.inject(nil)
		r.fence(t, ns)

		assert.Len(t, g.requests(isFirstPage), listings+1, "410 Gone makes it list again")
		assert.Equal(t, []observation{{3, 3}, {5, 2}, {12, 7}}, observationsOf(r.records(named(counted.Name))), "what happened in the gap")
		assert.Equal(t, []observation{{3, 3}}, observationsOf(r.records(named(fresh.Name))), "what came in the gap")
		assert.Equal(t, []observation{{3, 3}}, observationsOf(r.records(named(kept.Name))), "what is as it was")
		assert.Equal(t, []observation{{3, 3}, {4, 1}}, observationsOf(r.records(named(again.Name))), "what was deleted and made again")

		// What was deleted in the gap is remembered as if the deletion had been seen.
		c.makeEvent(t, ns, recreated(dropped, 4))
		r.fence(t, ns)
		assert.Equal(t, []observation{{3, 3}, {4, 1}}, observationsOf(r.records(named(dropped.Name))))
	})
}

func testAggregatedAPIAway(t *testing.T, c *cluster, r *running, ns string) {
	deployment := c.make(t, ns, "apps/v1", "Deployment", "any")
	c.make(t, "", "apiregistration.k8s.io/v1", "APIService", "v1.away.example.com", with("spec", map[string]any{
		"group": "away.example.com", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(1),
		"service": map[string]any{"namespace": ns, "name": "away"}, "insecureSkipTLSVerify": true,
	}))
	involved := referenceTo(deployment)
	involved.APIVersion = "" // So that all groups are asked.
	rec := r.recordOf(t, c.makeEvent(t, ns, eventAbout("Aggregated", involved)).Name)
	resourceIs(t, rec, completeChainOf(deployment))
	rec = r.recordOf(t, c.makeEvent(t, ns, eventAbout("Aggregated", corev1.ObjectReference{APIVersion: "away.example.com/v1", Kind: "Away", Name: "any"})).Name)
	assert.Contains(t, []string{"unavailable", "not_found"}, rec.resolution())
}

// recreated is what a recorder creates that finds its event gone: the same name, and the count that it
// has reached.
func recreated(ev *corev1.Event, count int32) *corev1.Event {
	ev = withCount(ev, count)
	ev.UID, ev.ResourceVersion = "", ""
	return ev
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

// TestAContextOfTheUsualKubeconfig: KUBECONFIG names the file, and another context than the one of the
// configuration is the current one.
func TestAContextOfTheUsualKubeconfig(t *testing.T) {
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	require.NoError(t, err)
	config.Contexts["right"] = config.Contexts[config.CurrentContext]
	config.CurrentContext = "wrong"
	config.Contexts["wrong"] = clientcmdapi.NewContext()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	t.Setenv("KUBECONFIG", path)
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), `kubeconfig: ""`, "context: right")
	r.fence(t, ns)
}

// TestWithoutCredentials: as through kubectl proxy, which has them.
func TestWithoutCredentials(t *testing.T) {
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	require.NoError(t, err)
	forward, token := forwardTo(t, config.Clusters[config.Contexts[config.CurrentContext].Cluster]), kube.RESTConfig().BearerToken
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"))
		r.Header.Set("Authorization", "Bearer "+token)
		forward.ServeHTTP(w, r)
	}))
	closeAtEnd(t, proxy)
	address, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", "http://"+address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())

	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), "auth_type: none", `kubeconfig: ""`)
	r.fence(t, ns)
}

// TestADeadConnection: the network drops everything, and neither side notices.
func TestADeadConnection(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	proxy := fakeapi.NewTCPProxy(t, kube.Kubeconfig())
	r := kube.run(t, in(ns), "kubeconfig: "+proxy.Kubeconfig)
	ev := kube.makeEvent(t, ns, eventOf("Dead", "pod"))
	r.listed(t, ns)
	proxy.Set(fakeapi.Stalled)
	kube.updateEvent(t, withCount(ev, 4))
	r.host.await(t, componentstatus.StatusRecoverableError) // A client may take a minute or so to find out.
	proxy.Set(fakeapi.Open)
	r.fence(t, ns)
	assert.Equal(t, []observation{{1, 1}, {4, 3}}, observationsOf(r.records(named(ev.Name))))
}

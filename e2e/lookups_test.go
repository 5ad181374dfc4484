// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

// isOwnerLookup picks the requests for objects of a chain and for what kinds there are.
func isOwnerLookup(r *http.Request) bool {
	return !strings.HasSuffix(r.URL.Path, "/events") && !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
}

func TestManyPodsCostFewRequests(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	const pods = 500
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "many", labelled("tilt-manifest", "many"))
	makeMany(t, pods, func(i int) { c.make(t, ns, "v1", "Pod", fmt.Sprint("many-", i), controlledBy(rs)) })
	c.makeEvents(t, ns, pods, func(i int) *corev1.Event {
		ev := eventOf("Started", fmt.Sprint("many-", i))
		ev.Name = fmt.Sprint("started-", i)
		return ev
	})
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	for _, rec := range r.await(pods, about(ns, "Started")) {
		assert.Equal(t, "complete", rec.resolution())
		assert.Equal(t, "many", rec.text("k8s.workload.name"))
	}
	assert.LessOrEqual(t, len(g.requests(isOn("pods"))), 20, "many unknown objects of one kind in one namespace become one list")
	different := map[string]bool{}
	for _, request := range g.requests(isOn("replicasets")) {
		different[request.URL.String()] = true // The client repeats a request if the API server is too busy.
	}
	assert.LessOrEqual(t, len(different), 1, "one request for one object: %v", different)
	r.awaitSum(t, pods, func(p point) bool { return p.attrs["tilt.manifest"] == "many" })
	assert.Len(t, r.points(withReason("Started")), 1, "cardinality grows with workloads, not with pods")
}

// It runs alone: the pods must come quickly.
func TestManyNewPodsCostAboutOneRequestEach(t *testing.T) {
	c := bare.get(t)
	ns := c.newNamespace(t)
	const pods = 600
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "storm")
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	makeMany(t, pods, func(i int) {
		pod := c.make(t, ns, "v1", "Pod", fmt.Sprint("storm-", i), controlledBy(rs))
		for range 3 {
			c.makeEvent(t, ns, eventAbout("Started", referenceTo(pod)))
		}
	})
	for _, rec := range r.await(3*pods, about(ns, "Started")) {
		assert.Equal(t, "complete", rec.resolution())
		assert.Equal(t, "storm", rec.text("k8s.workload.name"))
	}
	assert.LessOrEqual(t, len(g.requests(isOn("pods"))), pods*12/10)
	assert.Empty(t, g.requests(func(r *http.Request) bool { return isOn("pods")(r) && r.URL.Query().Get("watch") == "true" }))
}

func TestAnObjectIsAskedForOnce(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "one")
	pod := c.make(t, ns, "v1", "Pod", "one-a", controlledBy(rs))
	missing := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "missing"}
	for range 5 {
		c.makeEvent(t, ns, eventAbout("Found", referenceTo(pod)))
		r.of(t, c.makeEvent(t, ns, eventAbout("Missing", missing)).Name)
	}
	for _, resource := range []string{"pods", "replicasets", "configmaps"} {
		// If an answer is slow, three requests of another kind show whether the API server works.
		assert.Contains(t, []int{1, 4}, len(g.requests(isOn(resource))), "requests for %s", resource)
	}
	assert.Empty(t, g.requests(func(r *http.Request) bool { return isOn("pods")(r) && r.URL.Query().Has("limit") }), "no list for one object")
}

func TestOwnersSwitchedOff(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config(), "owners: {enabled: false}")
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "off")
	pod := c.make(t, ns, "v1", "Pod", "off-a", controlledBy(rs), labelled("tilt-manifest", "off"))
	rec := r.of(t, c.makeEvent(t, ns, eventAbout("Off", referenceTo(pod))).Name)
	resourceIs(t, rec, chainOf(pod)) // What the event contains, and no more.
	assert.NotContains(t, rec.attrs, "k8s.owner.resolution")
	assert.Empty(t, g.requests(isOwnerLookup), "no lookups")
	r.awaitSum(t, 1, func(p point) bool { return p.attrs["k8s.workload.kind"] == "Pod" })
}

func TestLookupsThatFail(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "slow", labelled("tilt-manifest", "slow"))
	pod := c.make(t, ns, "v1", "Pod", "slow-a", controlledBy(rs))
	isRS := isOn("replicasets")
	for resolution, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"timeout":     hang(isRS),
		"unavailable": refuse(http.StatusInternalServerError, isRS),
		"forbidden":   refuse(http.StatusForbidden, isRS),
	} {
		t.Run(resolution, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, c.Kubeconfig())
			g.inject(fault)
			// The Pod must be found in this time, also on a busy machine.
			r := c.run(t, in(ns), g.config(), "owners: {lookup_timeout: 10s}")
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Slow", referenceTo(pod))).Name)
			assert.Equal(t, resolution, rec.resolution())
			if resolution == "forbidden" {
				resourceIs(t, rec, completeChainOf(pod, rs)) // An object that may not be read is the workload.
				return                                       // It is remembered for a minute.
			}
			resourceIs(t, rec, chainOf(pod, rs)) // An owner known from a reference alone.
			g.inject(nil)
			eventually(t, func() bool {
				rec = r.of(t, c.makeEvent(t, ns, eventAbout("Fast", referenceTo(pod))).Name)
				return rec.resolution() == "complete"
			}, "the failure is forgotten")
			resourceIs(t, rec, merge(completeChainOf(pod, rs), map[string]any{"tilt.manifest": "slow"}))
		})
	}
}

// TestARateLimitCostsOwnersNotEvents: the limit is on lookups, and an event waits no longer than
// lookup_timeout for them.
func TestARateLimitCostsOwnersNotEvents(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	kinds := []string{"Pod", "ConfigMap", "Secret", "Service", "ServiceAccount", "Endpoints"}
	for _, kind := range kinds {
		c.makeEvent(t, ns, eventAbout("Limited", corev1.ObjectReference{APIVersion: "v1", Kind: kind, Name: "any"}))
	}
	r := c.run(t, in(ns), "kube_api_qps: 0.01", "kube_api_burst: 2", "owners: {lookup_timeout: 300ms}")
	resolutions := map[string]int{}
	for _, rec := range r.await(len(kinds), about(ns, "Limited")) {
		resolutions[rec.resolution()]++
	}
	assert.Positive(t, resolutions["timeout"], "%v", resolutions)
}

func TestACacheOfFiveObjects(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns), "owners: {cache_size: 5}")
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "many")
	const pods = 30
	for i := range pods {
		pod := c.make(t, ns, "v1", "Pod", fmt.Sprint("many-", i), controlledBy(rs))
		c.makeEvent(t, ns, eventAbout("Small", referenceTo(pod)))
	}
	for _, rec := range r.await(pods, about(ns, "Small")) {
		assert.Equal(t, "replicaset.apps/many", rec.chain())
		assert.Equal(t, "complete", rec.resolution())
	}
}

var eventsRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}}

func readRule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}

// restricted is the line of configuration for an account that may do what the rules say.
func (c *cluster) restricted(t *testing.T, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), unique("restricted"), rules...)
	require.NoError(t, err)
	return "kubeconfig: " + kubeconfig
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	pod, rs, deployment := c.makeShop(t, ns)
	all := []rbacv1.PolicyRule{eventsRule, readRule("", "pods"), readRule("apps", "replicasets", "deployments"), readRule("", "namespaces")}
	tag := map[string]any{"tilt.manifest": "shop"}

	for name, test := range map[string]struct {
		rules      []rbacv1.PolicyRule
		resource   map[string]any
		resolution string
		cluster    bool
	}{
		"all that is wanted":                {all, merge(completeChainOf(pod, rs, deployment), tag), "complete", true},
		"events alone":                      {all[:1], completeChainOf(pod), "forbidden", false},
		"the owners but not the cluster":    {all[:3], merge(completeChainOf(pod, rs, deployment), tag), "complete", false},
		"the cluster but not the owners":    {append(all[:1:1], all[3]), completeChainOf(pod), "forbidden", true},
		"pods but not what owns them":       {all[:2], completeChainOf(pod, rs), "forbidden", false},
		"pods and replicasets but not more": {append(all[:2:2], readRule("apps", "replicasets")), completeChainOf(pod, rs, deployment), "forbidden", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.run(t, in(ns), c.restricted(t, test.rules...))
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Permitted", referenceTo(pod))).Name)
			assert.Equal(t, test.resolution, rec.resolution())
			assert.Equal(t, test.cluster, rec.text("k8s.cluster.uid") != "")
			assert.Equal(t, test.resource, withoutService(rec.resource))
			assert.Equal(t, componentstatus.StatusOK, r.host.last().Status(), "a missing permission for owners is no error")
		})
	}
}

// TestGetWithoutList: many unknown objects are then read one by one.
func TestGetWithoutList(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	const pods = 30
	for i := range pods {
		pod := c.make(t, ns, "v1", "Pod", fmt.Sprint("pod-", i))
		c.makeEvent(t, ns, eventAbout("Single", referenceTo(pod)))
	}
	get := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	r := c.run(t, in(ns), c.restricted(t, eventsRule, get))
	for _, rec := range r.await(pods, about(ns, "Single")) {
		assert.Equal(t, "complete", rec.resolution())
	}
}

// TestAnObjectThatAppearsLate: a failure is remembered for a minute at most.
func TestAnObjectThatAppearsLate(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	ask := func() string {
		return r.of(t, c.makeEvent(t, ns, eventOf("Asked", "late")).Name).resolution()
	}
	assert.Equal(t, "not_found", ask())
	c.make(t, ns, "v1", "Pod", "late")
	eventually(t, func() bool { return ask() == "complete" }, "the pod is found")
}

// TestAMissingPermissionForOwnersIsNamedOnce: what rule would give it, and not with each event.
func TestAMissingPermissionForOwnersIsNamedOnce(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe-1")
	core, logged := observer.New(zap.DebugLevel)
	settings := receivertest.NewNopSettings(kubeevents.NewFactory().Type())
	settings.Logger = zap.New(core)
	logs := &consumertest.LogsSink{}
	for _, instance := range instantiate(t, settings, c.parse(t, in(ns), c.restricted(t, eventsRule)), logs, nil) {
		require.NoError(t, instance.Start(t.Context(), &statusHost{}))
		t.Cleanup(func() { assert.NoError(t, instance.Shutdown(context.Background())) })
	}
	r := &running{t: t, c: c, logs: logs}
	const events = 30
	for i := range events {
		involved := referenceTo(rs)
		involved.Name = fmt.Sprint("fe-", i)
		r.of(t, c.makeEvent(t, ns, eventAbout("Forbidden", involved)).Name)
	}
	naming := logged.Filter(func(entry observer.LoggedEntry) bool {
		text := fmt.Sprint(entry.Message, entry.ContextMap())
		return strings.Contains(text, "replicasets") && strings.Contains(text, "['apps']") && strings.Contains(text, "verbs: [get, list]")
	})
	assert.NotZero(t, naming.Len(), "the rule that is missing is named")
	assert.Less(t, logged.Len(), events/2, "no log line per event")
}

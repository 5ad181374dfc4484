// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// chart is what the chart renders by default.
const chart = "deploy/manifests/default.yaml"

// withoutOwnEvents leaves out what a slow API server writes about its own Service and ServiceCIDR, such as
// KubernetesDefaultServiceCIDRInconsistent, see pkg/registry/core/service/ipallocator/controller/repairip.go and
// pkg/controlplane/controller/defaultservicecidr of Kubernetes.
const withoutOwnEvents = "exclude_kinds: [Service, ServiceCIDR, IPAddress]"

// TestOperators creates the objects and events of popular operators, which are in testdata/operators.
// It checks the workloads of records and series, with the permissions that the chart gives by default
// and with every permission. The table in docs/owners.md has the workloads.
func TestOperators(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	operators := readOperators(t)
	events := 0
	for _, o := range operators {
		events += len(o.Events)
	}
	makeMany(t, len(operators), func(i int) { operators[i].create(t, c) })
	for name, test := range map[string]struct {
		rules    []rbacv1.PolicyRule
		expected func(operatorEvent) outcome
	}{
		"chart":       {harness.RulesIn(t, chart), func(e operatorEvent) outcome { return e.Chart }},
		"every-right": {everyRule(t, operators), func(e operatorEvent) outcome { return e.EveryRight }},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.runInto(t, accept, "start_at: beginning", withoutOwnEvents, c.restricted(t, name, test.rules...))
			r.await(events, func(record) bool { return true })
			series := map[string]int64{}
			for _, o := range operators {
				for _, e := range o.Events {
					o.compareRecord(t, r, e, test.expected(e))
					series[seriesOf(o.series(t, e, test.expected(e)))] += int64(e.Count)
				}
			}
			r.stop()
			assert.Equal(t, series, metricOf(r))
		})
	}
}

// everyRule has the permissions of all integrations, and those to read the kinds of operators that have
// none.
func everyRule(t *testing.T, operators []*operator) []rbacv1.PolicyRule {
	t.Helper()
	rules := append(harness.RulesIn(t, chart, "deploy/manifests/integrations.yaml"), readRule("", "configmaps"))
	for _, o := range operators {
		if o.Integration != "" {
			continue
		}
		for _, k := range o.Kinds {
			rules = append(rules, readRule(k.group(), k.Plural))
		}
	}
	return rules
}

// create creates the kinds, the objects and the events.
func (o *operator) create(t *testing.T, c *cluster) {
	t.Helper()
	for _, k := range o.Kinds {
		c.ApplyObject(t, definition(k.group(), k.Kind, k.Plural, cmp.Or(k.Scope, "Namespaced"), k.APIVersion))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range o.Objects {
		o.Objects[i].uid = c.ApplyObject(t, o.manifest(t, o.Objects[i])).GetUID()
	}
	for _, e := range o.Events {
		ev := o.event(t, e)
		c.makeEvent(t, cmp.Or(ev.InvolvedObject.Namespace, metav1.NamespaceDefault), ev)
	}
}

// compareRecord checks the resolution, the workload and the chain of the record of an event.
func (o *operator) compareRecord(t *testing.T, r *running, e operatorEvent, expected outcome) {
	t.Helper()
	workload := o.kinds[expected.kind]
	want := map[string]any{
		"k8s.owner.resolution": expected.resolution, "k8s.owner.chain": nil,
		"k8s.workload.api_version": workload.APIVersion, "k8s.workload.kind": workload.Kind, "k8s.workload.name": expected.name,
		"k8s.workload.uid": string(o.objects[workload.Kind+" "+expected.name].uid),
	}
	var chain []any
	for _, owner := range o.path(t, e.About, expected)[1:] {
		k, name := o.split(t, owner)
		chain = append(chain, strings.TrimSuffix(strings.ToLower(k.Kind)+"."+k.group(), ".")+"/"+name)
	}
	if chain != nil { // An event about the workload itself has none.
		want["k8s.owner.chain"] = chain
	}
	records := r.records(named(e.name))
	if !assert.Len(t, records, 1, "records of %s: %s about %s", o.Operator, e.Reason, e.About) {
		return
	}
	got := map[string]any{}
	for key := range want {
		got[key] = records[0].Get(key)
	}
	assert.Equal(t, want, got, "%s: %s about %s", o.Operator, e.Reason, e.About)
}

// series are the attributes of the metric that the occurrences of an event count under.
func (o *operator) series(t *testing.T, e operatorEvent, expected outcome) map[string]any {
	t.Helper()
	about, name := o.split(t, e.About)
	namespace := about.namespace(o)
	if about.Kind == "Namespace" {
		namespace = name
	}
	attributes := map[string]any{
		"k8s.namespace.name": namespace, "k8s.workload.api_version": o.kinds[expected.kind].APIVersion,
		"k8s.workload.kind": expected.kind, "k8s.workload.name": expected.metric,
		"k8s.event.reason": e.Reason, "k8s.event.type": e.Type, "k8s.object.kind": about.Kind,
	}
	for key, value := range attributes {
		if value == "" {
			delete(attributes, key)
		}
	}
	return attributes
}

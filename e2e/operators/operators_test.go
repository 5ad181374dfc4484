// SPDX-License-Identifier: Apache-2.0

// Package operators creates the objects and events of popular operators on a real control plane.
// They are in testdata. The tests check what the built Collector makes of them, with the permissions
// that the chart gives by default and with every permission. The table in docs/owners.md has the
// workloads.
package operators

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// kube has no controllers: nothing else writes events, or removes what has no owner.
var kube *harness.Cluster

func TestMain(m *testing.M) {
	os.Exit(harness.RunAll(m, controlplane.Options{}, &kube))
}

func TestEveryWarningHasItsWorkload(t *testing.T) {
	operators := load(t)
	events := 0
	t.Run("create", func(t *testing.T) {
		for _, o := range operators {
			events += len(o.Events)
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				o.create(t)
			})
		}
	})
	for _, rights := range []struct {
		name  string
		rules []rbacv1.PolicyRule
		of    func(event) outcome
	}{
		{"chart", chartRules(t), func(e event) outcome { return e.Chart }},
		{"every-right", everyRule(t, operators), func(e event) outcome { return e.EveryRight }},
	} {
		t.Run(rights.name, func(t *testing.T) {
			kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), rights.name, rights.rules...)
			require.NoError(t, err)
			backend := harness.NewBackend(t)
			collector := harness.Run(t, harness.Otelcol(t), harness.InRepository("e2e", "operators", "collector.yaml"),
				"KUBECONFIG="+kubeconfig, "BACKEND="+backend.URL)
			harness.Eventually(t, func() bool { return len(backend.Records()) >= events }, "%d records", events)
			collector.Stop(t)
			for _, o := range operators {
				t.Run(o.name, func(t *testing.T) { o.compareRecords(t, backend, rights.of) })
			}
			compareSeries(t, backend, operators, rights.of)
		})
	}
}

// chartRules are those of the ClusterRoles that the chart renders, with these values in addition.
func chartRules(t *testing.T, arguments ...string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	arguments = append(arguments, "--set", "otlp.endpoint=http://gateway:4318")
	for _, rendered := range harness.Chart(t, "kube-events", "kube-events", arguments...) {
		if rendered.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.Object, &role))
		rules = append(rules, role.Rules...)
	}
	require.NotEmpty(t, rules)
	return rules
}

// everyRule has the integrations of the operators, and permits reading the kinds of those that have
// none. So it also checks that the integrations are complete.
func everyRule(t *testing.T, operators []*operator) []rbacv1.PolicyRule {
	t.Helper()
	read := []string{"get", "list"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: read}}
	var integrations []string
	for _, o := range operators {
		if o.Integration != "" {
			integrations = append(integrations, o.Integration)
			continue
		}
		for _, k := range o.Kinds {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{k.group()}, Resources: []string{k.Plural}, Verbs: read})
		}
	}
	return append(rules, chartRules(t, "--set", "rbac.integrations={"+strings.Join(integrations, ",")+"}")...)
}

func (k kind) group() string { return k.APIVersion[:max(0, strings.Index(k.APIVersion, "/"))] }

// namespace is that of the operator, unless the kind has none.
func (k kind) namespace(o *operator) string {
	if k.Scope != "" {
		return ""
	}
	return o.name
}

// create creates the kinds, the objects and the events.
func (o *operator) create(t *testing.T) {
	t.Helper()
	for _, k := range o.Kinds {
		kube.ApplyObject(t, k.definition())
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range o.Objects {
		o.Objects[i].uid = kube.ApplyObject(t, o.manifest(t, o.Objects[i])).GetUID()
	}
	for _, e := range o.Events {
		manifest := o.eventManifest(t, e)
		_, err := kube.CoreV1().Events(manifest.Namespace).Create(t.Context(), manifest, metav1.CreateOptions{})
		require.NoError(t, err, e.About)
	}
}

// definition accepts objects with any content.
func (k kind) definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": k.Plural + "." + k.group(),
			// The API server requires this in the groups of Kubernetes.
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		"spec": map[string]any{
			"group": k.group(), "scope": cmp.Or(k.Scope, "Namespaced"),
			"names": map[string]any{"kind": k.Kind, "plural": k.Plural, "singular": strings.ToLower(k.Kind)},
			"versions": []any{map[string]any{
				"name": strings.TrimPrefix(k.APIVersion, k.group()+"/"), "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func (o *operator) manifest(t *testing.T, of object) *unstructured.Unstructured {
	t.Helper()
	k, name := o.split(t, of.Object)
	manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.APIVersion, "kind": k.Kind}}
	manifest.SetName(name)
	manifest.SetGenerateName(of.GenerateName)
	manifest.SetAnnotations(of.Annotations)
	manifest.SetNamespace(k.namespace(o))
	if of.Spec == nil {
		of.Spec = k.Spec
	}
	if of.Spec != nil {
		manifest.Object["spec"] = of.Spec
	}
	var owners []metav1.OwnerReference
	for _, owner := range append(of.Owners, of.Controller) {
		if owner != "" {
			k, name := o.split(t, owner)
			reference := metav1.OwnerReference{APIVersion: k.APIVersion, Kind: k.Kind, Name: name}
			reference.Controller = new(owner == of.Controller)
			owners = append(owners, reference)
		}
	}
	manifest.SetOwnerReferences(owners)
	return manifest
}

func (o *operator) eventManifest(t *testing.T, e event) *corev1.Event {
	t.Helper()
	k, name := o.split(t, e.About)
	require.Contains(t, o.objects, e.About)
	about := corev1.ObjectReference{APIVersion: k.APIVersion, Kind: k.Kind, Namespace: k.namespace(o), Name: name}
	about.UID = cmp.Or(e.UID, o.objects[e.About].uid)
	if e.UID != "" && k.Kind == "Node" {
		about.APIVersion = "" // A kubelet's reference to its Node has none.
	}
	if e.Container != "" {
		about.FieldPath = "spec.containers{" + e.Container + "}"
	}
	manifest := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), Name: e.name},
		InvolvedObject: about, Type: cmp.Or(e.Type, corev1.EventTypeWarning), Reason: e.Reason, Message: e.Reason + " by " + e.From,
	}
	if e.Action == "" {
		manifest.Source = corev1.EventSource{Component: e.From}
		manifest.Count, manifest.FirstTimestamp, manifest.LastTimestamp = e.Count, metav1.Now(), metav1.Now()
		return manifest
	}
	manifest.EventTime, manifest.Action = metav1.NowMicro(), e.Action
	manifest.ReportingController, manifest.ReportingInstance = e.From, e.From+"-0"
	if e.Count > 1 {
		manifest.Series = &corev1.EventSeries{Count: e.Count, LastObservedTime: metav1.NowMicro()}
	}
	return manifest
}

// compareRecords checks the resolution, the workload and the chain of each record.
func (o *operator) compareRecords(t *testing.T, backend *harness.Backend, of func(event) outcome) {
	t.Helper()
	for _, e := range o.Events {
		expected := of(e)
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
		records := backend.Records("k8s.event.name", e.name)
		if !assert.Len(t, records, 1, "records of %s about %s", e.Reason, e.About) {
			continue
		}
		got := map[string]any{}
		for key := range want {
			got[key] = records[0].Get(key)
		}
		assert.Equal(t, want, got, "%s about %s", e.Reason, e.About)
	}
}

// names are the attributes of a series.
var names = [7]string{
	"k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name",
	"k8s.event.reason", "k8s.event.type", "k8s.object.kind",
}

// compareSeries checks that the metric has exactly the series that it must have.
func compareSeries(t *testing.T, backend *harness.Backend, operators []*operator, of func(event) outcome) {
	t.Helper()
	want := map[[len(names)]string]int64{}
	for _, o := range operators {
		for _, e := range o.Events {
			expected := of(e)
			about, name := o.split(t, e.About)
			namespace := about.namespace(o)
			if about.Kind == "Namespace" {
				namespace = name
			}
			want[[...]string{
				namespace, o.kinds[expected.kind].APIVersion, expected.kind, expected.metric,
				e.Reason, cmp.Or(e.Type, corev1.EventTypeWarning), about.Kind,
			}] += int64(e.Count)
		}
	}
	var total, warnings, right int64
	for series, count := range want {
		var attributes []any
		for i, value := range series {
			attributes = append(attributes, names[i], any(value))
			if value == "" {
				attributes[len(attributes)-1] = nil // absent
			}
		}
		got := backend.Occurrences(attributes...)
		assert.Equal(t, count, got, "occurrences of %q", series)
		total += count
		if slices.Contains(series[:], corev1.EventTypeWarning) {
			warnings, right = warnings+count, right+min(count, got)
		}
	}
	assert.Equal(t, total, backend.Occurrences(), "occurrences of all series")
	t.Logf("%d of %d Warning occurrences of %d operators have the right workload in the metric (%.1f %%)",
		right, warnings, len(operators), 100*float64(right)/float64(warnings))
}

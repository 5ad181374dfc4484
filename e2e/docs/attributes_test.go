// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// These recipes add attributes to records, or change their fields.

// TestOwnerLabels: a pod's events have every label of the workload, and none of the pod's own.
func TestOwnerLabels(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("owner-labels", "workloads.yaml"))
	backend := harness.NewBackend(t)
	run(t, "owner-labels", "OTLP_ENDPOINT="+backend.URL)
	labels := func(record harness.Record) map[string]any { return withPrefix(record.Resource, "workload.label.") }
	ofShop := []any{"k8s.namespace.name", "owner-labels", "k8s.workload.name", "shop"}
	for kind, reason := range map[string]string{"Pod": "Started", "ReplicaSet": "SuccessfulCreate", "Deployment": "ScalingReplicaSet"} {
		record := backend.Await(t, append(ofShop, "k8s.object.kind", kind, "k8s.event.reason", reason)...)
		assert.Equal(t, map[string]any{
			"workload.label.app.kubernetes.io/name": "shop", "workload.label.team": "payments", "workload.label.tier": "frontend",
		}, labels(record), kind)
	}
	cart := backend.Await(t, "k8s.namespace.name", "owner-labels", "k8s.statefulset.name", "cart", "k8s.event.reason", "Started")
	assert.Equal(t, map[string]any{"workload.label.app.kubernetes.io/name": "cart", "workload.label.team": "checkout"}, labels(cart))
}

func withPrefix(attributes map[string]any, prefixes ...string) map[string]any {
	found := maps.Clone(attributes)
	maps.DeleteFunc(found, func(name string, _ any) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	return found
}

// TestSeverity: the reason decides, whatever the type is; other reasons keep what the type gives.
func TestSeverity(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("severity", "workloads.yaml"))
	const notReady = "NodeNotReady" // Normal, as the node controller records it
	kube.Recorder(t, "severity").Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "severity", Name: "web"}, corev1.EventTypeNormal, notReady, "Node is not ready")
	backend := harness.NewBackend(t)
	run(t, "severity", "OTLP_ENDPOINT="+backend.URL)
	for reason, severity := range map[string]struct {
		text   string
		number plog.SeverityNumber
	}{
		"FailedScheduling":  {"ERROR", plog.SeverityNumberError},
		notReady:            {"ERROR", plog.SeverityNumberError},
		"Started":           {"DEBUG", plog.SeverityNumberDebug},
		"SuccessfulCreate":  {"DEBUG", plog.SeverityNumberDebug},
		"ScalingReplicaSet": {"Normal", plog.SeverityNumberInfo},
	} {
		record := backend.Await(t, "k8s.namespace.name", "severity", "k8s.event.reason", reason)
		assert.Equal(t, severity.text, record.Log.SeverityText(), reason)
		assert.Equal(t, severity.number, record.Log.SeverityNumber(), reason)
	}
}

// TestMask: no password is in a record or on the page, and nothing else changes. The chart's values have
// the same processor.
func TestMask(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("mask", "events.yaml"))
	free, err := process.FreeAddresses(1)
	require.NoError(t, err)
	backend := harness.NewBackend(t)
	run(t, "mask", "OTLP_ENDPOINT="+backend.URL, "PAGE_ENDPOINT="+free[0])
	for reason, message := range map[string]string{
		"ReconcileFailed": `Post "http://10.0.0.9:8080/api/v0/roles?can_login=true&password=***&username=robot": dial tcp 10.0.0.9:8080: connect: connection refused`,
		"TaskFailed":      "cannot connect to postgresql://app:***@db.example.com:5432/app?sslmode=require",
		"RequestFailed":   `body {"user": "robot", "password": "***"}, environment AWS_SECRET_ACCESS_KEY=*** and header api-key="***"`,
		"ProbeFailed":     `Get "http://10.0.0.9:8080/ready?user=me@example.com": token expired`,
	} {
		record := backend.Await(t, "k8s.namespace.name", "mask", "k8s.event.reason", reason)
		assert.Equal(t, message, record.Log.Body().AsString())
	}
	var page string
	harness.Eventually(t, func() bool {
		page = body(t, "http://"+free[0]+"/api/events?namespace=mask")
		return strings.Contains(page, "db.example.com") && strings.Contains(page, "robot")
	}, "the events on the page")
	assert.NotContains(t, page, "made-up")

	var collector, values struct {
		Processors map[string]any                      `json:"processors"`
		Config     struct{ Processors map[string]any } `json:"config"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(harness.Read(t, file("mask", "collector.yaml"))), &collector))
	require.NoError(t, yaml.Unmarshal([]byte(harness.Read(t, file("mask", "values.yaml"))), &values))
	assert.Equal(t, collector.Processors, values.Config.Processors)
}

// body returns what an address answers.
func body(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		return ""
	}
	defer func() { assert.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// TestTheMetricWithoutNormalEventsOfNodes: a Warning of a Node has its point, with the name, and so has
// NodeNotReady.
func TestTheMetricWithoutNormalEventsOfNodes(t *testing.T) {
	t.Parallel()
	var filter string
	for _, b := range blocksOf(t, "docs/configuration.md", "yaml") {
		if strings.Contains(b.text, "filter/nodes") {
			filter = b.text
		}
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(filter+`
receivers:
  kube_events: {auth_type: kubeConfig, start_at: beginning, collection_interval: 1s}
exporters:
  otlp_http: {endpoint: "${env:OTLP_ENDPOINT}"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [kube_events], exporters: [otlp_http]}
    metrics: {receivers: [kube_events], processors: [filter/nodes], exporters: [otlp_http]}
`), 0o600))
	nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	node := nodes.Items[0]
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	events := kube.Recorder(t, "node-filter")
	events.Event(about, corev1.EventTypeNormal, "FilterStarting", "Starting kubelet.")
	events.Event(about, corev1.EventTypeWarning, "FilterSystemOOM", "System OOM encountered")
	events.Event(about, corev1.EventTypeNormal, "NodeNotReady", "Node status is now: NodeNotReady")
	events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "default"}, corev1.EventTypeNormal, "FilterKept", "about another kind")

	backend := harness.NewBackend(t)
	collector := harness.Run(t, harness.Otelcol(t), config, "OTLP_ENDPOINT="+backend.URL, "KUBECONFIG="+kube.Kubeconfig())
	backend.Await(t, "k8s.event.reason", "FilterStarting", "k8s.node.name", node.Name)
	backend.Await(t, "k8s.event.reason", "FilterSystemOOM")
	backend.Await(t, "k8s.event.reason", "FilterKept")
	backend.Await(t, "k8s.event.reason", "NodeNotReady", "k8s.node.name", node.Name)
	collector.Stop(t)
	assert.Equal(t, int64(1), backend.Occurrences("k8s.event.reason", "FilterSystemOOM", "k8s.workload.name", node.Name))
	assert.Equal(t, int64(1), backend.Occurrences("k8s.event.reason", "NodeNotReady", "k8s.workload.name", node.Name))
	assert.Equal(t, int64(1), backend.Occurrences("k8s.workload.kind", "Node", "k8s.event.type", "Normal"), "no other one")
	assert.Equal(t, int64(1), backend.Occurrences("k8s.event.reason", "FilterKept"))
}

// facts are the attributes that the recipe adds.
type facts = map[string]any

func factsOf(record harness.Record) facts {
	return withPrefix(record.Attributes, "pull.", "scheduling.", "probe.", "scaling.", "resize.")
}

// TestFacts: of the messages of this version's controllers and scheduler, of kubelets, which this
// control plane has not, and of other versions of Kubernetes.
func TestFacts(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("facts", "workloads.yaml"))
	backend := harness.NewBackend(t)
	run(t, "facts", "OTLP_ENDPOINT="+backend.URL)
	huge := backend.Await(t, "k8s.namespace.name", "facts", "k8s.deployment.name", "huge", "k8s.event.reason", "FailedScheduling")
	assert.Equal(t, facts{"scheduling.nodes": int64(2), "scheduling.causes": []any{"Insufficient cpu"}}, factsOf(huge))
	shop := factsOf(backend.Await(t, "k8s.namespace.name", "facts", "k8s.deployment.name", "shop", "k8s.event.reason", "ScalingReplicaSet"))
	assert.Contains(t, shop["scaling.replica_set"], "shop-")
	for name, message := range recordedMessages {
		recorded := createEvent(t, message.reason, message.text)
		record := backend.Await(t, "k8s.event.uid", string(recorded.UID))
		assert.Equal(t, message.facts, factsOf(record), "%s: %s", name, message.text)
	}
}

func createEvent(t *testing.T, reason, message string) *corev1.Event {
	t.Helper()
	now := metav1.Now()
	event, err := kube.CoreV1().Events(metav1.NamespaceDefault).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "recorded-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: "recorded"},
		Reason:         reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "facts-test"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return event
}

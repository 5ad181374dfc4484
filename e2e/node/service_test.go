// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// inShop is the namespace of the workloads with services.
const inShop = "shop"

// TestARecordHasTheServiceThatThePodHas compares what records have of a service with what contrib's
// k8sattributes processor adds to the telemetry of the same pods. Simulated nodes are enough for it.
func TestARecordHasTheServiceThatThePodHas(t *testing.T) {
	kube, err := harness.StartCluster(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kube.Stop()) })
	_, err = kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inShop}}, metav1.CreateOptions{})
	require.NoError(t, err)
	kube.Apply(t, "e2e/node/testdata/service/workloads.yaml")
	backend := harness.NewBackend(t)
	harness.Run(t, harness.Otelcol(t), harness.InRepository("e2e", "node", "testdata", "service", "collector.yaml"),
		"KUBECONFIG="+kube.Kubeconfig(), "BACKEND="+backend.URL)
	processor, processed := startProcessor(t, kube.Kubeconfig())
	for _, owner := range []string{"deployment", "replicaset", "statefulset", "daemonset", "job", "nothing", "labels", "annotations"} {
		t.Run(owner, func(t *testing.T) {
			pod := runningPod(t, kube, owner)
			expected := attributesOf(t, processor, processed, pod)
			require.NotEmpty(t, expected["service.name"])
			assert.Equal(t, expected, joined(recordAbout(t, kube, backend, pod).Resource))
		})
	}
}

// runningPod returns a pod whose containers have started: the processor knows containers by their
// status.
func runningPod(t *testing.T, kube *harness.Cluster, owner string) (pod *corev1.Pod) {
	t.Helper()
	harness.Eventually(t, func() bool {
		pods, err := kube.CoreV1().Pods(inShop).List(t.Context(), metav1.ListOptions{LabelSelector: "of=" + owner})
		require.NoError(t, err)
		if len(pods.Items) == 0 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
			return false
		}
		pod = &pods.Items[0]
		return true
	}, "a pod of %s", owner)
	return pod
}

// startProcessor starts the processor as users configure it, and returns what it passes on.
func startProcessor(t *testing.T, kubeconfig string) (processor.Logs, *consumertest.LogsSink) {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	factory := k8sattributesprocessor.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"auth_type": "kubeConfig",
		"extract": map[string]any{
			"metadata":         []any{"service.name", "service.namespace", "service.version", "service.instance.id"},
			"otel_annotations": true,
		},
		"pod_association": []any{map[string]any{"sources": []any{map[string]any{"from": "resource_attribute", "name": "k8s.pod.uid"}}}},
	}).Unmarshal(config))
	sink := &consumertest.LogsSink{}
	p, err := factory.CreateLogs(t.Context(), processortest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, p.Shutdown(context.Background())) })
	return p, sink
}

// attributesOf returns what the processor adds to a record of the pod's container app, as soon as it
// knows the pod.
func attributesOf(t *testing.T, p processor.Logs, processed *consumertest.LogsSink, pod *corev1.Pod) (added map[string]any) {
	t.Helper()
	harness.Eventually(t, func() bool {
		logs := plog.NewLogs()
		resource := logs.ResourceLogs().AppendEmpty()
		resource.Resource().Attributes().PutStr("k8s.pod.uid", string(pod.UID))
		resource.Resource().Attributes().PutStr("k8s.container.name", "app")
		resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		processed.Reset()
		require.NoError(t, p.ConsumeLogs(t.Context(), logs))
		added = joined(processed.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().AsRaw())
		return added["service.instance.id"] != nil
	}, "the processor knows %s", pod.Name)
	return added
}

// joined are the attributes by which a backend joins telemetry: of the service, and of annotations.
func joined(attributes map[string]any) map[string]any {
	maps.DeleteFunc(attributes, func(name string, _ any) bool { return !strings.HasPrefix(name, "service.") && name != "team" })
	return attributes
}

// recordAbout returns the record of an event about the pod's container app.
func recordAbout(t *testing.T, kube *harness.Cluster, backend *harness.Backend, pod *corev1.Pod) harness.Record {
	t.Helper()
	_, err := kube.CoreV1().Events(inShop).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "about-" + pod.Name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: inShop, Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{app}",
		},
		Type: corev1.EventTypeNormal, Reason: "Compared", Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return backend.Await(t, "k8s.event.reason", "Compared", "k8s.pod.name", pod.Name)
}

// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// comparison is how people run contrib's k8s_events.
const comparison = `
receivers:
  k8s_events: {auth_type: kubeConfig}
exporters:
  otlphttp: {endpoint: "${env:OTLP_ENDPOINT}"}
service:
  pipelines:
    logs: {receivers: [k8s_events], exporters: [otlphttp]}
`

// TestMigrationFromK8sEvents compares both on the same events.
func TestMigrationFromK8sEvents(t *testing.T) {
	t.Parallel()
	const namespace = "migration"
	makeNamespace(t, namespace)
	theirs, ours := runBoth(t, namespace)
	for name, test := range comparedEvents(t, namespace) {
		t.Run("an event "+name, func(t *testing.T) {
			t.Parallel()
			created := makeEvent(t, cmp.Or(test.event.InvolvedObject.Namespace, metav1.NamespaceDefault), test.event)
			old := theirs.Await(t, "k8s.event.uid", string(created.UID))
			compare(t, created, old, ours.Await(t, "k8s.event.uid", string(created.UID)), test.differ)
		})
	}
	t.Run("updates", func(t *testing.T) {
		t.Parallel()
		compareUpdates(t, namespace, theirs, ours)
	})
}

// comparedEvents: with the recipe, each attribute that k8s_events emits is there, at the same
// place and with the same value, but for those that the page names. Cluster-scoped objects are in no
// namespace, their events in default.
func comparedEvents(t *testing.T, namespace string) map[string]comparedEvent {
	t.Helper()
	return map[string]comparedEvent{
		"of a kubelet": {event: &corev1.Event{
			Type: "Normal", Count: 3, Source: corev1.EventSource{Component: "kubelet", Host: "node-0"},
			ReportingController: "kubelet", ReportingInstance: "node-0",
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web", UID: "1", FieldPath: "spec.containers{web}", ResourceVersion: "17",
			},
		}},
		"of the same pod, with less": {event: &corev1.Event{
			Type: "Warning", Count: 1, Source: corev1.EventSource{Component: "kubelet", Host: "node-0"},
			ReportingController: "kubelet", ReportingInstance: "node-0",
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web", UID: "1"},
		}},
		"of a controller": {event: &corev1.Event{
			Type: "Warning", Count: 1, Source: corev1.EventSource{Component: "replicaset-controller"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: "web-1", UID: "2"},
		}},
		"of a type in another case": {event: &corev1.Event{
			Type: "warning", Count: 1,
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web", UID: "1"},
		}},
		"of type Error":    {event: typed("Error", namespace)},
		"of type Critical": {event: typed("Critical", namespace)},
		"of another type":  {event: typed("Panic", namespace)},
		"that names next to nothing": {event: &corev1.Event{
			Type: "Normal", Count: 1, InvolvedObject: corev1.ObjectReference{Kind: "Whatever", Namespace: namespace, Name: "bare"},
		}},
		"of the new kind": {
			event: &corev1.Event{
				Type: "Warning", Action: "Scheduling", EventTime: metav1.NowMicro(), ReportingController: "default-scheduler", ReportingInstance: "scheduler-0",
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web", UID: "1"},
			},
			differ: map[string]values{"k8s.event.count": {theirs: nil, ours: int64(1)}},
		},
		"of a reporter that is no kubelet, on a host": {
			event: &corev1.Event{
				Type: "Normal", Count: 1, Source: corev1.EventSource{Component: "backup", Host: "host-7"},
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web", UID: "1"},
			},
			differ: map[string]values{"k8s.node.name": {theirs: "host-7", ours: ""}},
		},
		"of a volume": {event: &corev1.Event{
			Type: "Warning", Count: 1, InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: "disk", UID: "3"},
		}},
		"of a node, by its kubelet": {event: &corev1.Event{
			Type: "Normal", Count: 1, Source: corev1.EventSource{Component: "kubelet", Host: "node-0"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0", UID: "node-0"},
		}},
		"of a node, by a controller": {
			event: &corev1.Event{
				Type: "Normal", Count: 1, Source: corev1.EventSource{Component: "node-controller"},
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0", UID: "any"},
			},
			differ: map[string]values{"k8s.node.name": {theirs: "", ours: "node-0"}},
		},
		"without what the object has": {
			event: &corev1.Event{Type: "Normal", Count: 1, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "node-1"}},
			differ: map[string]values{
				"k8s.node.name":          {theirs: "", ours: "node-1"},
				"k8s.object.uid":         {theirs: "", ours: string(kube.Get(t, "v1", "Node", "", "node-1").GetUID())},
				"k8s.object.api_version": {theirs: "", ours: "v1"},
			},
		},
	}
}

// compareUpdates checks what the page documents about updates: a change without a new occurrence is no
// record, a jump of the count is one record of several occurrences, and a repeat of a new-style event
// has the time of the repeat.
func compareUpdates(t *testing.T, namespace string, theirs, ours *harness.Backend) {
	t.Helper()
	old := makeEvent(t, namespace, typed("Warning", namespace))
	ofOld := []any{"k8s.event.uid", string(old.UID)}
	awaitRecords(t, 1, theirs, ofOld)
	awaitRecords(t, 1, ours, ofOld)
	old.Labels = map[string]string{"seen": "yes"}
	old = updateEvent(t, old)
	awaitRecords(t, 2, theirs, ofOld)
	old.Count = 9
	updateEvent(t, old)
	awaitRecords(t, 3, theirs, ofOld)
	awaitRecords(t, 2, ours, ofOld)
	assert.Equal(t, int64(8), ours.Records(ofOld...)[1].Get("k8s.event.occurrences"))

	first := metav1.NowMicro()
	repeated := metav1.NewMicroTime(first.Add(time.Minute))
	series := makeEvent(t, namespace, &corev1.Event{
		Type: "Warning", Action: "Scheduling", EventTime: first, ReportingController: "default-scheduler", ReportingInstance: "scheduler-0",
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web"},
	})
	ofSeries := []any{"k8s.event.uid", string(series.UID)}
	awaitRecords(t, 1, theirs, ofSeries)
	awaitRecords(t, 1, ours, ofSeries)
	series.Series = &corev1.EventSeries{Count: 2, LastObservedTime: repeated}
	updateEvent(t, series)
	awaitRecords(t, 2, theirs, ofSeries)
	awaitRecords(t, 2, ours, ofSeries)
	assert.Equal(t, first.UnixMicro(), theirs.Records(ofSeries...)[1].Log.Timestamp().AsTime().UnixMicro())
	assert.Equal(t, repeated.UnixMicro(), ours.Records(ofSeries...)[1].Log.Timestamp().AsTime().UnixMicro())
	assert.Len(t, ours.Records(ofOld...), 2, "the label was no record, then or later")
}

func awaitRecords(t *testing.T, count int, backend *harness.Backend, attributes []any) {
	t.Helper()
	harness.Eventually(t, func() bool { return len(backend.Records(attributes...)) >= count }, "%d records with %v", count, attributes)
}

func updateEvent(t *testing.T, event *corev1.Event) *corev1.Event {
	t.Helper()
	updated, err := kube.CoreV1().Events(event.Namespace).Update(t.Context(), event, metav1.UpdateOptions{})
	require.NoError(t, err)
	return updated
}

// values are what the two have of one attribute.
type values struct{ theirs, ours any }

// runBoth runs a Collector with k8s_events, and one with the page's configuration, and waits until
// both watch. k8s_events takes only events that happen after that.
func runBoth(t *testing.T, namespace string) (theirs, ours *harness.Backend) {
	t.Helper()
	theirs, ours = harness.NewBackend(t), harness.NewBackend(t)
	old := filepath.Join(t.TempDir(), "k8s_events.yaml")
	require.NoError(t, os.WriteFile(old, []byte(comparison), 0o600))
	// k8s_events prints times in the zone of its machine, which is UTC in containers.
	harness.Run(t, harness.ComparisonOtelcol(t), old, "TZ=UTC", "KUBECONFIG="+kube.Kubeconfig(), "OTLP_ENDPOINT="+theirs.URL)
	harness.Run(t, harness.Otelcol(t), harness.InRepository(file("k8s-events", "collector.yaml")), "KUBECONFIG="+kube.Kubeconfig(), "OTLP_ENDPOINT="+ours.URL)
	harness.Eventually(t, func() bool {
		makeEvent(t, namespace, typed("Normal", namespace))
		return len(theirs.Records()) > 0 && len(ours.Records()) > 0
	}, "both Collectors to watch")
	return theirs, ours
}

// typed is an event of a type, of an object that is not there.
func typed(eventType, namespace string) *corev1.Event {
	return &corev1.Event{Type: eventType, Count: 1, InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "any", UID: "4"}}
}

func makeEvent(t *testing.T, namespace string, event *corev1.Event) *corev1.Event {
	t.Helper()
	event.GenerateName, event.Namespace = "event-", namespace
	event.Reason, event.Message = "Compared", "with k8s_events"
	if event.EventTime.IsZero() {
		// k8s_events drops what happened before it started, by its own clock and to the fraction of
		// a second.
		event.FirstTimestamp, event.LastTimestamp = metav1.NewTime(time.Now().Add(time.Minute)), metav1.NewTime(time.Now().Add(time.Minute))
	}
	created, err := kube.CoreV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// comparedEvent is one that both are shown.
type comparedEvent struct {
	event  *corev1.Event
	differ map[string]values // besides those of every event
}

// compare goes through all that k8s_events has.
func compare(t *testing.T, event *corev1.Event, theirs, ours harness.Record, differ map[string]values) {
	t.Helper()
	assert.Equal(t, theirs.Log.Body().AsString(), ours.Log.Body().AsString())
	assert.Equal(t, theirs.Log.Timestamp(), ours.Log.Timestamp())
	assert.Equal(t, theirs.Log.SeverityNumber(), ours.Log.SeverityNumber())
	if theirs.Log.SeverityNumber() != plog.SeverityNumberUnspecified {
		assert.Equal(t, theirs.Log.SeverityText(), ours.Log.SeverityText())
	}
	assert.NotEmpty(t, theirs.Resource)
	assert.NotEmpty(t, theirs.Attributes)
	compareAttributes(t, theirs.Resource, ours.Resource, differ)
	compareAttributes(t, theirs.Attributes, ours.Attributes, differ)
	compareStarts(t, event, theirs.Attributes, ours.Attributes)
	for key, value := range differ {
		assert.Equal(t, value.theirs, theirs.Get(key), "%s of k8s_events", key)
		assert.Equal(t, value.ours, ours.Get(key), "%s of kube_events", key)
		assert.Contains(t, explained(t), "`"+key+"`", "the page names what differs")
	}
}

func compareAttributes(t *testing.T, theirs, ours map[string]any, differ map[string]values) {
	t.Helper()
	for key, value := range theirs {
		if _, ok := differ[key]; !ok && key != startTime {
			assert.Equal(t, value, ours[key], key)
		}
	}
}

const startTime = "k8s.event.start_time"

// compareStarts: theirs is when the Event was created, ours when it first occurred, both as Go
// prints a time.
func compareStarts(t *testing.T, event *corev1.Event, theirs, ours map[string]any) {
	t.Helper()
	assert.Equal(t, event.CreationTimestamp.UTC().String(), theirs[startTime])
	first := event.FirstTimestamp.Time
	if first.IsZero() {
		first = event.EventTime.Time
	}
	assert.Equal(t, first.UTC().Truncate(time.Second).String(), ours[startTime])
}

// explained is the page's section on what the recipe cannot restore.
func explained(t *testing.T) string {
	t.Helper()
	_, section, found := strings.Cut(harness.Read(t, "docs", "migrate.md"), "cannot restore the following values")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

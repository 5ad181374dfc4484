// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// TestTheOldRecorder is client-go's tools/record, which kubelets and most controllers use. It counts
// repeats, and combines similar events.
func TestTheOldRecorder(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	recorder := kube.Recorder(t, "old-recorder")
	pod := kube.make(t, ns, "v1", "Pod", "noisy")

	const repeats, messages = 5, 15
	for range repeats {
		recorder.Event(pod, corev1.EventTypeWarning, "BackOff", "back-off restarting failed container")
	}
	for i := range messages {
		recorder.Eventf(pod, corev1.EventTypeNormal, "Similar", "message %d", i)
	}
	r.awaitSum(t, repeats, withReason("BackOff"))
	r.awaitSum(t, messages, withReason("Similar"))
	records := r.records(about(ns, "BackOff"))
	assert.EqualValues(t, repeats, total(records))
	assert.EqualValues(t, repeats, records[len(records)-1].count())
	for i, rec := range records {
		assert.Equal(t, records[0].text("k8s.event.uid"), rec.text("k8s.event.uid"), "one event")
		assert.Equal(t, records[0].text("k8s.event.start_time"), rec.text("k8s.event.start_time"), "that began once")
		assert.Equal(t, "old-recorder", rec.text("k8s.event.reporting_controller"))
		assert.NotContains(t, rec.Attributes, "k8s.event.action")
		if i > 0 {
			assert.False(t, rec.time().Before(records[i-1].time()), "each record has the time of its newest occurrence")
		}
	}
	assert.EqualValues(t, messages, total(r.records(about(ns, "Similar"))))
	combined := r.records(func(r record) bool {
		return about(ns, "Similar")(r) && strings.HasPrefix(r.body(), "(combined from similar events): ")
	})
	require.NotEmpty(t, combined)
	for i, observed := range observationsOf(combined) {
		assert.Equal(t, observation{int64(i + 1), 1}, observed)
	}
	assert.Equal(t, "(combined from similar events): message 14", combined[len(combined)-1].body(), "the newest message")
}

// TestTheNewRecorder is client-go's tools/events, which the scheduler uses.
func TestTheNewRecorder(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	recorder := broadcaster.NewRecorder(scheme.Scheme, "new-recorder")
	pod, node := kube.make(t, ns, "v1", "Pod", "placed"), kube.awaitObject(t, "", "v1", "Node", func(*object) bool { return true })

	// It writes the first two, and keeps further ones in memory for minutes.
	for n := range 2 {
		recorder.Eventf(pod, node, corev1.EventTypeNormal, "Placed", "Binding", "placed on %s", node.GetName())
		r.await(n+1, about(ns, "Placed"))
	}
	records := r.records(about(ns, "Placed"))
	assert.Equal(t, []observation{{1, 1}, {2, 1}}, observationsOf(records))
	stored, err := kube.CoreV1().Events(ns).Get(t.Context(), records[0].text("k8s.event.name"), metav1.GetOptions{})
	require.NoError(t, err)
	for _, rec := range records {
		assert.Equal(t, map[string]any{
			"k8s.event.name":                 stored.Name,
			"k8s.event.uid":                  string(stored.UID),
			"k8s.event.reason":               "Placed",
			"k8s.event.type":                 "Normal",
			"k8s.event.action":               "Binding",
			"k8s.event.count":                rec.count(),
			"k8s.event.occurrences":          int64(1),
			"k8s.event.start_time":           stored.EventTime.UTC().Format(time.RFC3339Nano),
			"k8s.event.reporting_controller": "new-recorder",
			"k8s.event.reporting_instance":   stored.ReportingInstance,
			"k8s.event.related.api_version":  "v1",
			"k8s.event.related.kind":         "Node",
			"k8s.event.related.name":         node.GetName(),
			"k8s.event.related.uid":          string(node.GetUID()),
			"k8s.object.resource_version":    pod.GetResourceVersion(),
			"k8s.owner.resolution":           "complete",
			"log.record.uid":                 rec.text("log.record.uid"),
		}, rec.Attributes)
		assert.Equal(t, "placed on "+node.GetName(), rec.body())
	}
	assert.Equal(t, stored.EventTime.UTC(), records[0].time())
	assert.Equal(t, stored.Series.LastObservedTime.UTC(), records[1].time(), "a repeat has the time of the repeat")
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	oldrecord "k8s.io/client-go/tools/record"
)

// history is what a test does to one event, each call one write.
type history struct {
	t  *testing.T
	c  *cluster
	ns string
	ev *corev1.Event
}

func (h *history) create(ev *corev1.Event) {
	if h.ev != nil {
		ev.Name = h.ev.Name
	}
	h.ev = h.c.makeEvent(h.t, h.ns, ev)
}

func (h *history) update(change func(*corev1.Event)) {
	change(h.ev)
	h.ev = h.c.updateEvent(h.t, h.ev)
}

// counted creates the event with a count, as a recorder does that finds its event gone.
func (h *history) counted(n int32) { h.create(withCount(eventOf("Counted", "pod"), n)) }

func (h *history) count(n int32) { h.update(func(ev *corev1.Event) { ev.Count = n }) }

func (h *history) delete() { h.c.deleteEvent(h.t, h.ev) }

// series is what the recorder of events.k8s.io writes.
func (h *history) series(n int32) {
	h.update(func(ev *corev1.Event) {
		ev.Series = &corev1.EventSeries{Count: n, LastObservedTime: metav1.NowMicro()}
	})
}

// newStyle is the first write of an event of events.k8s.io: no count, no series, none of the old
// times.
func newStyle(reason string) *corev1.Event {
	ev := eventOf(reason, "pod")
	ev.Count, ev.FirstTimestamp, ev.LastTimestamp, ev.Source = 0, metav1.Time{}, metav1.Time{}, corev1.EventSource{}
	ev.EventTime = metav1.NowMicro()
	ev.ReportingController, ev.ReportingInstance, ev.Action = "e2e", "e2e-0", "Testing"
	return ev
}

// observation is what a record contains of counts.
type observation struct{ count, occurrences int64 }

func TestOccurrencesAreCountedOnce(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)

	for name, test := range map[string]struct {
		history func(*history)
		want    []observation
	}{
		"an event is one occurrence": {
			func(h *history) { h.counted(1) },
			[]observation{{1, 1}},
		},
		"an event without a count is one occurrence": {
			func(h *history) { h.counted(0) },
			[]observation{{1, 1}},
		},
		"an event first seen with count 3 is three": {
			func(h *history) { h.counted(3) },
			[]observation{{3, 3}},
		},
		"a patch from 3 to 11 is eight": {
			func(h *history) { h.counted(1); h.count(3); h.count(11) },
			[]observation{{1, 1}, {3, 2}, {11, 8}},
		},
		"every write that brings occurrences is a record": {
			func(h *history) {
				h.counted(1)
				for n := int32(2); n <= 6; n++ {
					h.count(n)
				}
			},
			[]observation{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}},
		},
		"the first update of a series is its second occurrence": {
			func(h *history) { h.create(newStyle("Series")); h.series(2); h.series(3); h.series(14) },
			[]observation{{1, 1}, {2, 1}, {3, 1}, {14, 11}},
		},
		"a series that exists when first seen counts in full": {
			func(h *history) {
				ev := newStyle("Series")
				ev.Series = &corev1.EventSeries{Count: 5, LastObservedTime: metav1.NowMicro()}
				h.create(ev)
			},
			[]observation{{5, 5}},
		},
		"the greater of count and series counts": {
			func(h *history) { h.counted(4); h.series(2); h.series(6) },
			[]observation{{4, 4}, {6, 2}},
		},
		"a label is no occurrence": {
			func(h *history) {
				h.counted(2)
				h.update(func(ev *corev1.Event) { ev.Labels = map[string]string{"a": "label"} })
				h.count(3)
			},
			[]observation{{2, 2}, {3, 1}},
		},
		"a rewritten message is no occurrence": {
			func(h *history) {
				h.counted(2)
				h.update(func(ev *corev1.Event) { ev.Message = "rewritten" })
			},
			[]observation{{2, 2}},
		},
		"a count that goes down and up again is not counted twice": {
			func(h *history) { h.counted(5); h.count(2); h.count(5); h.count(6) },
			[]observation{{5, 5}, {6, 1}},
		},
		"a deletion is no occurrence": {
			func(h *history) { h.counted(2); h.delete() },
			[]observation{{2, 2}},
		},
		"an event that its recorder makes again after the TTL has one new occurrence": {
			func(h *history) { h.counted(7); h.delete(); h.counted(8); h.count(9) },
			[]observation{{7, 7}, {8, 1}, {9, 1}},
		},
		"a recorder that counted on meanwhile has more": {
			func(h *history) { h.counted(7); h.delete(); h.counted(12) },
			[]observation{{7, 7}, {12, 5}},
		},
		"a series that its recorder makes again goes on as well": {
			func(h *history) {
				h.create(newStyle("Series"))
				h.series(4)
				h.delete()
				ev := newStyle("Series")
				ev.Series = &corev1.EventSeries{Count: 5, LastObservedTime: metav1.NowMicro()}
				h.create(ev)
			},
			[]observation{{1, 1}, {4, 3}, {5, 1}},
		},
		"a new event under an old name counts from 1": {
			func(h *history) { h.counted(7); h.delete(); h.counted(1); h.count(2) },
			[]observation{{7, 7}, {1, 1}, {2, 1}},
		},
		"a new event with the same count as the old one counts in full": {
			func(h *history) { h.counted(3); h.delete(); h.counted(3) },
			[]observation{{3, 3}, {3, 3}},
		},
		"an event deleted twice is remembered": {
			func(h *history) { h.counted(2); h.delete(); h.counted(3); h.delete(); h.counted(4) },
			[]observation{{2, 2}, {3, 1}, {4, 1}},
		},
		"an event that began more than an hour before it was created outlived our memory": {
			func(h *history) {
				ev := withCount(eventOf("Counted", "pod"), 40)
				ev.FirstTimestamp = metav1.NewTime(time.Now().Add(-61 * time.Minute))
				h.create(ev)
				h.count(41)
			},
			[]observation{{40, 1}, {41, 1}},
		},
		"an event that began less than an hour before it was created counts in full": {
			func(h *history) {
				ev := withCount(eventOf("Counted", "pod"), 40)
				ev.FirstTimestamp = metav1.NewTime(time.Now().Add(-58 * time.Minute))
				h.create(ev)
			},
			[]observation{{40, 40}},
		},
		"a negative count is one occurrence": {
			func(h *history) { h.counted(-3); h.count(-2); h.count(2) },
			[]observation{{1, 1}, {2, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, c: kube, ns: ns}
			test.history(h)
			r.fence(t, ns)
			records := r.records(named(h.ev.Name))
			assert.Equal(t, test.want, observationsOf(records))
			checkIdentity(t, records)
		})
	}
}

func observationsOf(records []record) (all []observation) {
	for _, r := range records {
		all = append(all, observation{r.count(), r.occurrences()})
	}
	return all
}

// checkIdentity: log.record.uid is one for the same event and count, whichever receiver sees it.
func checkIdentity(t *testing.T, records []record) {
	t.Helper()
	counts := map[string]string{}
	for _, r := range records {
		state := fmt.Sprint(r.text("k8s.event.uid"), " ", r.count())
		id := r.text("log.record.uid")
		assert.NotContains(t, counts, id, "%s and %s share their log.record.uid", counts[id], state)
		counts[id] = state
	}
}

func TestTwoReceiversGiveARecordTheSameUID(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	first := kube.run(t, in(ns))
	first.fence(t, ns)
	ev := kube.makeEvent(t, ns, withCount(eventOf("Twice", "pod"), 2))
	kube.updateEvent(t, withCount(ev, 3))
	seen := first.await(2, about(ns, "Twice"))

	second := kube.run(t, in(ns))
	late := second.await(1, about(ns, "Twice"))[0]
	assert.Equal(t, observation{3, 3}, observationsOf([]record{late})[0])
	assert.Equal(t, seen[1].text("log.record.uid"), late.text("log.record.uid"), "same event, same count")
	assert.NotEqual(t, seen[0].text("log.record.uid"), late.text("log.record.uid"), "same event, another count")
}

func TestTheOldRecorder(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	recorder := oldRecorder(t)
	pod := kube.make(t, ns, "v1", "Pod", "noisy")

	const repeats = 5
	for range repeats {
		recorder.Event(pod, corev1.EventTypeWarning, "BackOff", "back-off restarting failed container")
	}
	eventually(t, func() bool { return total(r.records(about(ns, "BackOff"))) == repeats }, "all occurrences")
	records := r.records(about(ns, "BackOff"))
	assert.EqualValues(t, repeats, records[len(records)-1].count())
	for i, rec := range records {
		assert.Equal(t, records[0].text("k8s.event.uid"), rec.text("k8s.event.uid"), "one event")
		assert.Equal(t, records[0].text("k8s.event.start_time"), rec.text("k8s.event.start_time"), "that began once")
		if i > 0 {
			assert.False(t, rec.time().Before(records[i-1].time()), "each record has the time of its newest occurrence")
		}
	}
	newest := records[len(records)-1]
	assert.Equal(t, "old-recorder", newest.text("k8s.event.reporting_controller"))
	assert.Equal(t, "node-0", newest.text("k8s.event.reporting_instance"))
	assert.NotContains(t, newest.attrs, "k8s.event.action")
	assert.Equal(t, "noisy", newest.text("k8s.pod.name"))
	r.awaitSum(t, repeats, withReason("BackOff"))
}

func TestTheOldRecorderCombinesSimilarEvents(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	recorder := oldRecorder(t)
	pod := kube.make(t, ns, "v1", "Pod", "chatty")

	const messages = 15
	for i := range messages {
		recorder.Eventf(pod, corev1.EventTypeNormal, "Similar", "message %d", i)
	}
	eventually(t, func() bool { return total(r.records(about(ns, "Similar"))) == messages }, "all occurrences")
	combined := r.records(func(r record) bool {
		return about(ns, "Similar")(r) && strings.HasPrefix(r.body(), "(combined from similar events): ")
	})
	require.NotEmpty(t, combined)
	for i, rec := range combined {
		assert.Equal(t, observation{int64(i + 1), 1}, observationsOf(combined)[i])
		assert.Equal(t, "old-recorder", rec.text("k8s.event.reporting_controller"), "falls back to source.component")
		assert.Equal(t, "node-0", rec.text("k8s.event.reporting_instance"), "falls back to source.host")
	}
	newest := combined[len(combined)-1]
	assert.Equal(t, "(combined from similar events): message 14", newest.body(), "the newest message")
	r.awaitSum(t, messages, withReason("Similar"))
}

// oldRecorder is the recorder of client-go's tools/record, which kubelets and most controllers use.
func oldRecorder(t *testing.T) oldrecord.EventRecorder {
	broadcaster := oldrecord.NewBroadcaster(oldrecord.WithContext(t.Context()))
	t.Cleanup(broadcaster.Shutdown)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old-recorder", Host: "node-0"})
}

func TestTheNewRecorder(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	recorder := newRecorder(t)
	pod, node := kube.make(t, ns, "v1", "Pod", "placed"), kube.awaitObject(t, "", "v1", "Node", func(*object) bool { return true })

	// It writes the first two, and keeps further ones in memory for minutes.
	for n := range 2 {
		recorder.Eventf(pod, node, corev1.EventTypeNormal, "Placed", "Binding", "placed on %s", node.GetName())
		r.await(n+1, about(ns, "Placed"))
	}
	records := r.records(about(ns, "Placed"))
	assert.Equal(t, []observation{{1, 1}, {2, 1}}, observationsOf(records))
	stored := kube.event(t, ns, records[0].text("k8s.event.name"))
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
		}, rec.attrs)
		assert.Equal(t, "placed on "+node.GetName(), rec.body())
	}
	assert.Equal(t, stored.EventTime.UTC(), records[0].time())
	assert.Equal(t, stored.Series.LastObservedTime.UTC(), records[1].time(), "a repeat has the time of the repeat")
}

// newRecorder is the recorder of client-go's tools/events, which the scheduler uses.
func newRecorder(t *testing.T) events.EventRecorder {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	return broadcaster.NewRecorder(scheme.Scheme, "new-recorder")
}

func (c *cluster) event(t *testing.T, namespace, name string) *corev1.Event {
	t.Helper()
	ev, err := c.CoreV1().Events(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return ev
}

// TestKubeRsRecorder: kube-rs writes through events.k8s.io and patches the series on every repeat.
func TestKubeRsRecorder(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	r.fence(t, ns)
	api := kube.EventsV1().Events(ns)
	ev, err := api.Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: unique("rs")}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal,
		ReportingController: "rs-controller", ReportingInstance: "rs-0", Action: "Reconciling", Reason: "Reconciled", Note: "all is well",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "settings"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for count := int32(2); count <= 4; count++ {
		ev.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NowMicro()}
		ev, err = api.Update(t.Context(), ev, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	records := r.await(4, about(ns, "Reconciled"))
	assert.Equal(t, []observation{{1, 1}, {2, 1}, {3, 1}, {4, 1}}, observationsOf(records))
	for _, rec := range records {
		assert.Equal(t, "all is well", rec.body())
		assert.Equal(t, "rs-controller", rec.text("k8s.event.reporting_controller"))
		assert.Equal(t, "rs-0", rec.text("k8s.event.reporting_instance"))
		assert.Equal(t, "Reconciling", rec.text("k8s.event.action"))
	}
}

func TestAHandMadeEvent(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	ev := kube.makeEvent(t, ns, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "backup-finished-for-today"}, Reason: "BackupFinished", Message: "42 files",
		Source:         corev1.EventSource{Component: "backup"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone"},
	})
	rec := r.of(t, ev.Name)
	assert.Equal(t, map[string]any{
		"k8s.event.name":                 ev.Name,
		"k8s.event.uid":                  string(ev.UID),
		"k8s.event.reason":               "BackupFinished",
		"k8s.event.count":                int64(1),
		"k8s.event.occurrences":          int64(1),
		"k8s.event.start_time":           ev.CreationTimestamp.UTC().Format(time.RFC3339),
		"k8s.event.reporting_controller": "backup",
		"k8s.owner.resolution":           "not_found",
		"log.record.uid":                 rec.text("log.record.uid"),
	}, rec.attrs)
	resourceIs(t, rec, map[string]any{
		"k8s.namespace.name": ns, "k8s.object.api_version": "v1", "k8s.object.kind": "ConfigMap", "k8s.object.name": "gone",
	})
	assert.Equal(t, ev.CreationTimestamp.UTC(), rec.time(), "all else is missing")
	assert.Empty(t, rec.log.SeverityText())
}

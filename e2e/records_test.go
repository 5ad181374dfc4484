// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEveryAttributeOfARecord(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	pod := kube.make(t, ns, "v1", "Pod", "full")
	began := time.Now()
	ev := kube.makeEvent(t, ns, &corev1.Event{
		Reason: "Full", Message: "all of it", Type: "Warning", Action: "Testing", Count: 4,
		FirstTimestamp: metav1.NewTime(time.Date(2024, 2, 29, 12, 0, 0, 0, time.FixedZone("", 3600))),
		LastTimestamp:  metav1.NewTime(time.Date(2024, 2, 29, 13, 0, 0, 0, time.UTC)),
		Source:         corev1.EventSource{Component: "source", Host: "host"}, ReportingController: "controller", ReportingInstance: "instance",
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: "full", UID: pod.GetUID(), ResourceVersion: "4711", FieldPath: "spec.containers{app}",
		},
		Related: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "settings", UID: "any"},
	})
	rec := r.of(t, ev.Name)
	assert.Equal(t, map[string]any{
		"k8s.event.name":                 ev.Name,
		"k8s.event.uid":                  string(ev.UID),
		"k8s.event.reason":               "Full",
		"k8s.event.type":                 "Warning",
		"k8s.event.action":               "Testing",
		"k8s.event.count":                int64(4),
		"k8s.event.occurrences":          int64(1), // It began more than an hour before.
		"k8s.event.start_time":           "2024-02-29T11:00:00Z",
		"k8s.event.reporting_controller": "controller",
		"k8s.event.reporting_instance":   "instance",
		"k8s.event.related.api_version":  "v1",
		"k8s.event.related.kind":         "ConfigMap",
		"k8s.event.related.namespace":    ns,
		"k8s.event.related.name":         "settings",
		"k8s.event.related.uid":          "any",
		"k8s.object.fieldpath":           "spec.containers{app}",
		"k8s.object.resource_version":    "4711",
		"k8s.owner.resolution":           "complete",
		"log.record.uid":                 rec.text("log.record.uid"),
	}, rec.attrs)
	resourceIs(t, rec, merge(map[string]any{
		"k8s.namespace.name": ns, "k8s.pod.name": "full", "k8s.pod.uid": string(pod.GetUID()), "k8s.container.name": "app",
	}, objectAttributes("k8s.object", pod), objectAttributes("k8s.workload", pod)))

	assert.Equal(t, time.Date(2024, 2, 29, 13, 0, 0, 0, time.UTC), rec.time())
	assert.Equal(t, "k8s.event", rec.log.EventName())
	assert.Equal(t, "all of it", rec.body())
	observed := rec.log.ObservedTimestamp().AsTime()
	assert.False(t, observed.Before(began.Add(-time.Millisecond)), "seen after it was made")
	assert.False(t, observed.After(time.Now()))
}

func TestTheClusterIsNamed(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	ev := kube.makeEvent(t, ns, eventOf("Named", "pod"))
	system, err := kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	assert.NoError(t, err)
	assert.Equal(t, string(system.UID), r.of(t, ev.Name).text("k8s.cluster.uid"))
	r.awaitSum(t, 1, func(p point) bool { return p.attrs["k8s.cluster.uid"] == string(system.UID) })
}

// TestTheClusterIsNamedAfterAHiccup: the UID is left out where it may not be read, not where it was
// not read at once.
func TestTheClusterIsNamedAfterAHiccup(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	g := newGateway(t, kube.Kubeconfig())
	var once atomic.Bool
	g.inject(refuse(http.StatusServiceUnavailable, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") && once.CompareAndSwap(false, true)
	}))
	r := kube.run(t, in(ns), g.config())
	ev := kube.makeEvent(t, ns, eventOf("Early", "pod"))
	assert.NotEmpty(t, r.of(t, ev.Name).text("k8s.cluster.uid"))
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for eventType, number := range map[string]plog.SeverityNumber{
		"Normal":  plog.SeverityNumberInfo,
		"Warning": plog.SeverityNumberWarn,
		"Panic":   plog.SeverityNumberUnspecified,
		"warning": plog.SeverityNumberUnspecified,
		"":        plog.SeverityNumberUnspecified,
	} {
		t.Run(fmt.Sprintf("of type %q", eventType), func(t *testing.T) {
			ev := eventOf("Typed", "pod")
			ev.Type = eventType
			rec := r.of(t, kube.makeEvent(t, ns, ev).Name)
			assert.Equal(t, number, rec.log.SeverityNumber())
			assert.Equal(t, eventType, rec.log.SeverityText())
			assert.Equal(t, eventType, rec.text("k8s.event.type"))
		})
	}
}

func TestTheReporterFallsBackToTheSource(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for name, test := range map[string]struct {
		source               corev1.EventSource
		controller, instance string
		wantController       any
		wantInstance         any
	}{
		"both given":       {corev1.EventSource{Component: "c", Host: "h"}, "controller", "instance", "controller", "instance"},
		"source alone":     {corev1.EventSource{Component: "c", Host: "h"}, "", "", "c", "h"},
		"controller alone": {corev1.EventSource{}, "controller", "", "controller", nil},
		"component alone":  {corev1.EventSource{Component: "c"}, "", "", "c", nil},
		"neither":          {corev1.EventSource{}, "", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ev := eventOf("Reported", "pod")
			ev.Source, ev.ReportingController, ev.ReportingInstance = test.source, test.controller, test.instance
			rec := r.of(t, kube.makeEvent(t, ns, ev).Name)
			assert.Equal(t, test.wantController, rec.attrs["k8s.event.reporting_controller"])
			assert.Equal(t, test.wantInstance, rec.attrs["k8s.event.reporting_instance"])
		})
	}
}

// TestTimes: Timestamp is the newest occurrence, k8s.event.start_time the first, each by a ladder
// of fields, and a time that no OTLP timestamp can hold is passed over for the next.
func TestTimes(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	year := func(y int) time.Time { return time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC) }
	day := func(d int) time.Time { return time.Date(2025, 3, d, 4, 5, 6, 0, time.UTC) }
	micro := day(3).Add(7 * time.Microsecond)
	never := time.Time{}

	for name, test := range map[string]struct {
		series, last, event, first time.Time
		want, wantStart            time.Time // zero: that of the creation
	}{
		"the series' last observation comes first": {day(4), day(3), day(2), day(1), day(4), day(1)},
		"then lastTimestamp":                       {never, day(3), day(2), day(1), day(3), day(1)},
		"then eventTime":                           {never, never, day(2), day(1), day(2), day(1)},
		"then firstTimestamp":                      {never, never, never, day(1), day(1), day(1)},
		"then the creation":                        {never, never, never, never, never, never},
		"the ladder decides, not the greatest":     {day(1), day(2), day(3), day(4), day(1), day(4)},
		"eventTime is the first occurrence":        {day(5), never, day(2), never, day(5), day(2)},
		"microseconds are kept":                    {never, never, micro, never, micro, micro},
		"before 1970 is passed over":               {year(1969), day(3), day(2), day(1), day(3), day(1)},
		"after 2554 is passed over":                {year(2555), day(3), day(2), day(1), day(3), day(1)},
		"all out of range but the creation":        {year(1901), year(9999), year(2600), year(1815), never, never},
		"the start passes over as well":            {never, day(3), day(2), year(2600), day(3), day(2)},
		"1970 is held":                             {never, year(1970), never, year(1970), year(1970), year(1970)},
		"2300 is held, beyond signed nanoseconds":  {never, year(2300), never, year(2300), year(2300), year(2300)},
		"2554 is held":                             {never, year(2554), never, year(2554), year(2554), year(2554)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := newStyle("Timed")
			ev.FirstTimestamp, ev.LastTimestamp, ev.EventTime = metav1.NewTime(test.first), metav1.NewTime(test.last), metav1.NewMicroTime(test.event)
			if !test.series.IsZero() {
				ev.Series = &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(test.series)}
			}
			ev = kube.makeEvent(t, ns, ev)
			rec := r.of(t, ev.Name)
			// Seconds and nanoseconds apart: together they overflow Go's signed nanoseconds.
			stamp := uint64(rec.log.Timestamp())
			got := time.Unix(int64(stamp/1e9), int64(stamp%1e9)).UTC()
			assert.Equal(t, orCreation(test.want, ev), got)
			assert.Equal(t, orCreation(test.wantStart, ev).Format(time.RFC3339Nano), rec.text("k8s.event.start_time"))
		})
	}
}

func orCreation(t time.Time, ev *corev1.Event) time.Time {
	if t.IsZero() {
		return ev.CreationTimestamp.UTC()
	}
	return t
}

func TestStartAtEndRemembersWhatExists(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	old := kube.makeEvent(t, ns, withCount(eventOf("Old", "pod"), 5))
	kept := kube.makeEvent(t, ns, withCount(eventOf("Kept", "pod"), 5))
	gone := kube.makeEvent(t, ns, withCount(eventOf("Gone", "pod"), 5))
	r := kube.run(t, "start_at: end", "namespaces: ["+ns+"]")
	r.settled(t, ns)

	kube.updateEvent(t, withCount(old, 7))
	kept.Labels = map[string]string{"new": "label"}
	kube.updateEvent(t, kept)
	kube.deleteEvent(t, gone)
	late := eventOf("Late", "pod")
	late.FirstTimestamp, late.LastTimestamp = metav1.NewTime(time.Now().Add(-30*time.Minute)), metav1.NewTime(time.Now().Add(-30*time.Minute))
	late = kube.makeEvent(t, ns, late)
	r.fence(t, ns)
	assert.Len(t, r.records(named(late.Name)), 1, "clocks differ: no timestamp decides what is new")
	assert.Equal(t, []observation{{7, 2}}, observationsOf(r.records(about(ns, "Old"))), "what changes from there")
	assert.Empty(t, r.records(about(ns, "Kept")))
	assert.Empty(t, r.records(about(ns, "Gone")))
	r.awaitSum(t, 2, withReason("Old"))
}

func TestStartAtEndIsTheDefault(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	kube.makeEvent(t, ns, eventOf("Old", "pod"))
	r := kube.run(t, "namespaces: ["+ns+"]")
	r.settled(t, ns)
	assert.Empty(t, r.records(about(ns, "Old")))
}

func TestStartAtBeginningEmitsWhatExists(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	old := kube.makeEvent(t, ns, withCount(eventOf("Old", "pod"), 5))
	r := kube.run(t, in(ns))
	r.of(t, old.Name)
	kube.updateEvent(t, withCount(old, 6))
	assert.Equal(t, []observation{{5, 5}, {6, 1}}, observationsOf(r.await(2, about(ns, "Old"))))
	r.awaitSum(t, 6, withReason("Old"))
}

func TestWithoutStorageEveryStartIsAFirstStart(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	kube.makeEvent(t, ns, withCount(eventOf("Old", "pod"), 5))
	for range 2 {
		r := kube.run(t, in(ns))
		assert.Equal(t, []observation{{5, 5}}, observationsOf(r.await(1, about(ns, "Old"))))
		r.awaitSum(t, 5, withReason("Old"))
		r.stop()
	}
}

// settled waits until a receiver that starts at the end has seen what exists: until it emits a new
// event.
func (r *running) settled(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func() bool {
		r.c.makeEvent(t, namespace, eventOf("Settled", "settled"))
		return len(r.records(about(namespace, "Settled"))) > 0
	}, "a new event")
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"
)

// onePoint waits for the point of a reason, and returns it without what changes from cluster to
// cluster.
func (r *running) onePoint(t *testing.T, reason string) point {
	t.Helper()
	var found []point
	eventually(t, func() bool {
		found = r.points(withReason(reason))
		return len(found) > 0
	}, "a point of %s", reason)
	require.Len(t, found, 1)
	assert.NotEmpty(t, found[0].attrs["k8s.cluster.uid"])
	found[0].attrs = without(found[0].attrs, "k8s.cluster.uid")
	return found[0]
}

// points are the newest points that the test wants.
func (r *running) points(want func(point) bool) []point {
	all := r.metrics.AllMetrics()
	return pointsAmong(all[max(0, len(all)-1):], want)
}

// allPoints are the points so far that the test wants, in their order.
func (r *running) allPoints(want func(point) bool) []point {
	return pointsAmong(r.metrics.AllMetrics(), want)
}

func pointsAmong(all []pmetric.Metrics, want func(point) bool) (found []point) {
	for _, metrics := range all {
		for _, p := range pointsOf(metrics) {
			if want(p) {
				found = append(found, p)
			}
		}
	}
	return found
}

func TestWhatTheMetricCountsUnder(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns, "default"), "include_reasons: [Metered*]")
	deployment := c.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe-1", controlledBy(deployment))
	lostRS := c.make(t, ns, "apps/v1", "ReplicaSet", "lost", controlledBy(gone("apps/v1", "Deployment", "gone")))
	lostPod := c.make(t, ns, "v1", "Pod", "lost", controlledBy(lostRS))
	node := c.make(t, "", "v1", "Node", unique("metered"))

	for name, test := range map[string]struct {
		involved  []corev1.ObjectReference // of which each has an event
		namespace string
		want      map[string]any
	}{
		"pods of a Deployment: one series, of the Deployment": {
			[]corev1.ObjectReference{
				referenceTo(c.make(t, ns, "v1", "Pod", "fe-1-a", controlledBy(rs))), referenceTo(c.make(t, ns, "v1", "Pod", "fe-1-b", controlledBy(rs))),
			}, ns,
			map[string]any{
				"k8s.namespace.name": ns, "k8s.workload.api_version": "apps/v1", "k8s.workload.kind": "Deployment", "k8s.workload.name": "fe",
				"tilt.manifest": "shop",
			},
		},
		"bare pods: one series without a name": {
			[]corev1.ObjectReference{
				referenceTo(c.make(t, ns, "v1", "Pod", "bare-a")), referenceTo(c.make(t, ns, "v1", "Pod", "bare-b")),
			}, ns,
			map[string]any{"k8s.namespace.name": ns, "k8s.workload.api_version": "v1", "k8s.workload.kind": "Pod"},
		},
		"a pod whose end is not known": {
			[]corev1.ObjectReference{referenceTo(lostPod)}, ns,
			map[string]any{"k8s.namespace.name": ns, "k8s.workload.api_version": "v1", "k8s.workload.kind": "Pod"},
		},
		"a pod that was never there": {
			[]corev1.ObjectReference{{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: "never"}}, ns,
			map[string]any{"k8s.namespace.name": ns, "k8s.workload.api_version": "v1", "k8s.workload.kind": "Pod"},
		},
		"an unknown end that is no pod: without a workload": {
			[]corev1.ObjectReference{referenceTo(lostRS)}, ns,
			map[string]any{"k8s.namespace.name": ns},
		},
		"a Node: without a namespace": {
			[]corev1.ObjectReference{referenceTo(node)}, "default",
			map[string]any{"k8s.workload.api_version": "v1", "k8s.workload.kind": "Node", "k8s.workload.name": node.GetName()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := "Metered" + unique("")
			for _, involved := range test.involved {
				ev := eventAbout(reason, involved)
				ev.Type, ev.Count = "Warning", 2
				c.makeEvent(t, test.namespace, ev)
			}
			r.awaitSum(t, int64(2*len(test.involved)), withReason(reason))
			p := r.onePoint(t, reason)
			assert.Equal(t, merge(map[string]any{
				"k8s.event.reason": reason, "k8s.event.type": "Warning", "k8s.object.kind": test.involved[0].Kind,
			}, test.want), p.attrs)
		})
	}
}

// gone is an object that the API server does not have.
func gone(apiVersion, kind, name string) *object {
	o := &object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetUID("00000000-0000-4000-8000-000000000000")
	return o
}

func TestReasonTypeAndKindTellSeriesApart(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for _, reason := range []string{"A", "B"} {
		for _, eventType := range []string{"Normal", "Warning"} {
			ev := eventOf(reason, "pod")
			ev.Type = eventType
			kube.makeEvent(t, ns, ev)
		}
	}
	kube.makeEvent(t, ns, eventAbout("A", corev1.ObjectReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "gone"}))
	r.awaitSum(t, 5, anyPoint)
	assert.Len(t, r.points(anyPoint), 5)
}

func TestEachSeriesStartsWhenItsFirstOccurrenceIsSeen(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	began := time.Now()
	r := kube.run(t, in(ns))
	seen := r.of(t, kube.makeEvent(t, ns, eventOf("Early", "pod")).Name).log.ObservedTimestamp().AsTime()
	early := r.onePoint(t, "Early")
	assert.False(t, early.start.Before(began.Add(-time.Millisecond)))
	assert.False(t, early.start.After(seen), "it starts at %v, its first occurrence was seen at %v", early.start, seen)
	between := time.Now()
	r.of(t, kube.makeEvent(t, ns, eventOf("Late", "pod")).Name)
	late := r.onePoint(t, "Late")
	assert.True(t, early.start.Before(between))
	assert.False(t, late.start.Before(between))
}

func TestMaxSeriesOverflows(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	const reasons, most = 10, 3
	other := kube.newNamespace(t)
	r := kube.runLoosely(t, in(ns, other), fmt.Sprintf("series: {max: %d}", 2*most)) // One namespace makes half of them.
	for i := range reasons {
		ev := eventOf(fmt.Sprint("Reason", i), "pod")
		ev.Count = 2
		r.of(t, kube.makeEvent(t, ns, ev).Name)
	}
	r.awaitSum(t, 2*reasons, anyPoint)
	named := r.points(func(p point) bool { return p.attrs["k8s.event.reason"] != nil })
	assert.Len(t, named, most, "the overflow series is none of them")
	overflow := r.points(func(p point) bool { return p.attrs["k8s.event.reason"] == nil })
	require.Len(t, overflow, 1)
	assert.Equal(t, map[string]any{"otel.metric.overflow": true, "k8s.cluster.uid": named[0].attrs["k8s.cluster.uid"]}, overflow[0].attrs, "only the cluster and the mark")
	assert.EqualValues(t, 2*(reasons-most), overflow[0].value)

	kube.makeEvent(t, ns, eventOf("Reason0", "other-pod"))
	r.awaitSum(t, 3, withReason("Reason0")) // A series that has its place keeps it.

	for i := range most {
		kube.makeEvent(t, other, eventOf(fmt.Sprint("Other", i), "pod"))
	}
	for i := range most { // Another namespace has its share.
		r.awaitSum(t, 1, withReason(fmt.Sprint("Other", i)))
	}
}

func TestASeriesThatDoesNotMoveIsDropped(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.runLoosely(t, in(ns), "series: {ttl: 700ms}")
	kube.makeEvent(t, ns, withCount(eventOf("Rare", "pod"), 5))
	eventually(t, func() bool { return len(r.allPoints(withReason("Rare"))) > 1 }, "the series")
	// Another series stays, without which nothing would be emitted.
	eventually(t, func() bool {
		kube.makeEvent(t, ns, eventOf("Frequent", "pod"))
		return len(r.points(withReason("Frequent"))) > 0 && len(r.points(withReason("Rare"))) == 0
	}, "the end of the series")
	before := r.allPoints(withReason("Rare"))
	kube.makeEvent(t, ns, withCount(eventOf("Rare", "pod"), 2))
	var after []point
	eventually(t, func() bool {
		after = r.allPoints(withReason("Rare"))[len(before):]
		return len(after) > 1
	}, "the series again")
	assert.Zero(t, before[0].value)
	assert.EqualValues(t, 5, before[1].value)
	assert.Zero(t, after[0].value)
	assert.EqualValues(t, 2, after[1].value, "it counts from 0")
	assert.True(t, after[0].start.After(before[len(before)-1].at), "from a start after its last point")
}

func TestRefusedMetricsHoldNothing(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	logs, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	var refuses atomic.Bool
	refuses.Store(true)
	flaky, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		if refuses.Load() {
			return errors.New("not now")
		}
		return metrics.ConsumeMetrics(ctx, md)
	})
	require.NoError(t, err)
	start(t, kube.parse(t, in(ns)), &statusHost{}, logs, flaky)
	r := &running{t: t, c: kube, logs: logs, metrics: metrics}

	for range 3 {
		r.fence(t, ns) // Records come while the metric is refused.
	}
	refuses.Store(false)
	r.awaitSum(t, 3, withReason("Fence")) // The next point carries all.
}

func TestEitherPipelineAlone(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	logs, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	start(t, kube.parse(t, in(ns)), &statusHost{}, logs, nil)
	start(t, kube.parse(t, in(ns)), &statusHost{}, nil, metrics)
	r := &running{t: t, c: kube, logs: logs, metrics: metrics}
	r.fence(t, ns)
	r.awaitSum(t, 1, withReason("Fence"))
}

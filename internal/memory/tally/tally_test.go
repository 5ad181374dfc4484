// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func pod(name string) *resolver.Object {
	return &resolver.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

func deployment(name string) *resolver.Object {
	return &resolver.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

// seen is n occurrences of a reason for the first of the objects, which the others own.
func seen(reason string, n int64, resolution resolver.Resolution, objects ...*resolver.Object) observation.Observation {
	return observation.Observation{
		Event:       &corev1.Event{Reason: reason, Type: "Warning", InvolvedObject: corev1.ObjectReference{Kind: objects[0].Kind}},
		Occurrences: n,
		Chain:       resolver.Chain{Objects: objects, Resolution: resolution},
	}
}

func add(t *Tally, now time.Time, observations ...observation.Observation) { t.Add(observations, now) }

// sums are the points as "attributes of the resource without UIDs; attributes of the point" with
// their values.
func sums(t *Tally, now time.Time) map[string]int64 {
	found := map[string]int64{}
	each(t.Metrics(Scope{}, semconv.Cluster{}, now), func(resource map[string]any, dp pmetric.NumberDataPoint) {
		for key := range resource {
			if len(key) > 4 && key[len(key)-4:] == ".uid" {
				delete(resource, key)
			}
		}
		found[fmt.Sprintf("%v%v", resource, dp.Attributes().AsRaw())] = dp.IntValue()
	})
	return found
}

func each(metrics pmetric.Metrics, do func(resource map[string]any, dp pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			do(rm.Resource().Attributes().AsRaw(), dp)
		}
	}
}

func TestOccurrencesCountUnderTheirWorkload(t *testing.T) {
	fe := deployment("fe")
	unowned := &resolver.Object{APIVersion: "example.com/v1", Kind: "Bakery", Namespace: "ns", Name: "b"}
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	add(tally, at(1),
		seen("BackOff", 2, resolver.Complete, pod("a"), fe),
		seen("BackOff", 3, resolver.Ambiguous, pod("b"), fe),
		seen("Scaled", 1, resolver.Complete, fe),
		seen("BackOff", 4, resolver.Complete, pod("bare")),
		seen("BackOff", 5, resolver.NotFound, pod("unknown"), deployment("gone")),
		seen("Resolved", 6, resolver.Forbidden, unowned),
		seen("NodeReady", 7, resolver.Complete, &resolver.Object{APIVersion: "v1", Kind: "Node", Name: "n"}),
	)
	workload := "map[k8s.deployment.name:fe k8s.namespace.name:ns k8s.workload.api_version:apps/v1 k8s.workload.kind:Deployment k8s.workload.name:fe]"
	assert.Equal(t, map[string]int64{
		workload + "map[k8s.event.reason:BackOff k8s.event.type:Warning k8s.object.kind:Pod]":       5,
		workload + "map[k8s.event.reason:Scaled k8s.event.type:Warning k8s.object.kind:Deployment]": 1,
		// A bare pod and one whose end is not known are one series.
		"map[k8s.namespace.name:ns k8s.workload.api_version:v1 k8s.workload.kind:Pod]map[k8s.event.reason:BackOff k8s.event.type:Warning k8s.object.kind:Pod]":                   9,
		"map[k8s.namespace.name:ns]map[k8s.event.reason:Resolved k8s.event.type:Warning k8s.object.kind:Bakery]":                                                                 6,
		"map[k8s.node.name:n k8s.workload.api_version:v1 k8s.workload.kind:Node k8s.workload.name:n]map[k8s.event.reason:NodeReady k8s.event.type:Warning k8s.object.kind:Node]": 7,
	}, sums(tally, at(2)))
}

func TestTagsTellSeriesApart(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	for _, tags := range [][]extract.Tag{{{Name: "a", Value: "b"}}, {{Name: "a", Value: "c"}}, nil} {
		o := seen("R", 1, resolver.Complete, deployment("fe"))
		o.Tags.Metric = tags
		add(tally, at(1), o, o)
	}
	assert.Len(t, sums(tally, at(1)), 3)
	for series, sum := range sums(tally, at(1)) {
		assert.Equal(t, int64(2), sum, series)
	}
}

func TestTagsThatAreNotTheMetricsDoNotTellSeriesApart(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	for _, value := range []string{"z1", "z2"} {
		o := seen("R", 1, resolver.Complete, deployment("fe"))
		o.Tags.Resource, o.Tags.Record = []extract.Tag{{Name: "zone", Value: value}}, []extract.Tag{{Name: "run", Value: value}}
		add(tally, at(1), o)
	}
	assert.Len(t, sums(tally, at(1)), 1)
	for series, sum := range sums(tally, at(1)) {
		assert.Equal(t, int64(2), sum)
		assert.NotContains(t, series, "z1")
	}
}

func TestBeyondMaxSeriesOneSeriesCounts(t *testing.T) {
	tally := New(Config{MaxSeries: 2, SeriesTTL: time.Hour}, start)
	for i := range 5 {
		add(tally, at(1), seen("R", int64(i+1), resolver.Complete, deployment(fmt.Sprint("d", i))))
	}
	add(tally, at(1), seen("R", 10, resolver.Complete, deployment("d0")))
	got := sums(tally, at(1))
	assert.Len(t, got, 3)
	assert.Equal(t, int64(3+4+5), got["map[]map[otel.metric.overflow:true]"], "its resource has only the cluster, its point only the mark")
	total := int64(0)
	for _, sum := range got {
		total += sum
	}
	assert.Equal(t, int64(25), total, "nothing is lost")
}

func TestASeriesThatDoesNotMoveIsDroppedAndBeginsAnew(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	add(tally, at(0), seen("Old", 1, resolver.Complete, deployment("a")))
	add(tally, at(30), seen("Young", 1, resolver.Complete, deployment("b")))
	tally.Expire(at(60))
	assert.Len(t, sums(tally, at(60)), 2, "not yet")
	tally.Expire(at(61))
	assert.Len(t, sums(tally, at(61)), 2, "not before its value was emitted")
	tally.Emitted()
	tally.Expire(at(61))
	assert.Len(t, sums(tally, at(61)), 1)

	add(tally, at(70), seen("Old", 2, resolver.Complete, deployment("a")))
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(71)), func(_ map[string]any, dp pmetric.NumberDataPoint) {
		reason, _ := dp.Attributes().Get("k8s.event.reason")
		if reason.Str() == "Old" {
			assert.Equal(t, int64(2), dp.IntValue())
			assert.Equal(t, at(61).Add(2*time.Millisecond), dp.StartTimestamp().AsTime(), "the last collection did not have it")
		} else {
			assert.Equal(t, start, dp.StartTimestamp().AsTime())
		}
		assert.Equal(t, at(71), dp.Timestamp().AsTime())
	})
}

func TestTheMetricIsACumulativeMonotonicSum(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	add(tally, at(0), seen("R", 1, resolver.Complete, deployment("a")))
	rm := tally.Metrics(Scope{Name: "scope", Version: "v1"}, semconv.Cluster{UID: "cluster", Name: "east"}, at(1)).ResourceMetrics().At(0)
	cluster, ok := rm.Resource().Attributes().Get("k8s.cluster.uid")
	require.True(t, ok)
	assert.Equal(t, "cluster", cluster.Str())
	name, ok := rm.Resource().Attributes().Get("k8s.cluster.name")
	require.True(t, ok)
	assert.Equal(t, "east", name.Str())
	metric := rm.ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, "k8s.event.occurrences", metric.Name())
	assert.Equal(t, "{occurrence}", metric.Unit())
	assert.True(t, metric.Sum().IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
	assert.Equal(t, "scope", rm.ScopeMetrics().At(0).Scope().Name())
}

func TestAddingAndReadingAtOnce(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				add(tally, at(j), seen("R", 1, resolver.Complete, deployment(fmt.Sprint(i))))
				tally.Metrics(Scope{}, semconv.Cluster{}, at(j))
				tally.Expire(at(0))
			}
		})
	}
	all.Wait()
	total := int64(0)
	for _, sum := range sums(tally, at(100)) {
		total += sum
	}
	assert.Equal(t, int64(800), total)
}

// reopened is the tally as a new process finds it: everything that changed was saved and is
// restored.
func reopened(t *testing.T, stored map[Key][]byte, old *Tally) *Tally {
	t.Helper()
	keys := old.TakeChanged()
	for _, k := range keys {
		if value := old.Value(k); value != nil {
			stored[k] = value
		} else {
			delete(stored, k)
		}
	}
	old.Saved()
	restored := New(old.config, at(1000))
	restored.Track()
	for k, value := range stored {
		require.NoError(t, restored.Restore(k, value))
	}
	return restored
}

func TestSumsGoOnAfterARestart(t *testing.T) {
	stored, tally := map[Key][]byte{}, New(Config{MaxSeries: 2, SeriesTTL: time.Hour}, start)
	tally.Track()
	tagged := seen("R", 1, resolver.Complete, deployment("tagged"))
	tagged.Tags.Metric = []extract.Tag{{Name: "team", Value: "web"}}
	add(tally, at(1), tagged, seen("R", 2, resolver.NotFound, pod("p")), seen("R", 3, resolver.Complete, deployment("beyond")))
	tally = reopened(t, stored, tally)
	before := sums(tally, at(2))
	assert.Len(t, before, 3)
	assert.Equal(t, int64(3), before["map[]map[otel.metric.overflow:true]"])

	add(tally, at(3), tagged, seen("R", 5, resolver.Complete, deployment("beyond")))
	tally = reopened(t, stored, tally)
	after := sums(tally, at(4))
	assert.Equal(t, int64(8), after["map[]map[otel.metric.overflow:true]"])
	assert.Len(t, after, 3, "the restored series count as series")
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(5)), func(resource map[string]any, dp pmetric.NumberDataPoint) {
		assert.Equal(t, start, dp.StartTimestamp().AsTime(), "the old start time")
		if resource["team"] == "web" {
			assert.Equal(t, int64(2), dp.IntValue())
		}
	})

	tally.Emitted()
	tally.Expire(at(120))
	tally = reopened(t, stored, tally)
	assert.Len(t, sums(tally, at(121)), 1, "what was dropped does not come back")
}

// value is the sum of all series that the metric reports.
func value(t *Tally, now time.Time) (total int64) {
	for _, v := range sums(t, now) {
		total += v
	}
	return total
}

func TestTheMetricReportsOnlyWhatIsSaved(t *testing.T) {
	tally := New(Config{MaxSeries: 2, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(1), seen("R", 2, resolver.Complete, deployment("a")))
	assert.Empty(t, sums(tally, at(1)), "a sum that was reported and then lost would fall")
	assert.Len(t, tally.TakeChanged(), 1)
	assert.Empty(t, sums(tally, at(1)), "it is being saved")
	tally.Saved()
	assert.Equal(t, int64(2), value(tally, at(1)))
	add(tally, at(2), seen("R", 3, resolver.Complete, deployment("a")))
	assert.Equal(t, int64(2), value(tally, at(2)))
	assert.Equal(t, 1, tally.Changed())
}

func TestWhatIsCountedWhileAWriteIsUnderWayIsInTheNextOne(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	tally.Track()
	a, b := seen("R", 2, resolver.Complete, deployment("a")), seen("R", 30, resolver.Complete, deployment("b"))
	add(tally, at(1), a)
	first := tally.TakeChanged()
	require.Len(t, first, 1)
	written := tally.Value(first[0])

	add(tally, at(2), a, b)
	tally.Saved()
	assert.Equal(t, int64(2), value(tally, at(2)), "as it was when it was written")
	restored := New(tally.config, at(3))
	restored.Track()
	require.NoError(t, restored.Restore(first[0], written))
	assert.Equal(t, int64(2), value(restored, at(3)), "a crash loses nothing that was reported")

	assert.Len(t, tally.TakeChanged(), 2)
	assert.Equal(t, int64(2), value(tally, at(3)))
	tally.Saved()
	assert.Equal(t, int64(34), value(tally, at(3)))
	assert.Empty(t, tally.TakeChanged())
	tally.Saved()
	assert.Equal(t, int64(34), value(tally, at(4)), "a write without series changes none")
}

func TestTheOverflowSeriesIsReportedOnceItIsSaved(t *testing.T) {
	tally := New(Config{MaxSeries: 1, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(1), seen("R", 1, resolver.Complete, deployment("a")), seen("R", 5, resolver.Complete, deployment("b")))
	tally.TakeChanged()
	add(tally, at(1), seen("R", 7, resolver.Complete, deployment("c")))
	tally.Saved()
	assert.Equal(t, int64(1+5), value(tally, at(2)))
}

func TestASeriesThatIsDroppedWhileItIsSavedStaysDropped(t *testing.T) {
	stored, tally := map[Key][]byte{}, New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(0), seen("R", 2, resolver.Complete, deployment("a")))
	for _, k := range tally.TakeChanged() {
		stored[k] = tally.Value(k)
	}
	tally.Saved()
	sums(tally, at(1))
	tally.Emitted()
	tally.Expire(at(120))
	tally.Saved()
	assert.Empty(t, sums(tally, at(121)))
	assert.Empty(t, sums(reopened(t, stored, tally), at(121)))
	assert.Empty(t, stored)
}

func TestASeriesWhoseLastValueIsNotSavedIsNotDropped(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(0), seen("R", 2, resolver.Complete, deployment("a")))
	tally.TakeChanged()
	tally.Saved()
	add(tally, at(1), seen("R", 3, resolver.Complete, deployment("a")))
	sums(tally, at(2))
	tally.Emitted()
	tally.Expire(at(120))
	tally.TakeChanged()
	tally.Saved()
	assert.Equal(t, int64(5), value(tally, at(121)))
}

func TestAResetIsSaved(t *testing.T) {
	stored, tally := map[Key][]byte{}, New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(0), seen("R", 2, resolver.Complete, deployment("a")))
	tally = reopened(t, stored, tally)
	assert.Len(t, stored, 1)
	tally.Reset(at(10))
	assert.Empty(t, sums(tally, at(11)))
	tally = reopened(t, stored, tally)
	assert.Empty(t, stored)
	add(tally, at(1020), seen("R", 1, resolver.Complete, deployment("a")))
	tally.TakeChanged()
	tally.Saved()
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(1021)), func(_ map[string]any, dp pmetric.NumberDataPoint) {
		assert.Equal(t, at(1000), dp.StartTimestamp().AsTime(), "with a new start time: that of the process")
	})
}

// dot is a point of the metric.
type dot struct {
	value     int64
	start, at time.Duration // after the start of the tally
}

// dots are the points of the only series, in their order.
func dots(t *Tally, now time.Time) (all []dot) {
	each(t.Metrics(Scope{}, semconv.Cluster{}, now), func(_ map[string]any, dp pmetric.NumberDataPoint) {
		all = append(all, dot{dp.IntValue(), dp.StartTimestamp().AsTime().Sub(start), dp.Timestamp().AsTime().Sub(start)})
	})
	return all
}

func seenAt(now time.Time, n int64) observation.Observation {
	o := seen("R", n, resolver.Complete, deployment("a"))
	o.SeenAt = now
	return o
}

const minute = time.Minute

func TestTheFirstPointOfASeriesIs0AtItsStart(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	add(tally, at(3), seenAt(at(2), 5))
	assert.Equal(t, []dot{{0, 2 * minute, 2 * minute}}, dots(tally, at(4)))
	assert.Equal(t, []dot{{5, 2 * minute, 6 * minute}}, dots(tally, at(6)), "also if the pipeline has rejected the 0")
	tally.Emitted()
	add(tally, at(7), seenAt(at(7), 1))
	assert.Equal(t, []dot{{6, 2 * minute, 8 * minute}}, dots(tally, at(8)))
}

func TestWithoutInitialZeroTheFirstPointIsTheValue(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	add(tally, at(3), seenAt(at(2), 5))
	assert.Equal(t, []dot{{5, 2 * minute, 4 * minute}}, dots(tally, at(4)))
}

func TestASeriesStartsAfterTheLastCollectionAndInItsTerm(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	dots(tally, at(10))
	add(tally, at(11), seenAt(at(9), 5))
	assert.Equal(t, []dot{{5, 10*minute + time.Millisecond, 12 * minute}}, dots(tally, at(12)), "the last collection did not have it")
	tally.Reset(at(20))
	add(tally, at(21), seenAt(at(13), 5))
	assert.Equal(t, []dot{{5, 20 * minute, 22 * minute}}, dots(tally, at(22)), "the term has begun then")
}

func TestAtTheEndANewSeriesHasIts0AndItsValue(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	add(tally, at(1), seenAt(at(1), 5))
	tally.End()
	assert.Equal(t, []dot{{0, minute, minute}, {5, minute, minute + time.Millisecond}}, dots(tally, at(1)), "at least 1 ms apart")
	tally.Emitted()
	assert.Equal(t, []dot{{5, minute, 2 * minute}}, dots(tally, at(2)))
}

func TestTheValueIsNotEmittedBeforeItIsSavedThatThe0Was(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	tally.Track()
	add(tally, at(1), seenAt(at(1), 5))
	assert.Empty(t, dots(tally, at(2)), "the sum is not saved")
	stored := map[Key][]byte{}
	tally = reopened(t, stored, tally)
	assert.Equal(t, []dot{{0, minute, minute}}, dots(tally, at(1003)), "the 0 was not emitted before the restart")
	assert.True(t, tally.TakeBegun(), "this has to be saved")
	assert.False(t, tally.TakeBegun())
	assert.Empty(t, dots(tally, at(1004)), "a crash now would emit the 0 again")
	tally = reopened(t, stored, tally)
	assert.Equal(t, []dot{{5, minute, 1005 * minute}}, dots(tally, at(1005)))
	assert.False(t, tally.TakeBegun())
	assert.Zero(t, tally.Changed())

	add(tally, at(1006), seenAt(at(1006), 1))
	tally.TakeChanged()
	tally.Saved()
	assert.Equal(t, []dot{{6, minute, 1007 * minute}}, dots(tally, at(1007)))
}

func TestTheEndOfSavedSumsIsSavedFirst(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	tally.Track()
	add(tally, at(1), seenAt(at(1), 5))
	tally.TakeChanged()
	tally.Saved()
	tally.End()
	assert.Empty(t, dots(tally, at(2)))
	tally.TakeChanged()
	tally.Saved()
	assert.Equal(t, []dot{{0, minute, minute}, {5, minute, 3 * minute}}, dots(tally, at(3)))
}

func TestASeriesOfAnOlderVersionsCheckpointNeedsNo0(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	tally.Track()
	require.NoError(t, tally.Restore(Key{1}, []byte(`{"reason":"R","start":"2026-01-02T03:04:05Z","moved":"2026-01-02T03:04:05Z","occurrences":7}`)))
	assert.Equal(t, []dot{{7, 0, minute}}, dots(tally, at(1)))
}

func TestDisabledAttributesDoNotDistinguishSeries(t *testing.T) {
	config := Config{
		MaxSeries: 10, SeriesTTL: time.Hour,
		Disabled:         semconv.Disabled{"k8s.workload.name": true, "k8s.deployment.name": true, "k8s.workload.uid": true, "k8s.deployment.uid": true, "team": true},
		DisabledOfPoints: semconv.Disabled{"k8s.event.reason": true},
	}
	tally := New(config, start)
	tally.Track()
	tagged := seen("R1", 1, resolver.Complete, deployment("a"))
	tagged.Tags.Metric = []extract.Tag{{Name: "team", Value: "web"}}
	daemon := &resolver.Object{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "ns", Name: "d", UID: "d"}
	add(tally, at(1), tagged, seen("R2", 2, resolver.Complete, deployment("b")), seen("R3", 4, resolver.Complete, daemon))
	tally = reopened(t, map[Key][]byte{}, tally)
	add(tally, at(2), seen("R4", 8, resolver.Complete, deployment("c")))
	tally.TakeChanged()
	tally.Saved()
	assert.Equal(t, map[string]int64{
		"map[k8s.namespace.name:ns k8s.workload.api_version:apps/v1 k8s.workload.kind:Deployment]map[k8s.event.type:Warning k8s.object.kind:Deployment]":                    11,
		"map[k8s.daemonset.name:d k8s.namespace.name:ns k8s.workload.api_version:apps/v1 k8s.workload.kind:DaemonSet]map[k8s.event.type:Warning k8s.object.kind:DaemonSet]": 4,
	}, sums(tally, at(3)))
}

// The collection took its time before the event was seen, or the clock steps back.
func TestNoPointIsBeforeItsStart(t *testing.T) {
	for name, zero := range map[string]bool{"with a 0": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: zero}, start)
			add(tally, at(5), seenAt(at(5), 5))
			last := time.Duration(-1)
			for i := range 4 {
				for _, d := range dots(tally, at(2).Add(time.Duration(i)*time.Second)) {
					assert.LessOrEqual(t, d.start, d.at)
					assert.Greater(t, d.at, last)
					last = d.at
				}
			}
		})
	}
}

// What was seen long before is delivered only after the series was dropped.
func TestADroppedSeriesBeginsAgainAfterItsLastPoint(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: minute, InitialZero: true}, start)
	add(tally, at(1), seenAt(at(1), 5))
	dots(tally, at(2))
	last := dots(tally, at(10))
	tally.Emitted()
	tally.Expire(at(11))
	add(tally, at(11), seenAt(at(9), 5))
	assert.Greater(t, dots(tally, at(11))[0].at, last[0].at)
}

// With other settings than the checkpoint's, sums start at 0, see memory.Settle.
func TestSumsOfOtherSettingsAreDeletedFromTheCheckpoint(t *testing.T) {
	stored := map[Key][]byte{}
	tally := New(Config{MaxSeries: 10, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(1), seen("R", 100, resolver.Complete, deployment("a")), seen("R", 1000, resolver.Complete, deployment("b")))
	tally.config.Disabled = semconv.Disabled{
		"k8s.workload.name": true, "k8s.workload.uid": true, "k8s.deployment.name": true, "k8s.deployment.uid": true,
	}
	tally = reopened(t, stored, tally)
	require.Len(t, stored, 2)
	tally.Reset(at(10))
	reopened(t, stored, tally)
	assert.Empty(t, stored, "both deployments are the same series now")
}

func TestASeriesIsSavedUnderOneKeyWhateverWorkloadBeginsIt(t *testing.T) {
	tally := New(Config{MaxSeries: 10, SeriesTTL: time.Hour, Disabled: semconv.Disabled{
		"k8s.workload.name": true, "k8s.workload.uid": true, "k8s.deployment.name": true, "k8s.deployment.uid": true,
	}}, start)
	tally.Track()
	add(tally, at(0), seen("R", 100, resolver.Complete, deployment("a")))
	first := tally.TakeChanged()
	tally.Saved()
	sums(tally, at(1))
	tally.Emitted()
	tally.Expire(at(120))
	add(tally, at(121), seen("R", 7, resolver.Complete, deployment("b")))
	assert.Equal(t, first, tally.TakeChanged())
	assert.Contains(t, string(tally.Value(first[0])), `"occurrences":7`)
}

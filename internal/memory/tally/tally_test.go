// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"iter"
	"slices"
	"strings"
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

// sums are the values of the points, by their attributes without UIDs.
func sums(t *Tally, now time.Time) map[string]int64 {
	found := map[string]int64{}
	each(t.Metrics(Scope{}, semconv.Cluster{}, now), func(dp pmetric.NumberDataPoint) {
		attributes := dp.Attributes().AsRaw()
		delete(attributes, "k8s.workload.uid")
		found[fmt.Sprint(attributes)] = dp.IntValue()
	})
	return found
}

func each(requests iter.Seq[pmetric.Metrics], do func(dp pmetric.NumberDataPoint)) {
	for request := range requests {
		for _, rm := range request.ResourceMetrics().All() {
			for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				do(dp)
			}
		}
	}
}

// attribute returns an attribute of a point; empty: it does not have it.
func attribute(dp pmetric.NumberDataPoint, name string) string {
	value, ok := dp.Attributes().Get(name)
	if !ok {
		return ""
	}
	return value.AsString()
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
		seen("Terminating", 8, resolver.Complete, &resolver.Object{APIVersion: "v1", Kind: "Namespace", Name: "ns"}),
	)
	const of = "map[k8s.event.reason:%s k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:%s k8s.workload.api_version:%s k8s.workload.kind:%s k8s.workload.name:%s]"
	assert.Equal(t, map[string]int64{
		fmt.Sprintf(of, "BackOff", "Pod", "apps/v1", "Deployment", "fe"):       5,
		fmt.Sprintf(of, "Scaled", "Deployment", "apps/v1", "Deployment", "fe"): 1,
		// A bare pod and one whose end is not known are one series.
		"map[k8s.event.reason:BackOff k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:Pod k8s.workload.api_version:v1 k8s.workload.kind:Pod]":   9,
		fmt.Sprintf(of, "Resolved", "Bakery", "example.com/v1", "Bakery", "b"):                                                                               6, // It may not be read: the event names it.
		"map[k8s.event.reason:NodeReady k8s.event.type:Warning k8s.object.kind:Node k8s.workload.api_version:v1 k8s.workload.kind:Node k8s.workload.name:n]": 7,
		fmt.Sprintf(of, "Terminating", "Namespace", "v1", "Namespace", "ns"):                                                                                 8,
	}, sums(tally, at(2)))
}

func TestTagsTellSeriesApart(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	for _, tags := range [][]extract.Tag{{{Name: "a", Value: "b"}}, {{Name: "a", Value: "c"}}, {{Name: "b", Value: "b"}}, nil} {
		o := seen("R", 1, resolver.Complete, deployment("fe"))
		o.Tags.Metric = tags
		add(tally, at(1), o, o)
	}
	assert.Len(t, sums(tally, at(1)), 4)
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
	assert.False(t, tally.IsFull())
	for i := range 5 {
		add(tally, at(1), seen("R", int64(i+1), resolver.Complete, deployment(fmt.Sprint("d", i))))
	}
	add(tally, at(1), seen("R", 10, resolver.Complete, deployment("d0")))
	got := sums(tally, at(1))
	assert.Len(t, got, 3)
	assert.Equal(t, int64(3+4+5), got["map[otel.metric.overflow:true]"], "it has only the mark, and the cluster")
	total := int64(0)
	for _, sum := range got {
		total += sum
	}
	assert.Equal(t, int64(25), total, "nothing is lost")
	assert.True(t, tally.IsFull())
	for _, want := range [][2]int{{2, 3}, {2, 0}} {
		usage := tally.TakeUsage()
		series, overflowed := usage.Series, usage.Overflowed
		assert.Equal(t, want, [2]int{series, overflowed}, "without the overflow series, and what it got since the last time")
	}
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

	again := seen("Old", 2, resolver.Complete, deployment("a"))
	again.SeenAt = at(70)
	add(tally, at(70), again)
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(71)), func(dp pmetric.NumberDataPoint) {
		if attribute(dp, "k8s.event.reason") == "Old" {
			assert.Equal(t, int64(2), dp.IntValue())
			assert.Equal(t, at(70), dp.StartTimestamp().AsTime())
		} else {
			assert.Equal(t, start, dp.StartTimestamp().AsTime())
		}
		assert.Equal(t, at(71), dp.Timestamp().AsTime())
	})
}

func TestTheMetricIsACumulativeMonotonicSum(t *testing.T) {
	tally := New(Config{MaxSeries: 1, SeriesTTL: time.Hour}, start)
	add(tally, at(0), seen("R", 1, resolver.Complete, deployment("a")), seen("R", 1, resolver.Complete, deployment("beyond")))
	requests := slices.Collect(tally.Metrics(Scope{Name: "scope", Version: "v1"}, semconv.Cluster{UID: "uid", Name: "east"}, at(1)))
	require.Len(t, requests, 1)
	require.Equal(t, 1, requests[0].ResourceMetrics().Len(), "one resource: the cluster")
	rm := requests[0].ResourceMetrics().At(0)
	assert.Equal(t, map[string]any{"k8s.cluster.uid": "uid", "k8s.cluster.name": "east"}, rm.Resource().Attributes().AsRaw())
	metric := rm.ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, "k8s.event.occurrences", metric.Name())
	assert.Equal(t, "{occurrence}", metric.Unit())
	assert.True(t, metric.Sum().IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
	assert.Equal(t, "Occurrences of Kubernetes Events since the start time.", metric.Description())
	assert.Equal(t, "scope", rm.ScopeMetrics().At(0).Scope().Name())
	assert.Equal(t, "v1", rm.ScopeMetrics().At(0).Scope().Version())
	for _, dp := range metric.Sum().DataPoints().All() {
		assert.Equal(t, []string{"uid", "east"}, []string{attribute(dp, "k8s.cluster.uid"), attribute(dp, "k8s.cluster.name")}, dp.Attributes().AsRaw())
	}
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
	restored.RestoreEmitted(old.TakeEmitted())
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
	assert.Equal(t, int64(3), before["map[otel.metric.overflow:true]"])

	add(tally, at(3), tagged, seen("R", 5, resolver.Complete, deployment("beyond")))
	tally = reopened(t, stored, tally)
	after := sums(tally, at(4))
	assert.Equal(t, int64(8), after["map[otel.metric.overflow:true]"])
	assert.Len(t, after, 3, "the restored series count as series")
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(5)), func(dp pmetric.NumberDataPoint) {
		assert.Equal(t, start, dp.StartTimestamp().AsTime(), "the old start time")
		if attribute(dp, "team") == "web" {
			assert.Equal(t, int64(2), dp.IntValue())
		}
	})

	tally.Emitted()
	tally.Expire(at(120))
	tally = reopened(t, stored, tally)
	assert.Empty(t, sums(tally, at(121)), "what was dropped does not come back")
}

func TestAValueThatIsNoSeriesIsNotRestored(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON":                  "x",
		"a text as its start":      `{"occurrences": 1, "start": "x"}`,
		"no occurrences":           `{"occurrences": 0}`,
		"occurrences that it lost": `{"occurrences": -1}`,
	} {
		t.Run(name, func(t *testing.T) {
			tally := New(Config{MaxSeries: 2, SeriesTTL: time.Hour}, start)
			require.Error(t, tally.Restore(Key{1}, []byte(value)))
			assert.Empty(t, sums(tally, at(1)))
		})
	}
}

// A later process with initial_zero would emit the 0 after values.
func TestAZeroThatTheSettingsNoLongerAskForNeverComes(t *testing.T) {
	stored, tally := map[Key][]byte{}, New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	tally.Track()
	add(tally, at(1), seenAt(at(1), 5))
	tally.config.InitialZero = false
	tally = reopened(t, stored, tally)
	assert.Empty(t, dots(tally, at(1002)), "this is to be saved")
	tally.config.InitialZero = true
	tally = reopened(t, stored, tally)
	assert.Equal(t, []dot{{5, minute, 1003 * minute}}, dots(tally, at(1003)))
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
	assert.Len(t, tally.TakeChanged(), 1, "the second one has a cluster now")
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
	each(tally.Metrics(Scope{}, semconv.Cluster{}, at(1021)), func(dp pmetric.NumberDataPoint) {
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
	each(t.Metrics(Scope{}, semconv.Cluster{}, now), func(dp pmetric.NumberDataPoint) {
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

// The contract: the start time "is not later than the moment at which the receiver saw the first
// occurrence". A collection may come between this moment and the one at which it counts.
func TestASeriesStartsWhenItsFirstOccurrenceWasSeenAndInItsTerm(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	dots(tally, at(10))
	add(tally, at(11), seenAt(at(9), 5))
	assert.Equal(t, []dot{{5, 9 * minute, 12 * minute}}, dots(tally, at(12)), "also if it was seen before the last collection")
	tally.Reset(at(20))
	add(tally, at(21), seenAt(at(13), 5))
	assert.Equal(t, []dot{{5, 20 * minute, 22 * minute}}, dots(tally, at(22)), "the term has begun then")
}

func TestAtTheEndANewSeriesHasIts0AndItsValue(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	add(tally, at(1), seenAt(at(1), 5))
	tally.End(at(1))
	assert.Equal(t, []dot{{0, minute, minute}, {5, minute, minute + time.Millisecond}}, dots(tally, at(1)), "at least 1 ms apart")
	tally.Emitted()
	assert.Equal(t, []dot{{5, minute, minute + 2*time.Millisecond}}, dots(tally, at(2)), "the end is not later")
}

func TestThePointsOfEachSeriesAreInTheOrderOfTime(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour, InitialZero: true}, start)
	for i := range 100 {
		o := seenAt(at(1), 5)
		o.Event.Reason = fmt.Sprint(i)
		add(tally, at(1), o)
	}
	tally.End(at(2))
	for i, dot := range dots(tally, at(2)) {
		assert.Equal(t, []int64{0, 5}[i%2], dot.value)
	}
}

func TestTheValueIsNotEmittedBeforeItIsSavedThatThe0Was(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	tally.Track()
	add(tally, at(1), seenAt(at(1), 5))
	assert.Empty(t, dots(tally, at(2)), "the sum is not saved")
	stored := map[Key][]byte{}
	tally = reopened(t, stored, tally)
	assert.Equal(t, []dot{{0, minute, minute}}, dots(tally, at(1003)), "the 0 was not emitted before the restart")
	assert.True(t, tally.IsUnsaved(), "this has to be saved")
	assert.Empty(t, dots(tally, at(1004)), "a crash now would emit the 0 again")
	tally = reopened(t, stored, tally)
	assert.Equal(t, []dot{{5, minute, 1005 * minute}}, dots(tally, at(1005)))
	assert.Zero(t, tally.Changed(), "a point alone needs no write")

	add(tally, at(1006), seenAt(at(1006), 1))
	tally.TakeChanged()
	tally.Saved()
	assert.Equal(t, []dot{{6, minute, 1007 * minute}}, dots(tally, at(1007)))
}

func TestTheEndOfSavedSumsIsSavedFirst(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour, InitialZero: true}, start)
	assert.True(t, tally.TakeEmitted().IsZero(), "nothing was emitted")
	tally.Track()
	add(tally, at(1), seenAt(at(1), 5))
	tally.TakeChanged()
	tally.Saved()
	tally.End(at(1))
	assert.Empty(t, dots(tally, at(2)))
	tally.TakeChanged()
	tally.Saved()
	last := tally.TakeEmitted()
	assert.Equal(t, []dot{{0, minute, minute}, {5, minute, minute + time.Millisecond}}, dots(tally, at(3)), "at the time that was saved")
	assert.False(t, last.Before(at(1).Add(time.Millisecond)))
}

func TestDisabledAttributesDoNotDistinguishSeries(t *testing.T) {
	tally := New(Config{
		MaxSeries: 10, SeriesTTL: time.Hour,
		Disabled: semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true, "k8s.event.reason": true, "k8s.cluster.name": true},
	}, start)
	tally.Track()
	daemon := &resolver.Object{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "ns", Name: "d", UID: "d"}
	add(tally, at(1), seen("R1", 1, resolver.Complete, deployment("a")), seen("R2", 2, resolver.Complete, deployment("b")), seen("R3", 4, resolver.Complete, daemon))
	tally = reopened(t, map[Key][]byte{}, tally)
	add(tally, at(2), seen("R4", 8, resolver.Complete, deployment("c")))
	tally.TakeChanged()
	tally.Saved()
	values := map[string]int64{}
	each(tally.Metrics(Scope{}, semconv.Cluster{UID: "uid", Name: "east"}, at(3)), func(dp pmetric.NumberDataPoint) {
		values[fmt.Sprint(dp.Attributes().AsRaw())] = dp.IntValue()
	})
	const of = "map[k8s.cluster.uid:uid k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:%[1]s k8s.workload.api_version:apps/v1 k8s.workload.kind:%[1]s]"
	assert.Equal(t, map[string]int64{fmt.Sprintf(of, "Deployment"): 11, fmt.Sprintf(of, "DaemonSet"): 4}, values)
}

// Each subset of the attributes: an emission never has two points with the same attributes, and the
// sum over all stays the same.
func TestWhateverIsDisabledNoTwoPointsHaveTheSameAttributes(t *testing.T) {
	all := Attributes()
	for subset := range 1 << len(all) {
		disabled := semconv.Disabled{}
		for i, name := range all {
			disabled[name] = subset&(1<<i) != 0
		}
		tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour, Disabled: disabled}, start)
		for _, workload := range []*resolver.Object{deployment("a"), deployment("b"), pod("a"), {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "other", Name: "a", UID: "1"}} {
			tagged := seen("R1", 1, resolver.Complete, workload)
			tagged.Tags.Metric = []extract.Tag{{Name: "team", Value: "web"}}
			add(tally, at(1), tagged, seen("R1", 1, resolver.Complete, workload), seen("R2", 1, resolver.Complete, pod("p"), workload))
		}
		points, sum := map[string]bool{}, int64(0)
		each(tally.Metrics(Scope{}, semconv.Cluster{UID: "uid", Name: "east"}, at(2)), func(dp pmetric.NumberDataPoint) {
			attributes := fmt.Sprint(dp.Attributes().AsRaw())
			require.False(t, points[attributes], "disabled %v: %s twice", disabled, attributes)
			for name, off := range disabled {
				require.False(t, off && attribute(dp, name) != "", "%s is disabled: %s", name, attributes)
			}
			points[attributes] = true
			sum += dp.IntValue()
		})
		require.Equal(t, int64(12), sum)
	}
}

func TestAWorkloadThatIsCreatedAgainContinuesItsSeriesWithoutItsUID(t *testing.T) {
	for uid, series := range map[bool]int{true: 2, false: 1} {
		tally := New(Config{MaxSeries: 10, SeriesTTL: time.Hour, Disabled: semconv.Disabled{"k8s.workload.uid": !uid}}, start)
		again := deployment("a")
		again.UID = "again"
		add(tally, at(1), seen("R", 1, resolver.Complete, deployment("a")), seen("R", 2, resolver.Complete, again))
		count := tally.TakeUsage().Series
		assert.Equal(t, series, count, "with k8s.workload.uid: %v", uid)
	}
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
	for name, waits := range map[string]int{"within series_ttl": 1, "later": 30} {
		t.Run(name, func(t *testing.T) {
			tally := New(Config{MaxSeries: 3, SeriesTTL: 2 * minute, InitialZero: true}, start)
			add(tally, at(1), seenAt(at(1), 5))
			dots(tally, at(2))
			last := dots(tally, at(10))
			tally.Emitted()
			for i := range waits {
				tally.Expire(at(11 + i))
			}
			add(tally, at(11+waits), seenAt(at(9), 5))
			assert.Greater(t, dots(tally, at(12+waits))[0].at, last[0].at)
			assert.LessOrEqual(t, len(tally.ended), 1)
		})
	}
}

func TestANewSeriesIsNotDelayedByOthersThatWereDropped(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: 2 * minute}, start)
	add(tally, at(1), seenAt(at(1), 5))
	dots(tally, at(10))
	tally.Emitted()
	tally.Expire(at(11))
	tally.Expire(at(11))
	other := seenAt(at(9), 5)
	other.Event.Reason = "Other"
	add(tally, at(11), other)
	assert.Equal(t, []dot{{5, 9 * minute, 11 * minute}}, dots(tally, at(11)))
}

// With other settings than the checkpoint's, sums start at 0, see memory.Settle.
func TestSumsOfOtherSettingsAreDeletedFromTheCheckpoint(t *testing.T) {
	stored := map[Key][]byte{}
	tally := New(Config{MaxSeries: 10, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(1), seen("R", 100, resolver.Complete, deployment("a")), seen("R", 1000, resolver.Complete, deployment("b")))
	reopened(t, stored, tally)
	require.Len(t, stored, 2)
	tally = New(Config{MaxSeries: 10, SeriesTTL: time.Hour, Disabled: semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true}}, at(9))
	tally.Track()
	for k, value := range stored {
		require.NoError(t, tally.Restore(k, value))
	}
	tally.Reset(at(10))
	reopened(t, stored, tally)
	assert.Empty(t, stored, "both deployments are the same series now")
}

func TestASeriesIsSavedUnderOneKeyWhateverWorkloadBeginsIt(t *testing.T) {
	tally := New(Config{MaxSeries: 10, SeriesTTL: time.Hour, Disabled: semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true}}, start)
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

// The points of one series come after each other, whatever the clock of the next process shows.
func TestPointsComeAfterThoseOfTheLastProcess(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	tally.Track()
	add(tally, at(50), seenAt(at(50), 5))
	stored := map[Key][]byte{}
	tally = reopened(t, stored, tally)
	before := dots(tally, at(60))
	require.Len(t, before, 1)
	keys := tally.TakeChanged()
	require.Len(t, keys, 1)
	next := New(tally.config, at(5))
	next.Track()
	require.NoError(t, next.Restore(keys[0], tally.Value(keys[0])))
	next.RestoreEmitted(tally.TakeEmitted())
	after := dots(next, at(10))
	require.Len(t, after, 1)
	assert.Equal(t, before[0].start, after[0].start)
	assert.Greater(t, after[0].at, before[0].at)
	assert.Greater(t, dots(next, at(9))[0].at, after[0].at, "the clock is set back while it runs")
}

func TestAPointIsNotBeforeItsStart(t *testing.T) {
	tally := New(Config{MaxSeries: 3, SeriesTTL: time.Hour}, start)
	add(tally, at(1), seenAt(at(50), 5))
	first := dots(tally, at(2))
	assert.Equal(t, []dot{{5, 50 * minute, 50*minute + time.Millisecond}}, first)
	add(tally, at(2), seenAt(at(2), 1))
	assert.Greater(t, dots(tally, at(3))[0].at, first[0].at)
}

// emissions sums what was accepted by the name of the cluster. The points of a series increase.
type emissions map[string]map[string]pmetric.NumberDataPoint

func (e emissions) emit(t *testing.T, tally *Tally, uid string, now time.Time, accept bool) {
	metrics := tally.Metrics(Scope{}, semconv.Cluster{UID: uid}, now)
	if !accept {
		return
	}
	each(metrics, func(dp pmetric.NumberDataPoint) {
		of := attribute(dp, "k8s.cluster.uid")
		if e[of] == nil {
			e[of] = map[string]pmetric.NumberDataPoint{}
		}
		id := fmt.Sprint(dp.Attributes().AsRaw())
		if last, known := e[of][id]; known {
			assert.Greater(t, dp.Timestamp(), last.Timestamp())
			assert.GreaterOrEqual(t, dp.IntValue(), last.IntValue())
			assert.Equal(t, dp.StartTimestamp(), last.StartTimestamp())
		} else if tally.config.InitialZero {
			assert.Zero(t, dp.IntValue(), "a series begins with its 0")
		}
		e[of][id] = dp
	})
	tally.Emitted()
}

func (e emissions) sum(uid string) (sum int64) {
	for _, dp := range e[uid] {
		sum += dp.IntValue()
	}
	return sum
}

// With another name of the cluster, a series is another one: it begins at 0 with what the last one
// has not reported, so that the sum over both stays exact.
func TestTheNameOfTheClusterComesLate(t *testing.T) {
	for name, initialZero := range map[string]bool{"with the 0": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			tally, got := New(Config{MaxSeries: 100, SeriesTTL: time.Hour, InitialZero: initialZero}, start), emissions{}
			tally.Track()
			stored := map[Key][]byte{}
			tally = reopened(t, stored, tally)
			save := func() {
				for _, k := range tally.TakeChanged() {
					stored[k] = tally.Value(k)
				}
				tally.Saved()
			}
			a, b := seen("A", 2, resolver.Complete, deployment("a")), seen("B", 30, resolver.Complete, deployment("b"))
			add(tally, at(1), a, b)
			save()
			got.emit(t, tally, "", at(2), true)
			save()
			got.emit(t, tally, "", at(3), true)
			assert.Equal(t, int64(32), got.sum(""))

			add(tally, at(4), a)
			save()
			got.emit(t, tally, "uid", at(5), false)
			add(tally, at(5), a)
			tally = reopened(t, stored, tally) // The new name is not saved yet.
			got.emit(t, tally, "uid", at(6), true)
			assert.Equal(t, int64(36), got.sum(""), "the old series ends with its whole value")
			add(tally, at(7), a, a)
			save()
			for i := range 3 {
				got.emit(t, tally, "uid", at(8+i), true)
				tally = reopened(t, stored, tally)
			}
			assert.Equal(t, int64(36), got.sum(""))
			assert.Equal(t, int64(4), got.sum("uid"), "the new one has the rest")
			assert.Len(t, got["uid"], 1, "B has not moved since")
		})
	}
}

// Occurrences that come while the last value under the old name is emitted.
func TestASeriesGoesOnUnderTheNewNameWithWhatTheOldOneHasNotEmitted(t *testing.T) {
	for name, tracked := range map[string]bool{"sums are saved": true, "sums are not saved": false} {
		t.Run(name, func(t *testing.T) {
			tally, got := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start), emissions{}
			save := func() {}
			if tracked {
				tally.Track()
				save = func() {
					tally.TakeChanged()
					tally.Saved()
				}
			}
			a := seen("A", 2, resolver.Complete, deployment("a"))
			add(tally, at(1), a)
			save()
			got.emit(t, tally, "old", at(2), true)
			assert.Equal(t, tracked, tally.IsUnsaved(), "a restart must know under which name it was emitted")
			save()
			last := tally.Metrics(Scope{}, semconv.Cluster{UID: "new"}, at(3))
			add(tally, at(3), a, a)
			save()
			tally.Emitted()
			each(last, func(dp pmetric.NumberDataPoint) { assert.Equal(t, "old", attribute(dp, "k8s.cluster.uid")) })
			assert.Equal(t, tracked, tally.IsUnsaved())
			save()
			got.emit(t, tally, "new", at(4), true)
			assert.Equal(t, int64(4), got.sum("new"))
			for _, dp := range got["new"] {
				assert.Greater(t, dp.StartTimestamp().AsTime(), at(3), "it starts after the last point of the old one")
			}
		})
	}
}

func TestANameThatIsKnownBeforeTheFirstPointsIsTheOnlyOne(t *testing.T) {
	tally, got := New(Config{MaxSeries: 100, SeriesTTL: time.Hour, InitialZero: true}, start), emissions{}
	add(tally, at(1), seen("A", 2, resolver.Complete, deployment("a")))
	got.emit(t, tally, "uid", at(2), true)
	got.emit(t, tally, "uid", at(3), true)
	assert.Equal(t, int64(2), got.sum("uid"))
	assert.Len(t, got, 1)
}

// Anybody who may create Events chooses the texts that tell series apart.
func TestTheTextsOfSeriesAreBounded(t *testing.T) {
	tally, counted := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start), int64(0)
	for i := range 1000 {
		o := seen(fmt.Sprint(i, strings.Repeat("r", 100<<10)), 1, resolver.Complete, deployment("fe"))
		o.Event.Type, o.Event.InvolvedObject.Kind = strings.Repeat("t", 100<<10), strings.Repeat("\xff", 100<<10)
		add(tally, at(1), o)
		counted++
	}
	assert.Less(t, tally.bytes, 101*meanBytes)
	assert.False(t, tally.IsFull(), "of series, but of their texts")
	seen, sum, size := map[string]bool{}, int64(0), 0
	for request := range tally.Metrics(Scope{}, semconv.Cluster{}, at(2)) {
		size += (&pmetric.ProtoMarshaler{}).MetricsSize(request)
		each(slices.Values([]pmetric.Metrics{request}), func(dp pmetric.NumberDataPoint) {
			id := fmt.Sprint(dp.Attributes().AsRaw())
			assert.False(t, seen[id], "two points have the same attributes")
			seen[id] = true
			sum += dp.IntValue()
		})
	}
	assert.Less(t, size, 100*(meanBytes+1<<10))
	assert.Equal(t, counted, sum, "nothing is lost")
	tally.Emitted()
	tally.Expire(at(100))
	assert.Zero(t, tally.bytes)
}

func TestTheTagsOfSeriesAreBounded(t *testing.T) {
	tally := New(Config{MaxSeries: 100, SeriesTTL: time.Hour}, start)
	for i := range 100 {
		o := seen(fmt.Sprint(i), 1, resolver.Complete, deployment("fe"))
		o.Tags.Metric = []extract.Tag{{Name: strings.Repeat("n", 2*meanBytes), Value: strings.Repeat("v", 2*meanBytes)}}
		add(tally, at(1), o)
	}
	assert.Len(t, sums(tally, at(1)), 25+1, "with the overflow series")
}

// A usual limit of servers is 4 MiB.
func TestTheMetricIsCutIntoRequestsOfAtMostOneMiB(t *testing.T) {
	for name, tt := range map[string]struct{ series, size, least, most int }{
		"nothing to cut":       {100, 10, 1, 1},
		"several requests":     {5000, 900, 5, 8},
		"a point that is more": {3, 2 << 20, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			tally := New(Config{MaxSeries: 1 << 20, SeriesTTL: time.Hour}, start)
			for i := range tt.series {
				o := seen(fmt.Sprint(i), 1, resolver.Complete, deployment("fe"))
				for rest := tt.size; rest > 0; rest -= 1000 {
					o.Tags.Metric = append(o.Tags.Metric, extract.Tag{Name: fmt.Sprint("tag", rest), Value: strings.Repeat("x", min(rest, 1000))})
				}
				add(tally, at(1), o)
			}
			requests, seen := 0, map[string]bool{}
			for request := range tally.Metrics(Scope{Name: "scope"}, semconv.Cluster{UID: "uid"}, at(2)) {
				requests++
				assert.Positive(t, request.DataPointCount())
				if request.DataPointCount() > 1 {
					assert.LessOrEqual(t, (&pmetric.ProtoMarshaler{}).MetricsSize(request), 1<<20)
				}
				each(slices.Values([]pmetric.Metrics{request}), func(dp pmetric.NumberDataPoint) {
					seen[attribute(dp, "k8s.event.reason")] = true
				})
			}
			assert.Len(t, seen, tt.series, "each point is in one request")
			assert.GreaterOrEqual(t, requests, tt.least)
			assert.LessOrEqual(t, requests, tt.most)
		})
	}
}

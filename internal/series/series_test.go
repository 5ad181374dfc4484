// SPDX-License-Identifier: Apache-2.0

package series

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// seen returns an observation of an Event in a namespace that has the name of its workload.
func seen(reason string, n int64, resolution resolver.Resolution, objects ...*resolver.Object) observation.Observation {
	return observation.Observation{
		Event: &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: objects[len(objects)-1].Name},
			Reason:     reason, Type: "Warning", InvolvedObject: corev1.ObjectReference{Kind: objects[0].Kind},
		},
		Occurrences: n,
		Chain:       resolver.Chain{Objects: objects, Resolution: resolution},
	}
}

func add(t *Series, now time.Time, observations ...observation.Observation) { t.Add(observations, now) }

// sums are the values of the points, by their attributes without UIDs.
func sums(t *Series, now time.Time) map[string]int64 {
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
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	add(counted, at(1),
		seen("BackOff", 2, resolver.ResolutionComplete, pod("a"), fe),
		seen("BackOff", 3, resolver.ResolutionAmbiguous, pod("b"), fe),
		seen("Scaled", 1, resolver.ResolutionComplete, fe),
		seen("BackOff", 4, resolver.ResolutionComplete, pod("bare")),
		seen("BackOff", 5, resolver.ResolutionNotFound, pod("unknown"), deployment("gone")),
		seen("FailedCreate", 9, resolver.ResolutionNotFound, &resolver.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "ns", Name: "r"}, deployment("gone")),
		seen("Resolved", 6, resolver.ResolutionForbidden, unowned),
		seen("NodeReady", 7, resolver.ResolutionComplete, &resolver.Object{APIVersion: "v1", Kind: "Node", Name: "n"}),
		seen("Terminating", 8, resolver.ResolutionComplete, &resolver.Object{APIVersion: "v1", Kind: "Namespace", Name: "ns"}),
	)
	const of = "map[k8s.event.reason:%s k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:%s k8s.workload.api_version:%s k8s.workload.kind:%s k8s.workload.name:%s]"
	assert.Equal(t, map[string]int64{
		fmt.Sprintf(of, "BackOff", "Pod", "apps/v1", "Deployment", "fe"):       5,
		fmt.Sprintf(of, "Scaled", "Deployment", "apps/v1", "Deployment", "fe"): 1,
		// A bare pod and one whose end is not known are one series.
		"map[k8s.event.reason:BackOff k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:Pod k8s.workload.api_version:v1 k8s.workload.kind:Pod]":   9,
		"map[k8s.event.reason:FailedCreate k8s.event.type:Warning k8s.namespace.name:ns k8s.object.kind:ReplicaSet]":                                         9,
		fmt.Sprintf(of, "Resolved", "Bakery", "example.com/v1", "Bakery", "b"):                                                                               6, // It may not be read: the event names it.
		"map[k8s.event.reason:NodeReady k8s.event.type:Warning k8s.object.kind:Node k8s.workload.api_version:v1 k8s.workload.kind:Node k8s.workload.name:n]": 7,
		fmt.Sprintf(of, "Terminating", "Namespace", "v1", "Namespace", "ns"):                                                                                 8,
	}, sums(counted, at(2)))
}

func TestTagsTellSeriesApart(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	for _, tags := range [][]extract.Tag{{{Name: "a", Value: "b"}}, {{Name: "a", Value: "c"}}, {{Name: "b", Value: "b"}}, nil} {
		o := seen("R", 1, resolver.ResolutionComplete, deployment("fe"))
		o.Tags.Metric = tags
		add(counted, at(1), o, o)
	}
	assert.Len(t, sums(counted, at(1)), 4)
	for series, sum := range sums(counted, at(1)) {
		assert.Equal(t, int64(2), sum, series)
	}
}

func TestTagsThatAreNotTheMetricsDoNotTellSeriesApart(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	for _, value := range []string{"z1", "z2"} {
		o := seen("R", 1, resolver.ResolutionComplete, deployment("fe"))
		o.Tags.Resource, o.Tags.Record = []extract.Tag{{Name: "zone", Value: value}}, []extract.Tag{{Name: "run", Value: value}}
		add(counted, at(1), o)
	}
	assert.Len(t, sums(counted, at(1)), 1)
	for series, sum := range sums(counted, at(1)) {
		assert.Equal(t, int64(2), sum)
		assert.NotContains(t, series, "z1")
	}
}

func TestBeyondMaxOneSeriesCounts(t *testing.T) {
	counted := New(Settings{Max: 2, TTL: time.Hour}, start)
	for i := range 5 {
		add(counted, at(1), seen("R", int64(i+1), resolver.ResolutionComplete, deployment(fmt.Sprint("d", i))))
	}
	add(counted, at(1), seen("R", 10, resolver.ResolutionComplete, deployment("d0")))
	got := sums(counted, at(1))
	assert.Len(t, got, 3)
	assert.Equal(t, int64(3+4+5), got["map[otel.metric.overflow:true]"], "it has only the mark, and the cluster")
	total := int64(0)
	for _, sum := range got {
		total += sum
	}
	assert.Equal(t, int64(25), total, "nothing is lost")
	for _, want := range [][2]int{{2, 3}, {2, 0}} {
		usage := counted.TakeUsage()
		series, overflowed := usage.Series, usage.Overflowed
		assert.Equal(t, want, [2]int{series, overflowed}, "without the overflow series, and what it got since the last time")
	}
}

func TestOneNamespaceHasAtMostHalfOfTheSeries(t *testing.T) {
	for _, most := range []int{1, 2, 7} {
		counted, half := New(Settings{Max: most, TTL: time.Hour}, start), max(1, most/2)
		write := func(namespace, reason string, now time.Time) {
			for i := range most + 1 {
				add(counted, now, seen(fmt.Sprint(reason, i), 1, resolver.ResolutionComplete, deployment(namespace)))
			}
		}
		write("greedy", "R", at(0))
		assert.Equal(t, Usage{Series: half, Overflowed: most + 1 - half, OverflowedNamespace: "greedy"}, counted.TakeUsage())
		write("other", "R", at(0))
		assert.Equal(t, min(most, 2*half), counted.TakeUsage().Series, "another namespace has its share")
		write("greedy", "R", at(0))
		assert.Equal(t, Usage{Series: min(most, 2*half), Overflowed: most + 1 - half, OverflowedNamespace: "greedy"}, counted.TakeUsage())

		sums(counted, at(1))
		counted.Accepted()
		counted.Expire(at(61))
		assert.Zero(t, counted.TakeUsage().Series)
		assert.Empty(t, counted.byOrigin, "a namespace without series takes no memory")
		write("greedy", "Later", at(61))
		assert.Equal(t, half, counted.TakeUsage().Series, "series that end make room")
	}
}

func TestSeriesThatEndMakeRoomForAsMany(t *testing.T) {
	counted := New(Settings{Max: 8, TTL: time.Hour}, start)
	for i := range 4 {
		add(counted, at(i), seen(fmt.Sprint("R", i), 1, resolver.ResolutionComplete, deployment("greedy")))
	}
	sums(counted, at(4))
	counted.Accepted()
	counted.Expire(at(61))
	assert.Equal(t, 3, counted.TakeUsage().Series)
	for i := range 4 {
		add(counted, at(61), seen(fmt.Sprint("Later", i), 1, resolver.ResolutionComplete, deployment("greedy")))
	}
	assert.Equal(t, Usage{Series: 4, Overflowed: 3, OverflowedNamespace: "greedy"}, counted.TakeUsage())
}

// Who may write Events in many namespaces takes no series from a namespace that has few.
func TestTheLastTenthIsForNamespacesWithLessThanAThousandth(t *testing.T) {
	for _, most := range []int{200, 3000, 30_000} {
		for _, attackers := range []int{2, 20} {
			counted, few := New(Settings{Max: most, TTL: time.Hour}, start), max(1, most/1000)
			write := func(namespace string, reasons int) (added, overflowed int) {
				before := counted.TakeUsage().Series
				for i := range reasons {
					add(counted, at(0), seen(fmt.Sprint("R", i), 1, resolver.ResolutionComplete, deployment(namespace)))
				}
				usage := counted.TakeUsage()
				return usage.Series - before, usage.Overflowed
			}
			for i := range attackers {
				write(fmt.Sprint("attacker", i), most/2)
			}
			assert.Equal(t, most-most/10+few*max(0, attackers-2), counted.TakeUsage().Series, "%d attackers", attackers)
			for _, namespace := range []string{"shop", "bank"} {
				added, overflowed := write(namespace, few+1)
				assert.Equal(t, []int{few, 1}, []int{added, overflowed}, "%s, after %d attackers", namespace, attackers)
			}
		}
	}
}

func TestASeriesThatDoesNotMoveIsDroppedAndBeginsAnew(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	add(counted, at(0), seen("Old", 1, resolver.ResolutionComplete, deployment("a")))
	add(counted, at(30), seen("Young", 1, resolver.ResolutionComplete, deployment("b")))
	counted.Expire(at(60))
	assert.Len(t, sums(counted, at(60)), 2, "not yet")
	counted.Expire(at(61))
	assert.Len(t, sums(counted, at(61)), 2, "not before its value was emitted")
	counted.Accepted()
	counted.Expire(at(61))
	assert.Len(t, sums(counted, at(61)), 1)

	again := seen("Old", 2, resolver.ResolutionComplete, deployment("a"))
	again.SeenAt = at(70)
	add(counted, at(70), again)
	each(counted.Metrics(Scope{}, semconv.Cluster{}, at(71)), func(dp pmetric.NumberDataPoint) {
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
	counted := New(Settings{Max: 1, TTL: time.Hour}, start)
	add(counted, at(0), seen("R", 1, resolver.ResolutionComplete, deployment("a")), seen("R", 1, resolver.ResolutionComplete, deployment("beyond")))
	requests := slices.Collect(counted.Metrics(Scope{Name: "scope", Version: "v1"}, semconv.Cluster{UID: "uid", Name: "east"}, at(1)))
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
	counted := New(Settings{Max: 3, TTL: time.Hour}, start)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				add(counted, at(j), seen("R", 1, resolver.ResolutionComplete, deployment(fmt.Sprint(i))))
				counted.Metrics(Scope{}, semconv.Cluster{}, at(j))
				counted.Expire(at(0))
			}
		})
	}
	all.Wait()
	total := int64(0)
	for _, sum := range sums(counted, at(100)) {
		total += sum
	}
	assert.Equal(t, int64(800), total)
}

// dot is a point of the metric.
type dot struct {
	value     int64
	start, at time.Duration // after the start of the counted
}

// dots are the points of the only series, in their order.
func dots(t *Series, now time.Time) (all []dot) {
	each(t.Metrics(Scope{}, semconv.Cluster{}, now), func(dp pmetric.NumberDataPoint) {
		all = append(all, dot{dp.IntValue(), dp.StartTimestamp().AsTime().Sub(start), dp.Timestamp().AsTime().Sub(start)})
	})
	return all
}

func seenAt(now time.Time, n int64) observation.Observation {
	o := seen("R", n, resolver.ResolutionComplete, deployment("a"))
	o.SeenAt = now
	return o
}

const minute = time.Minute

func TestTheFirstPointOfASeriesIs0AtItsStart(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: time.Hour, InitialZero: true}, start)
	add(counted, at(3), seenAt(at(2), 5))
	assert.Equal(t, []dot{{0, 2 * minute, 2 * minute}}, dots(counted, at(4)))
	assert.Equal(t, []dot{{5, 2 * minute, 6 * minute}}, dots(counted, at(6)), "also if the pipeline has rejected the 0")
	counted.Accepted()
	add(counted, at(7), seenAt(at(7), 1))
	assert.Equal(t, []dot{{6, 2 * minute, 8 * minute}}, dots(counted, at(8)))
}

func TestWithoutInitialZeroTheFirstPointIsTheValue(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: time.Hour}, start)
	add(counted, at(3), seenAt(at(2), 5))
	assert.Equal(t, []dot{{5, 2 * minute, 4 * minute}}, dots(counted, at(4)))
}

// The contract: the start time "is not later than the moment at which the receiver saw the first
// occurrence". A collection may come between this moment and the one at which it counts.
func TestASeriesStartsWhenItsFirstOccurrenceWasSeenAndInItsTerm(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: time.Hour}, start)
	dots(counted, at(10))
	add(counted, at(11), seenAt(at(9), 5))
	assert.Equal(t, []dot{{5, 9 * minute, 12 * minute}}, dots(counted, at(12)), "also if it was seen before the last collection")
	counted = New(Settings{Max: 10, TTL: time.Hour}, at(20))
	add(counted, at(21), seenAt(at(13), 5))
	assert.Equal(t, []dot{{5, 20 * minute, 22 * minute}}, dots(counted, at(22)), "the term has begun then")
}

func TestAtTheEndANewSeriesHasIts0AndItsValue(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: time.Hour, InitialZero: true}, start)
	add(counted, at(1), seenAt(at(1), 5))
	counted.End()
	assert.Equal(t, []dot{{0, minute, minute}, {5, minute, minute + time.Millisecond}}, dots(counted, at(1)), "at least 1 ms apart")
}

func TestPointsStayAheadUntilTheClockReachesThem(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: 3 * time.Hour}, start)
	add(counted, at(0), seenAt(at(0), 5))
	assert.Equal(t, []dot{{5, 0, 61 * minute}}, dots(counted, at(61)), "for one collection, the clock is an hour ahead")
	add(counted, at(2), seenAt(at(2), 1))
	assert.Equal(t, []dot{{6, 0, 61*minute + time.Millisecond}}, dots(counted, at(2)))
	assert.Equal(t, []dot{{6, 0, 61*minute + 2*time.Millisecond}}, dots(counted, at(61)))
	assert.Equal(t, []dot{{6, 0, 62 * minute}}, dots(counted, at(62)))
	add(counted, at(3), seen("New", 1, resolver.ResolutionComplete, deployment("b")))
	assert.Contains(t, dots(counted, at(4)), dot{1, 0, 4 * minute}, "a new series has the present time")
	restarted := New(Settings{Max: 3, TTL: 3 * time.Hour}, at(2))
	add(restarted, at(2), seenAt(at(2), 1))
	assert.Equal(t, []dot{{1, 2 * minute, 3 * minute}}, dots(restarted, at(3)), "another process begins with its own clock")
}

func TestThePointsOfEachSeriesAreInTheOrderOfTime(t *testing.T) {
	counted := New(Settings{Max: 200, TTL: time.Hour, InitialZero: true}, start)
	for i := range 100 {
		o := seenAt(at(1), 5)
		o.Event.Reason = fmt.Sprint(i)
		add(counted, at(1), o)
	}
	counted.End()
	for i, dot := range dots(counted, at(2)) {
		assert.Equal(t, []int64{0, 5}[i%2], dot.value)
	}
}

func TestDisabledAttributesDoNotDistinguishSeries(t *testing.T) {
	counted := New(Settings{
		Max: 10, TTL: time.Hour,
		Disabled: semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true, "k8s.event.reason": true, "k8s.cluster.name": true},
	}, start)
	daemon := &resolver.Object{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "ns", Name: "d", UID: "d"}
	add(counted, at(1), seen("R1", 1, resolver.ResolutionComplete, deployment("a")), seen("R2", 2, resolver.ResolutionComplete, deployment("b")), seen("R3", 4, resolver.ResolutionComplete, daemon))
	add(counted, at(2), seen("R4", 8, resolver.ResolutionComplete, deployment("c")))
	values := map[string]int64{}
	each(counted.Metrics(Scope{}, semconv.Cluster{UID: "uid", Name: "east"}, at(3)), func(dp pmetric.NumberDataPoint) {
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
		counted := New(Settings{Max: 100, TTL: time.Hour, Disabled: disabled}, start)
		for _, workload := range []*resolver.Object{deployment("a"), deployment("b"), pod("a"), {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "other", Name: "a", UID: "1"}} {
			tagged := seen("R1", 1, resolver.ResolutionComplete, workload)
			tagged.Tags.Metric = []extract.Tag{{Name: "team", Value: "web"}}
			add(counted, at(1), tagged, seen("R1", 1, resolver.ResolutionComplete, workload), seen("R2", 1, resolver.ResolutionComplete, pod("p"), workload))
		}
		points, sum := map[string]bool{}, int64(0)
		each(counted.Metrics(Scope{}, semconv.Cluster{UID: "uid", Name: "east"}, at(2)), func(dp pmetric.NumberDataPoint) {
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
		counted := New(Settings{Max: 10, TTL: time.Hour, Disabled: semconv.Disabled{"k8s.workload.uid": !uid}}, start)
		again := deployment("a")
		again.UID = "again"
		add(counted, at(1), seen("R", 1, resolver.ResolutionComplete, deployment("a")), seen("R", 2, resolver.ResolutionComplete, again))
		count := counted.TakeUsage().Series
		assert.Equal(t, series, count, "with k8s.workload.uid: %v", uid)
	}
}

// What was seen long before is delivered only after the series was dropped.
func TestADroppedSeriesBeginsAgainAfterItsLastPoint(t *testing.T) {
	for name, waits := range map[string]int{"within series.ttl": 1, "later": 30} {
		t.Run(name, func(t *testing.T) {
			counted := New(Settings{Max: 3, TTL: 2 * minute, InitialZero: true}, start)
			add(counted, at(1), seenAt(at(1), 5))
			dots(counted, at(2))
			last := dots(counted, at(10))
			counted.Accepted()
			for i := range waits {
				counted.Expire(at(11 + i))
			}
			assert.Equal(t, name == "later", len(counted.ended) == 0, "it is remembered for series.ttl")
			add(counted, at(11+waits), seenAt(at(9), 5))
			assert.Greater(t, dots(counted, at(12+waits))[0].at, last[0].at)
		})
	}
}

func TestANewSeriesIsNotDelayedByOthersThatWereDropped(t *testing.T) {
	counted := New(Settings{Max: 3, TTL: 2 * minute}, start)
	add(counted, at(1), seenAt(at(1), 5))
	dots(counted, at(10))
	counted.Accepted()
	counted.Expire(at(11))
	counted.Expire(at(11))
	other := seenAt(at(9), 5)
	other.Event.Reason = "Other"
	add(counted, at(11), other)
	assert.Equal(t, []dot{{5, 9 * minute, 11 * minute}}, dots(counted, at(11)))
}

// A usual limit of servers is 4 MiB.
func TestTheMetricIsCutIntoRequestsOfAtMostOneMiB(t *testing.T) {
	for name, tt := range map[string]struct{ series, size, least, most int }{
		"nothing to cut":       {100, 10, 1, 1},
		"several requests":     {5000, 900, 5, 8},
		"a point that is more": {3, 2 << 20, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			counted := New(Settings{Max: 1 << 20, TTL: time.Hour}, start)
			for i := range tt.series {
				o := seen(fmt.Sprint(i), 1, resolver.ResolutionComplete, deployment("fe"))
				for rest := tt.size; rest > 0; rest -= 1000 {
					o.Tags.Metric = append(o.Tags.Metric, extract.Tag{Name: fmt.Sprint("tag", rest), Value: strings.Repeat("x", min(rest, 1000))})
				}
				add(counted, at(1), o)
			}
			requests, seen := 0, map[string]bool{}
			for request := range counted.Metrics(Scope{Name: "scope"}, semconv.Cluster{UID: "uid"}, at(2)) {
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

func TestCallersMayStopBetweenRequests(t *testing.T) {
	counted := New(Settings{Max: 1 << 20, TTL: time.Hour}, start)
	for i := range 3 * requestBytes / 1000 {
		o := seen(fmt.Sprint(i), 1, resolver.ResolutionComplete, deployment("fe"))
		o.Tags.Metric = []extract.Tag{{Name: "tag", Value: strings.Repeat("x", 1000)}}
		add(counted, at(1), o)
	}
	requests := 0
	for range counted.Metrics(Scope{}, semconv.Cluster{}, at(2)) {
		requests++
		break
	}
	assert.Equal(t, 1, requests)
}

// Compression finds what neighbours have in common.
func TestSeriesAreWrittenByWorkload(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	var all []observation.Observation
	for i := range 20 {
		for _, reason := range []string{"A", "B"} {
			all = append(all, seen(reason, 1, resolver.ResolutionComplete, deployment(fmt.Sprint("d", i))))
		}
	}
	emit := func(cluster string, now time.Time) (workloads []string) {
		add(counted, now, all...)
		for request := range counted.Metrics(Scope{}, semconv.Cluster{UID: cluster}, now) {
			assert.Equal(t, semconv.SchemaURL, request.ResourceMetrics().At(0).SchemaUrl())
			each(slices.Values([]pmetric.Metrics{request}), func(dp pmetric.NumberDataPoint) {
				workloads = append(workloads, attribute(dp, "k8s.workload.name"))
			})
		}
		counted.Accepted()
		return workloads
	}
	workloads := emit("b", at(1))
	assert.Len(t, workloads, 40)
	assert.Len(t, slices.Compact(workloads), 20, "both series of a workload follow each other")
}

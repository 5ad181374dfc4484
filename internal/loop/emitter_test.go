// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// point is a point of the metric, of the only series.
type point struct {
	value     int64
	start, at time.Time
}

func pointsOf(p *harness.Process) (all []point) {
	for _, metrics := range p.Metrics.AllMetrics() {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				all = append(all, point{dp.IntValue(), dp.StartTimestamp().AsTime(), dp.Timestamp().AsTime()})
			}
		}
	}
	return all
}

// distinct returns the values that the points have for an attribute; empty: one does not have it.
func distinct(p *harness.Process, attribute string) map[string]bool {
	found := map[string]bool{}
	for _, metrics := range p.Metrics.AllMetrics() {
		harness.EachPoint(metrics, func(dp pmetric.NumberDataPoint) {
			value, _ := dp.Attributes().AsRaw()[attribute].(string)
			found[value] = true
		})
	}
	return found
}

// valuesInOrder checks that points follow each other by at least 1 ms, and that the first one is at
// their start. It returns their values.
func valuesInOrder(t *testing.T, points []point) (values []int64) {
	t.Helper()
	for i, p := range points {
		values = append(values, p.value)
		assert.Equal(t, points[0].start, p.start)
		if i > 0 {
			assert.GreaterOrEqual(t, p.at.Sub(points[i-1].at), time.Millisecond)
		} else {
			assert.Equal(t, p.start, p.at)
		}
	}
	return values
}

func TestANewSeriesBeginsWith0(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Interval: 10 * time.Second})
		harness.Settle()
		began := time.Now()
		api.Put(harness.Event("a", 3))
		time.Sleep(33 * time.Second)
		points := pointsOf(p)
		assert.Equal(t, []int64{0, 3, 3}, valuesInOrder(t, points))
		assert.WithinDuration(t, began, points[0].start, time.Second, "it starts when the first occurrence was seen")
		p.Stop()
		assert.Equal(t, []int64{0, 3, 3, 3}, valuesInOrder(t, pointsOf(p)))
	})
}

// The contract: "Each series has its own start time. It is not later than the moment at which the
// receiver saw the first occurrence, and not earlier than the preceding collection."
func TestASeriesStartsBetweenACollectionAndItsFirstOccurrence(t *testing.T) {
	const interval = 10 * time.Second
	for _, zero := range []bool{false, true} {
		for rejected, duration := range map[string]time.Duration{"accepted at once": 0, "rejected during two collections": 25 * time.Second} {
			t.Run(fmt.Sprint("initial_zero: ", zero, ", ", rejected), func(t *testing.T) {
				harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
					began := time.Now()
					p := harness.Launch(t, api, harness.Options{Interval: interval, Config: fmt.Sprintf("series: {initial_zero: %v}", zero)})
					time.Sleep(interval + 3*time.Second)
					if duration > 0 {
						p.Logs.Reject(errors.New("the queue is full"))
					}
					api.Put(harness.Event("a", 3))
					time.Sleep(duration)
					p.Logs.Reject(nil)
					time.Sleep(4 * interval)
					points := pointsOf(p)
					require.NotEmpty(t, points)
					seen := p.Logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).ObservedTimestamp().AsTime()
					assert.WithinRange(t, points[0].start, began.Add(interval), seen)
					p.Stop()
				})
			})
		}
	}
}

func TestTheEndEmits0AndTheValueOfANewSeries(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		o := harness.Options{Interval: time.Hour}
		p := harness.Launch(t, api, o)
		harness.Settle()
		api.Put(harness.Event("a", 3))
		p.AwaitRecords(t, "a+3")
		p.Stop()
		assert.Equal(t, []int64{0, 3}, valuesInOrder(t, pointsOf(p)))
	})
}

func TestAnOverflowIsReportedOnce(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry := componenttest.NewTelemetry()
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, series: {max: 1}}", Telemetry: telemetry})
		for i := range 4 {
			ev := harness.Event(fmt.Sprint("e", i), 1)
			ev.Reason = fmt.Sprint("Reason", i)
			api.Put(ev)
			time.Sleep(time.Second)
		}
		p.AwaitSum(t, 4)
		require.Len(t, p.Logged("series"), 1)
		assert.Equal(t, map[string]any{"series": int64(1), "namespace": "ns"}, p.Logged("series")[0].ContextMap())
		for metric, want := range map[string]int64{"series": 1, "series_limit": 1, "series_overflow": 3, "leading": 1} {
			got, err := telemetry.GetMetric("otelcol_kube_events_" + metric)
			require.NoError(t, err)
			switch data := got.Data.(type) {
			case metricdata.Gauge[int64]:
				assert.Equal(t, want, data.DataPoints[0].Value, metric)
			case metricdata.Sum[int64]:
				assert.Equal(t, want, data.DataPoints[0].Value, metric)
			}
		}
	})
}

// They are those that the Collector counts for each receiver.
func TestPointsAreCountedByTheirResult(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry, requests := componenttest.NewTelemetry(), 0
		harness.Launch(t, api, harness.Options{Interval: 10 * time.Second, Telemetry: telemetry, Config: "series: {initial_zero: false}",
			Through: through(func(context.Context, consumer.Metrics, pmetric.Metrics) error {
				if requests++; requests > 3 {
					return errors.New("sending queue is full")
				}
				return nil
			})})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		time.Sleep(51 * time.Second)
		for result, want := range map[string]int64{"accepted": 3, "refused": 2} {
			got, err := telemetry.GetMetric("otelcol_receiver_" + result + "_metric_points")
			require.NoError(t, err)
			assert.Equal(t, want, got.Data.(metricdata.Sum[int64]).DataPoints[0].Value, result)
		}
	})
}

// The names of Jobs that nothing owns never come back.
func TestNamesThatTheMetricLeavesOutAreReportedOnce(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{})
		harness.Settle()
		run := func(from, to int) {
			for i := range to - from {
				name := fmt.Sprint("run-", from+i)
				api.Objects.Put(apitest.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: name, UID: name})
				ev := harness.Event(name, 1)
				ev.InvolvedObject = corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: name, UID: types.UID(name)}
				api.Put(ev)
			}
			p.AwaitSum(t, int64(to))
		}
		run(0, 100)
		assert.Empty(t, p.Logged("kind"))
		run(100, 101)
		run(101, 102)
		require.Len(t, p.Logged("kind"), 1)
		assert.Equal(t, map[string]any{"kind": "Job", "namespace": "ns"}, p.Logged("kind")[0].ContextMap())
		assert.Len(t, distinct(p, "k8s.workload.name"), 101, "a hundred names, and none")
		assert.Empty(t, p.Logged("series"), "nothing overflows")
	})
}

// through makes a pipeline in front of a sink.
func through(consume func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error) func(consumer.Metrics) consumer.Metrics {
	return func(sink consumer.Metrics) consumer.Metrics {
		next, _ := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
			return consume(ctx, sink, metrics)
		})
		return next
	}
}

// The contract: "Rejected metrics delay nothing (the next point carries the value)." The pipeline
// has two exporters, of which one rejects always.
func TestAnExporterThatRejectsCostsTheOtherNoValues(t *testing.T) {
	for kind, err := range map[string]error{
		"with a permanent error": consumererror.NewPermanent(errors.New("401 Unauthorized")),
		"because of its queue":   errors.New("sending queue is full"),
	} {
		for _, zero := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, ", initial_zero: ", zero), func(t *testing.T) {
				harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
					p := harness.Launch(t, api, harness.Options{Interval: 10 * time.Second, Config: fmt.Sprintf("series: {initial_zero: %v}", zero),
						Through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
							return errors.Join(sink.ConsumeMetrics(ctx, metrics), err)
						})})
					harness.Settle()
					api.Put(harness.Event("a", 3))
					time.Sleep(5 * time.Minute)
					assert.Equal(t, int64(3), p.Sum(), "%v", pointsOf(p))
				})
			})
		}
	}
}

// The next process starts its own sums.
func TestLastPointsThatAreRejectedAreLost(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on,
			Through: through(func(context.Context, consumer.Metrics, pmetric.Metrics) error { return errors.New("503") })})
		api.Put(harness.Event("a", 3))
		first.AwaitRecords(t, "a+3")
		first.Stop()
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 5))
		second.AwaitSum(t, 2)
	})
}

// A series ends after an hour without occurrences, but not before its last value is accepted.
func TestNoSeriesEndsWhileItsValueIsRejected(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		var accepts atomic.Bool
		p := harness.Launch(t, api, harness.Options{Interval: 10 * time.Second,
			Through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
				if !accepts.Load() {
					return errors.New("sending queue is full")
				}
				return sink.ConsumeMetrics(ctx, metrics)
			})})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		time.Sleep(3 * time.Hour)
		accepts.Store(true)
		time.Sleep(time.Minute)
		assert.Equal(t, int64(3), p.Sum(), "%v", pointsOf(p))
	})
}

// putTwoRequests makes series that fill two requests of the metric.
func putTwoRequests(api *apitest.Server) (series int) {
	const reasons = 1200
	for i := range reasons {
		ev := harness.Event(fmt.Sprint(i), 1)
		ev.Reason = fmt.Sprint(i, strings.Repeat("x", 900))
		api.Put(ev)
	}
	return reasons
}

func TestNoSeriesEndsWhileOneOfTheRequestsIsRejected(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		var rejects atomic.Bool
		rejects.Store(true)
		emitted := map[time.Time]bool{}
		p := harness.Launch(t, api, harness.Options{Interval: 10 * time.Second, Config: "series: {ttl: 1m, initial_zero: false}",
			Through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
				if now := time.Now(); rejects.Load() && !emitted[now] {
					emitted[now] = true
					return errors.New("sending queue is full")
				}
				return sink.ConsumeMetrics(ctx, metrics)
			})})
		harness.Settle()
		series := putTwoRequests(api)
		time.Sleep(10 * time.Minute)
		assert.NotEmpty(t, distinct(p, "k8s.event.reason"), "the second request is accepted")
		assert.Less(t, len(distinct(p, "k8s.event.reason")), series)
		rejects.Store(false)
		time.Sleep(time.Minute)
		assert.Len(t, distinct(p, "k8s.event.reason"), series)
	})
}

// Another process may lead by then.
func TestATermThatEndedEmitsNoFurtherRequest(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		var requests atomic.Int64
		p := harness.Launch(t, api, harness.Options{Elector: harness.NewElector(), Interval: 10 * time.Second,
			Through: through(func(context.Context, consumer.Metrics, pmetric.Metrics) error {
				requests.Add(1)
				time.Sleep(20 * time.Second) // longer than the end waits
				return nil
			})})
		p.Elect()
		harness.Settle()
		putTwoRequests(api)
		time.Sleep(10 * time.Second)
		p.Depose()
		time.Sleep(time.Minute)
		assert.Equal(t, int64(1), requests.Load())
	})
}

// The pipeline takes long for the 0, and the end of the term does not wait for ever.
func TestATermEndsWhileThe0IsEmitted(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration
		want  []int64
	}{
		"the end waits":                {2 * time.Second, []int64{0, 3}},
		"it takes longer than the end": {20 * time.Second, []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				calls := 0
				p := harness.Launch(t, api, harness.Options{Elector: harness.NewElector(), Interval: 10 * time.Second,
					Through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
						if calls++; calls == 1 {
							time.Sleep(tt.takes)
						}
						return sink.ConsumeMetrics(ctx, metrics)
					})})
				p.Elect()
				harness.Settle()
				api.Put(harness.Event("a", 3))
				time.Sleep(6 * time.Second) // The 0 is being emitted since 1 s.
				p.Depose()
				time.Sleep(time.Minute)
				assert.Equal(t, tt.want, valuesInOrder(t, pointsOf(p)))
			})
		})
	}
}

// The next term sees at its start, in the same millisecond, what happened in between.
func TestThePointsOfTheNextTermComeAfterTheLast(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Elector: harness.NewElector(), Interval: time.Hour})
		p.Elect()
		harness.Settle()
		api.Put(harness.Event("a", 3))
		p.AwaitRecords(t, "a+3")
		p.Depose()
		api.Put(harness.Event("a", 5))
		p.Elect()
		p.AwaitRecords(t, "a+3", "a+2")
		p.Stop()
		points := pointsOf(p)
		assert.Equal(t, []int64{0, 3, 0, 2}, []int64{points[0].value, points[1].value, points[2].value, points[3].value})
		assert.True(t, points[2].at.After(points[1].at), "%v", points)
	})
}

// "metric series in use" of the receiver's own telemetry.
func TestTheNumberOfSeriesIsTheOneInUse(t *testing.T) {
	gauge := func(t *testing.T, telemetry *componenttest.Telemetry) int64 {
		got, err := telemetry.GetMetric("otelcol_kube_events_series")
		require.NoError(t, err)
		return got.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
	}
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry := componenttest.NewTelemetry()
		first := harness.Launch(t, api, harness.Options{Telemetry: telemetry, Interval: 10 * time.Second, Config: "series: {ttl: 1m}"})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		first.AwaitSum(t, 3)
		assert.Equal(t, int64(1), gauge(t, telemetry))
		time.Sleep(20 * time.Minute)
		assert.Zero(t, gauge(t, telemetry), "dropped")
	})
}

// hanging is a metrics pipeline that hangs from a moment on.
type hanging struct {
	consumer.Metrics
	hangs    atomic.Bool
	released chan struct{}
}

func (h *hanging) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if h.hangs.Load() {
		select {
		case <-h.released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.Metrics.ConsumeMetrics(ctx, metrics)
}

// launchHanging starts a receiver whose metrics pipeline can hang.
func launchHanging(t *testing.T, api *apitest.Server, o harness.Options) (*harness.Process, *hanging) {
	t.Helper()
	pipeline := &hanging{released: make(chan struct{})}
	t.Cleanup(func() { close(pipeline.released) })
	o.Config = "start_at: beginning"
	o.Through = func(sink consumer.Metrics) consumer.Metrics {
		pipeline.Metrics = sink
		return pipeline
	}
	return harness.Launch(t, api, o), pipeline
}

func TestAMetricsPipelineThatHangsDoesNotHoldBackWhatWasDelivered(t *testing.T) {
	for end, ends := range map[string]func(*harness.Process){
		"at shutdown":              func(p *harness.Process) { p.Stop() },
		"at the end of a term":     func(p *harness.Process) { p.Depose() },
		"with storage at shutdown": func(p *harness.Process) { p.Stop() },
	} {
		t.Run(end, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				storage := strings.HasPrefix(end, "with storage")
				var on *harness.Disk
				elector := harness.NewElector()
				if storage {
					on, elector = harness.NewDisk(), nil
				}
				a, metrics := launchHanging(t, api, harness.Options{Disk: on, Elector: elector})
				if !storage {
					a.Elect()
				}
				api.Put(harness.Event("before", 1))
				a.AwaitRecords(t, "before+1")
				metrics.hangs.Store(true)
				var want []string
				for i := range 4 {
					api.Put(harness.Event(fmt.Sprintf("e%02d", i), 1))
					want = append(want, fmt.Sprintf("e%02d+1", i))
					time.Sleep(100 * time.Millisecond)
				}
				began := time.Now()
				ends(a)
				assert.Less(t, time.Since(began), 10*time.Second, "the grace, and that of the last points")
				assert.Equal(t, append([]string{"before+1"}, want...), a.Logs.Names())
				if !storage {
					assert.Equal(t, api.Version(), harness.NotedProgress(api))
					elector = harness.NewElector()
				}
				b := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Elector: elector})
				if !storage {
					b.Elect()
				}
				api.Put(harness.Event("after", 1))
				b.AwaitRecords(t, "after+1")
			})
		})
	}
}

func TestAMetricsPipelineThatHangsDelaysNoLogs(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p, metrics := launchHanging(t, api, harness.Options{})
		metrics.hangs.Store(true)
		for i := range 100 {
			api.Put(harness.Event("one", int32(i+1)))
			time.Sleep(time.Minute)
		}
		harness.Eventually(t, func() bool { return p.Logs.Occurrences() == 100 })
		metrics.hangs.Store(false)
		metrics.released <- struct{}{}
		p.AwaitSum(t, 100)
	})
}

// rejectingOne stores all points, and returns a permanent error if one has the reason Rejected, as a
// backend that rejects single samples.
type rejectingOne struct{ consumer.Metrics }

func (r rejectingOne) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	rejected := false
	harness.EachPoint(metrics, func(dp pmetric.NumberDataPoint) {
		reason, _ := dp.Attributes().Get("k8s.event.reason")
		rejected = rejected || reason.Str() == "Rejected"
	})
	if err := r.Metrics.ConsumeMetrics(ctx, metrics); err != nil || !rejected {
		return err
	}
	return consumererror.NewPermanent(errors.New("1 sample was rejected"))
}

func TestSeriesEndAlthoughTheBackendRejectsOne(t *testing.T) {
	for _, reason := range []string{"Fine", "Rejected"} {
		t.Run(reason, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := harness.Launch(t, api, harness.Options{
					Config: "series: {max: 12}", Interval: 30 * time.Second,
					Through: func(sink consumer.Metrics) consumer.Metrics { return rejectingOne{sink} },
				})
				harness.Settle()
				put := func(name, reason string, count int32) {
					ev := harness.Event(name, count)
					ev.Reason = reason
					api.Put(ev)
				}
				for i := range 5 {
					put(fmt.Sprint("old-", i), fmt.Sprint("Old", i), 1)
				}
				for i := range 5 * 6 {
					put("rejected", reason, int32(i+1))
					time.Sleep(10 * time.Minute)
				}
				for i := range 5 {
					put(fmt.Sprint("new-", i), fmt.Sprint("New", i), 1)
				}
				time.Sleep(5 * time.Minute)
				all := p.Metrics.AllMetrics()
				overflow := int64(0)
				harness.EachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) {
					if _, ok := dp.Attributes().Get("otel.metric.overflow"); ok {
						overflow += dp.IntValue()
					}
				})
				assert.Zero(t, overflow, "occurrences in the overflow series")
			})
		})
	}
}

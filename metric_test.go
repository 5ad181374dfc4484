// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

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

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// point is a point of the metric, of the only series.
type point struct {
	value     int64
	start, at time.Time
}

func (p *process) points() (all []point) {
	for _, metrics := range p.metrics.AllMetrics() {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				all = append(all, point{dp.IntValue(), dp.StartTimestamp().AsTime(), dp.Timestamp().AsTime()})
			}
		}
	}
	return all
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
	for name, on := range withAndWithoutStorage {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{disk: on(), interval: 10 * time.Second})
				settle()
				began := time.Now()
				api.Put(eventNamed("a", 3))
				time.Sleep(33 * time.Second)
				points := p.points()
				assert.Equal(t, []int64{0, 3, 3}, valuesInOrder(t, points))
				assert.WithinDuration(t, began, points[0].start, time.Second, "it starts when the first occurrence was seen")
				p.stop()
				assert.Equal(t, []int64{0, 3, 3, 3}, valuesInOrder(t, p.points()))
			})
		})
	}
}

// The contract: "Each series has its own start time. It is not later than the moment at which the
// receiver saw the first occurrence, and not earlier than the preceding collection."
func TestASeriesStartsBetweenACollectionAndItsFirstOccurrence(t *testing.T) {
	const interval = 10 * time.Second
	for storage, on := range withAndWithoutStorage {
		for _, zero := range []bool{false, true} {
			for rejected, duration := range map[string]time.Duration{"accepted at once": 0, "rejected during two collections": 25 * time.Second} {
				t.Run(fmt.Sprint(storage, ", initial_zero: ", zero, ", ", rejected), func(t *testing.T) {
					inBubble(t, func(t *testing.T, api *apitest.Server) {
						began := time.Now()
						p := launch(t, api, options{disk: on(), interval: interval, config: fmt.Sprintf("metrics: {initial_zero: %v}", zero)})
						time.Sleep(interval + 3*time.Second)
						if duration > 0 {
							p.logs.reject(errors.New("the queue is full"))
						}
						api.Put(eventNamed("a", 3))
						time.Sleep(duration)
						p.logs.reject(nil)
						time.Sleep(4 * interval)
						points := p.points()
						require.NotEmpty(t, points)
						seen := p.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).ObservedTimestamp().AsTime()
						assert.WithinRange(t, points[0].start, began.Add(interval), seen)
						p.stop()
					})
				})
			}
		}
	}
}

func TestTheEndEmits0AndTheValueOfANewSeries(t *testing.T) {
	for name, on := range withAndWithoutStorage {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				o := options{disk: on(), interval: time.Hour}
				p := launch(t, api, o)
				settle()
				api.Put(eventNamed("a", 3))
				p.awaitRecords(t, "a+3")
				p.stop()
				assert.Equal(t, []int64{0, 3}, valuesInOrder(t, p.points()))
				if o.disk == nil {
					return
				}
				next := launch(t, api, o)
				settle()
				next.stop()
				points := next.points()
				require.Len(t, points, 1)
				assert.Equal(t, int64(3), points[0].value, "the 0 is not repeated")
			})
		})
	}
}

// The 0 is saved before the value is emitted, so that no process emits it after the value.
func TestAKillAtAnyTimeEmitsNo0AfterAValue(t *testing.T) {
	for after := 2 * time.Second; after <= 40*time.Second; after += 2 * time.Second {
		inBubble(t, func(t *testing.T, api *apitest.Server) {
			on := newDisk()
			first := launch(t, api, options{disk: on, interval: 10 * time.Second})
			settle()
			api.Put(eventNamed("a", 3))
			time.Sleep(after)
			on = on.copied() // A kill.
			points := first.points()
			second := launch(t, api, options{disk: on, interval: 10 * time.Second})
			time.Sleep(35 * time.Second)
			highest := int64(0)
			for _, p := range append(points, second.points()...) {
				assert.GreaterOrEqual(t, p.value, highest, "killed after %v", after)
				highest = p.value
			}
			assert.Equal(t, int64(3), highest, "killed after %v", after)
		})
	}
}

func TestAnOverflowIsReportedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry := componenttest.NewTelemetry()
		p := launch(t, api, options{config: "{start_at: beginning, metrics: {max_series: 1}}", telemetry: telemetry})
		for i := range 4 {
			ev := eventNamed(fmt.Sprint("e", i), 1)
			ev.Reason = fmt.Sprint("Reason", i)
			api.Put(ev)
			time.Sleep(time.Second)
		}
		p.awaitSum(t, 4)
		assert.Len(t, p.logged("max_series"), 1)
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

// through makes a pipeline in front of a sink.
func through(consume func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error) func(consumer.Metrics) consumer.Metrics {
	return func(sink consumer.Metrics) consumer.Metrics {
		next, _ := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
			return consume(ctx, sink, metrics)
		})
		return next
	}
}

var withAndWithoutStorage = map[string]func() *disk{"without storage": func() *disk { return nil }, "with storage": newDisk}

// The contract: "Logs rejected with a retryable error delay everything after their batch: no later
// record is delivered and no later occurrence is counted (with storage, the batch itself is counted
// when it is saved)".
func TestWhileLogsAreRejectedTheMetricHasTheirBatch(t *testing.T) {
	for _, zero := range []bool{false, true} {
		t.Run(fmt.Sprint("initial_zero: ", zero), func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{disk: newDisk(), interval: 10 * time.Second, config: fmt.Sprintf("metrics: {initial_zero: %v}", zero)})
				settle()
				p.logs.reject(errors.New("the queue is full"))
				api.Put(eventNamed("a", 3))
				time.Sleep(5 * time.Minute)
				assert.Equal(t, int64(3), p.sum(), "%v", p.points())
			})
		})
	}
}

// The contract: "At shutdown, the receiver emits every value immediately; a new series then gets
// its zero and its value."
func TestTheEndWhileLogsAreRejectedEmitsTheValue(t *testing.T) {
	for _, zero := range []bool{false, true} {
		t.Run(fmt.Sprint("initial_zero: ", zero), func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{disk: newDisk(), interval: time.Hour, config: fmt.Sprintf("metrics: {initial_zero: %v}", zero)})
				settle()
				p.logs.reject(errors.New("the queue is full"))
				api.Put(eventNamed("a", 3))
				settle()
				p.stop()
				assert.Equal(t, int64(3), p.sum(), "%v", p.points())
			})
		})
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
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					p := launch(t, api, options{interval: 10 * time.Second, config: fmt.Sprintf("metrics: {initial_zero: %v}", zero),
						through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
							return errors.Join(sink.ConsumeMetrics(ctx, metrics), err)
						})})
					settle()
					api.Put(eventNamed("a", 3))
					time.Sleep(5 * time.Minute)
					assert.Equal(t, int64(3), p.sum(), "%v", p.points())
				})
			})
		}
	}
}

func TestAShutdownWhileThe0IsEmitted(t *testing.T) {
	for name, on := range withAndWithoutStorage {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{disk: on(), interval: 10 * time.Second,
					through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
						time.Sleep(2 * time.Second)
						return sink.ConsumeMetrics(ctx, metrics)
					})})
				settle()
				api.Put(eventNamed("a", 3))
				time.Sleep(6 * time.Second) // The 0 is emitted from 10 s to 12 s.
				p.stop()
				assert.Equal(t, []int64{0, 3}, valuesInOrder(t, p.points()))
			})
		})
	}
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
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				calls := 0
				p := launch(t, api, options{vote: newVote(), interval: 10 * time.Second,
					through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
						if calls++; calls == 1 {
							time.Sleep(tt.takes)
						}
						return sink.ConsumeMetrics(ctx, metrics)
					})})
				p.elect()
				settle()
				api.Put(eventNamed("a", 3))
				time.Sleep(6 * time.Second) // The 0 is being emitted since 1 s.
				p.depose()
				time.Sleep(time.Minute)
				assert.Equal(t, tt.want, valuesInOrder(t, p.points()))
			})
		})
	}
}

// Storage fails between the 0 and the value, for a while.
func TestStorageFailsBetweenThe0AndTheValue(t *testing.T) {
	for fails := time.Second; fails < 30*time.Second; fails += 3 * time.Second {
		inBubble(t, func(t *testing.T, api *apitest.Server) {
			on := newDisk()
			p := launch(t, api, options{disk: on, interval: 10 * time.Second})
			settle()
			api.Put(eventNamed("a", 3))
			time.Sleep(fails)
			on.fail(nil, errDisk)
			time.Sleep(time.Minute)
			on.fail(nil, nil)
			time.Sleep(time.Minute)
			values := valuesInOrder(t, p.points())
			require.NotEmpty(t, values)
			assert.Equal(t, int64(0), values[0])
			assert.Equal(t, int64(3), values[len(values)-1])
		})
	}
}

// A receiver without events writes nothing, and a series that is dropped is not written either
// without need.
func TestNothingIsWrittenWithoutNeed(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{disk: on, interval: time.Second})
		settle()
		api.Put(eventNamed("a", 3))
		p.awaitRecords(t, "a+3")
		settle()
		before := on.writes
		time.Sleep(30 * time.Minute)
		assert.Equal(t, before, on.writes)
	})
}

// Two replicas with shared storage lead in turns.
func TestTermsWithSharedStorage(t *testing.T) {
	for after := time.Second; after < 30*time.Second; after += 2 * time.Second {
		inBubble(t, func(t *testing.T, api *apitest.Server) {
			on := newDisk()
			a := launch(t, api, options{disk: on, vote: newVote(), interval: 10 * time.Second})
			b := launch(t, api, options{disk: on, vote: newVote(), interval: 10 * time.Second})
			a.elect()
			settle()
			api.Put(eventNamed("a", 3))
			time.Sleep(after)
			a.depose()
			time.Sleep(6 * time.Second)
			b.elect()
			time.Sleep(35 * time.Second)
			all := append(a.points(), b.points()...)
			highest := int64(0)
			for i, p := range all {
				assert.GreaterOrEqual(t, p.value, highest, "deposed after %v: %v", after, all)
				highest = p.value
				if i == 0 {
					assert.Zero(t, p.value, "deposed after %v", after)
				}
			}
			assert.Equal(t, int64(3), highest, "deposed after %v", after)
		})
	}
}

// "metric series in use" of the receiver's own telemetry.
func TestTheNumberOfSeriesIsTheOneInUse(t *testing.T) {
	gauge := func(t *testing.T, telemetry *componenttest.Telemetry) int64 {
		got, err := telemetry.GetMetric("otelcol_kube_events_series")
		require.NoError(t, err)
		return got.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
	}
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on, telemetry := newDisk(), componenttest.NewTelemetry()
		first := launch(t, api, options{disk: on, telemetry: telemetry, interval: 10 * time.Second})
		settle()
		api.Put(eventNamed("a", 3))
		first.awaitSum(t, 3)
		assert.Equal(t, int64(1), gauge(t, telemetry))
		first.stop()
		telemetry = componenttest.NewTelemetry()
		second := launch(t, api, options{disk: on, telemetry: telemetry, interval: 10 * time.Second, config: "metrics: {series_ttl: 1m}"})
		second.awaitSum(t, 3)
		time.Sleep(30 * time.Second)
		assert.Equal(t, int64(1), gauge(t, telemetry), "restored and emitted")
		api.Put(eventNamed("a", 4))
		second.awaitSum(t, 4)
		time.Sleep(20 * time.Minute)
		assert.Zero(t, gauge(t, telemetry), "dropped")
	})
}

// The contract: "When a term of leading ends, the receiver does the same only while no other process
// can lead yet (before the lease expires, ...)". The lease of 15 s expires 5 s after the renew
// deadline of 10 s, at which the term ends.
func TestTheLastSumsOfATermAreNotEmittedAfterTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		var deposed, accepted time.Time
		vote := newVote()
		vote.config.LeaseDuration, vote.config.RenewDuration = 15*time.Second, 10*time.Second
		logs := &pipeline{}
		p := launch(t, api, options{vote: vote, interval: time.Hour, logs: logs,
			through: through(func(ctx context.Context, sink consumer.Metrics, metrics pmetric.Metrics) error {
				select {
				case <-time.After(4900 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				accepted = time.Now()
				return sink.ConsumeMetrics(ctx, metrics)
			})})
		p.elect()
		settle()
		logs.onAttempt(func() { time.Sleep(3 * time.Second) }) // The loop is busy when the term ends.
		api.Put(eventNamed("a", 3))
		time.Sleep(time.Second)
		deposed = time.Now()
		p.depose()
		time.Sleep(time.Minute)
		if !accepted.IsZero() {
			assert.Less(t, accepted.Sub(deposed), 5*time.Second)
		}
	})
}

// hanging is a metrics pipeline that hangs from a moment on.
type hanging struct {
	consumer.Metrics
	obeys    bool // the context
	hangs    atomic.Bool
	released chan struct{}
}

func (h *hanging) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if h.hangs.Load() {
		obeyed := ctx.Done()
		if !h.obeys {
			obeyed = nil
		}
		select {
		case <-h.released:
		case <-obeyed:
			return ctx.Err()
		}
	}
	return h.Metrics.ConsumeMetrics(ctx, metrics)
}

// launchHanging starts a receiver whose metrics pipeline can hang.
func launchHanging(t *testing.T, api *apitest.Server, o options, obeys bool) (*process, *hanging) {
	t.Helper()
	pipeline := &hanging{obeys: obeys, released: make(chan struct{})}
	t.Cleanup(func() { close(pipeline.released) })
	o.config = "start_at: beginning"
	o.through = func(sink consumer.Metrics) consumer.Metrics {
		pipeline.Metrics = sink
		return pipeline
	}
	return launch(t, api, o), pipeline
}

func TestAMetricsPipelineThatHangsDoesNotHoldBackWhatWasDelivered(t *testing.T) {
	for end, ends := range map[string]func(*process){
		"at shutdown":              func(p *process) { p.stop() },
		"at the end of a term":     func(p *process) { p.depose() },
		"with storage at shutdown": func(p *process) { p.stop() },
	} {
		for name, obeys := range map[string]bool{"its context ends it": true, "nothing ends it": false} {
			t.Run(end+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					storage := strings.HasPrefix(end, "with storage")
					var on *disk
					elector := newVote()
					if storage {
						on, elector = newDisk(), nil
					}
					a, metrics := launchHanging(t, api, options{disk: on, vote: elector}, obeys)
					if !storage {
						a.elect()
					}
					api.Put(eventNamed("before", 1))
					a.awaitRecords(t, "before+1")
					metrics.hangs.Store(true)
					var want []string
					for i := range 4 {
						api.Put(eventNamed(fmt.Sprintf("e%02d", i), 1))
						want = append(want, fmt.Sprintf("e%02d+1", i))
						time.Sleep(100 * time.Millisecond)
					}
					began := time.Now()
					ends(a)
					assert.Less(t, time.Since(began), 5*time.Second, "less than the grace")
					assert.Equal(t, append([]string{"before+1"}, want...), a.logs.names())
					if !storage {
						assert.Equal(t, api.Version(), published(api))
						elector = newVote()
					}
					b := launch(t, api, options{config: "start_at: beginning", disk: on, vote: elector})
					if !storage {
						b.elect()
					}
					api.Put(eventNamed("after", 1))
					b.awaitRecords(t, "after+1")
				})
			})
		}
	}
}

func TestAMetricsPipelineThatHangsDelaysNoLogs(t *testing.T) {
	for name, on := range map[string]*disk{"without storage": nil, "with storage": newDisk()} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p, metrics := launchHanging(t, api, options{disk: on}, true)
				metrics.hangs.Store(true)
				for i := range 100 {
					api.Put(eventNamed("one", int32(i+1)))
					time.Sleep(time.Minute)
				}
				eventually(t, func() bool { return occurrences(p.logs.records()...) == 100 })
				metrics.hangs.Store(false)
				metrics.released <- struct{}{}
				p.awaitSum(t, 100)
			})
		})
	}
}

// rejectingOne stores all points, and returns a permanent error if one has the reason Rejected, as a
// backend that rejects single samples.
type rejectingOne struct{ consumer.Metrics }

func (r rejectingOne) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	rejected := false
	eachPoint(metrics, func(dp pmetric.NumberDataPoint) {
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
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{
					config: "metrics: {max_series: 6}", interval: 30 * time.Second,
					through: func(sink consumer.Metrics) consumer.Metrics { return rejectingOne{sink} },
				})
				settle()
				put := func(name, reason string, count int32) {
					ev := eventNamed(name, count)
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
				all := p.metrics.AllMetrics()
				overflow := int64(0)
				eachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) {
					if _, ok := dp.Attributes().Get("otel.metric.overflow"); ok {
						overflow += dp.IntValue()
					}
				})
				assert.Zero(t, overflow, "occurrences in the overflow series")
			})
		})
	}
}

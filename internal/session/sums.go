// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// lastEmission is how long the emission of the last sums may take.
const lastEmission = 5 * time.Second

// sums emits the metric. Its methods may be called while run runs.
type sums interface {
	// enable lets run emit the sums from now on. begin also starts them at 0.
	enable()
	begin(now time.Time)
	// run emits the sums at intervals until stop ends.
	run(stop, drain context.Context)
	// prepareEnd is called after the last batch. What it changes is saved before end is called.
	prepareEnd()
	// end emits the last sums of the term: no later emission has them.
	end()
	// unsaved fires when an emission has changed what has to be saved; nil: it never fires.
	unsaved() <-chan struct{}
	// setCluster sets the UID of the cluster that points name; empty: it is not known.
	setCluster(uid string)
}

// noMetrics are the sums of a receiver in no metrics pipeline.
type noMetrics struct{}

func (noMetrics) enable()                              {}
func (noMetrics) begin(time.Time)                      {}
func (noMetrics) run(context.Context, context.Context) {}
func (noMetrics) prepareEnd()                          {}
func (noMetrics) end()                                 {}
func (noMetrics) unsaved() <-chan struct{}             { return nil }
func (noMetrics) setCluster(string)                    {}

// metricsPipeline emits the sums to the metrics pipeline.
type metricsPipeline struct {
	next        consumer.Metrics
	tally       *tally.Tally
	interval    time.Duration
	clusterName string // empty: it has none
	scope       tally.Scope
	saves       bool // the sums
	leadership  *election.Leadership
	health      *health.Health
	logger      *zap.Logger

	overflows bool // it was logged
	// emitting has an element during an emission. Points of two at the same time could change places.
	emitting chan struct{}
	// changed has an element when an emission has changed what has to be saved.
	changed chan struct{}
	// emits reports whether the sums are those of this term.
	emits      atomic.Bool
	clusterUID atomic.Pointer[string]
}

func (m *metricsPipeline) enable()               { m.emits.Store(true) }
func (m *metricsPipeline) setCluster(uid string) { m.clusterUID.Store(&uid) }

// report reports how many series there are.
func (m *metricsPipeline) report() {
	series, overflowed := m.tally.TakeUsage()
	m.health.Counted(series, overflowed)
	if overflowed > 0 && !m.overflows {
		m.overflows = true
		m.logger.Warn("The metric has metrics.max_series series; occurrences of other series are counted in one series with otel.metric.overflow. "+
			"Raise max_series, disable attributes, or exclude reasons", zap.Int("max_series", series))
	}
}

func (m *metricsPipeline) begin(now time.Time) {
	m.tally.Reset(now)
	m.enable()
}

func (m *metricsPipeline) run(stop, drain context.Context) {
	ticker := time.NewTicker(m.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.emit(drain, func() bool { return m.emits.Load() && m.leadership.CertainlyLeads() })
		case <-stop.Done():
			return
		}
	}
}

func (m *metricsPipeline) unsaved() <-chan struct{} { return m.changed }

func (m *metricsPipeline) prepareEnd() { m.tally.End() }

func (m *metricsPipeline) end() {
	if !m.saves {
		m.tally.End()
	}
	if !m.emits.Swap(false) {
		return
	}
	left := min(lastEmission, m.leadership.NobodyElseLeadsFor(time.Now()))
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	m.emit(ctx, func() bool { return m.leadership.NobodyElseLeads(time.Now()) })
}

// emit emits the sums once, after the last emission, if it still may. Rejected points are not emitted
// again: the next ones carry their values.
func (m *metricsPipeline) emit(ctx context.Context, may func() bool) {
	select {
	case m.emitting <- struct{}{}:
		defer func() { <-m.emitting }()
	case <-ctx.Done():
		return
	}
	if !may() {
		return
	}
	now := time.Now()
	m.tally.Expire(now)
	m.report()
	metrics := m.tally.Metrics(m.scope, semconv.Cluster{UID: *m.clusterUID.Load(), Name: m.clusterName}, now)
	points := metrics.DataPointCount()
	if points == 0 {
		return
	}
	ctx = m.health.Operations.StartMetricsOp(ctx)
	err := m.next.ConsumeMetrics(ctx, metrics)
	if err == nil {
		m.tally.Emitted()
	}
	if m.tally.TakeBegun() {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
	m.health.Operations.EndMetricsOp(ctx, metadata.Type.String(), points, err)
}

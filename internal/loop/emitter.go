// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
)

// emitter emits the sums of a session to the metrics pipeline. Without one, it does nothing. count may be
// called while run runs.
type emitter struct {
	next       consumer.Metrics // nil: the receiver is in no metrics pipeline
	series     *series.Series
	interval   time.Duration
	cluster    semconv.Cluster
	scope      series.Scope
	leadership *election.Leadership
	health     *health.Health
	logger     *zap.Logger

	overflows, lacksNames bool // it was logged
	// lastPoint lets a later session begin its sums after the last points of this one.
	lastPoint *atomic.Pointer[time.Time]
}

func (l *Loop) newEmitter(cluster semconv.Cluster) *emitter {
	begin := time.Now()
	if last := l.lastPoint.Load(); last != nil && !last.Before(begin.Round(0)) {
		begin = last.Add(time.Millisecond)
	}
	return &emitter{
		next: l.Metrics, series: series.New(l.Series, begin), interval: l.CollectionInterval, cluster: cluster,
		scope:      series.Scope{Name: metadata.ScopeName, Version: l.Version},
		leadership: l.Leadership, health: l.Health, logger: l.Logger, lastPoint: &l.lastPoint,
	}
}

// count counts the occurrences of records that were delivered.
func (m *emitter) count(records []observation.Observation) {
	if m.next != nil {
		m.series.Add(records, time.Now())
	}
}

// report reports how many series there are.
func (m *emitter) report() {
	usage := m.series.TakeUsage()
	m.health.Counted(usage.Series, usage.Overflowed)
	if usage.Unnamed > 0 && !m.lacksNames {
		m.lacksNames = true
		m.logger.Warn("The metric names at most 100 workloads of a kind in a namespace that are new, or that the receiver "+
			"may not read; further ones count without a name. Give runs metadata.generateName or an owner",
			zap.String("kind", usage.UnnamedKind), zap.String("namespace", usage.UnnamedNamespace))
	}
	if usage.Overflowed > 0 && !m.overflows {
		m.overflows = true
		m.logger.Warn("The metric has almost reached series.max, or the events of one namespace half of it; "+
			"one series with otel.metric.overflow counts further occurrences. "+
			"Raise series.max, disable attributes, extract fewer tags, or exclude reasons",
			zap.Int("series", usage.Series), zap.String("namespace", usage.OverflowedNamespace))
	}
}

// run emits the sums at intervals until stop ends. An emission continues until drain ends.
func (m *emitter) run(stop, drain context.Context) {
	ticker := time.NewTicker(m.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.emit(drain)
		case <-stop.Done():
			return
		}
	}
}

// end emits the last sums, until the context ends. Callers must have waited for run.
func (m *emitter) end(ctx context.Context) {
	m.series.End()
	m.emit(ctx)
}

// emit emits the sums once, unless another process may lead. Rejected points are not emitted again: the
// next ones carry their values. Points that are rejected with a permanent error count as accepted: a
// backend that never takes the points of one series must not keep all others from ending.
func (m *emitter) emit(ctx context.Context) {
	now := time.Now()
	if !m.leadership.NobodyElseLeads(now) {
		return
	}
	m.series.Expire(now)
	m.report()
	accepted := true
	for request := range m.series.Metrics(m.scope, m.cluster, now) {
		points := request.DataPointCount()
		ctx := m.health.Operations.StartMetricsOp(ctx)
		err := m.next.ConsumeMetrics(ctx, request)
		m.health.Operations.EndMetricsOp(ctx, metadata.Type.String(), points, err)
		accepted = accepted && (err == nil || consumererror.IsPermanent(err))
		if ctx.Err() != nil {
			break // The term has ended.
		}
	}
	if accepted {
		m.series.Accepted()
	}
	last := m.series.LastPoint()
	m.lastPoint.Store(&last)
}

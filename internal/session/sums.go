// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// lastEmission is how long the emission of the last sums may take, together with one that it waits
// for.
const lastEmission = 4 * time.Second

// metricsPipeline emits the sums to the metrics pipeline. Without one, it does nothing. Its methods may
// be called while run runs.
type metricsPipeline struct {
	next        consumer.Metrics // nil: the receiver is in no metrics pipeline
	tally       *tally.Tally
	interval    time.Duration
	clusterName string // empty: it has none
	scope       tally.Scope
	saves       bool // the sums
	leadership  *leadership.Leadership
	health      *health.Health
	logger      *zap.Logger

	overflows, lacksNames bool // it was logged
	// emitting has an element during an emission, of this session or of an earlier one that still
	// hangs. Points of two at the same time could change places.
	emitting chan struct{}
	// unsaved has an element when an emission has changed what has to be saved.
	unsaved chan struct{}
	// term is in which run emits the sums; nil: it does not.
	term       atomic.Pointer[emissions]
	clusterUID atomic.Pointer[string]
}

// emissions are those of run in one term.
type emissions struct {
	ctx context.Context
	end context.CancelFunc
}

// enable lets run emit the sums from now on, with contexts that end with drain.
func (m *metricsPipeline) enable(drain context.Context) {
	ctx, cancel := context.WithCancel(drain)
	m.term.Store(&emissions{ctx, cancel})
}

// setCluster sets the UID of the cluster that points name; empty: it is not known.
func (m *metricsPipeline) setCluster(uid string) { m.clusterUID.Store(&uid) }

// report reports how many series there are.
func (m *metricsPipeline) report() {
	usage := m.tally.TakeUsage()
	m.health.Counted(usage.Series, usage.Overflowed)
	if usage.Unnamed > 0 && !m.lacksNames {
		m.lacksNames = true
		m.logger.Warn("The receiver may not read the objects of a kind, and knows more than 100 of them in a namespace by reference; "+
			"in the metric, further ones count without a name. If their names are generated, add a rule to read them",
			zap.String("kind", usage.UnnamedKind), zap.String("namespace", usage.UnnamedNamespace))
	}
	if usage.Overflowed > 0 && !m.overflows {
		m.overflows = true
		m.logger.Warn(m.whyOverflow()+"; occurrences of other series are counted in one series with otel.metric.overflow. "+
			"Raise max_series, disable attributes, extract fewer tags, or exclude reasons", zap.Int("series", usage.Series))
	}
}

func (m *metricsPipeline) whyOverflow() string {
	if m.tally.IsFull() {
		return "The metric has metrics.max_series series"
	}
	return "The texts of the metric's series take more than 2 KiB for each of metrics.max_series"
}

// begin starts the sums at 0, and enables them.
func (m *metricsPipeline) begin(drain context.Context, now time.Time) {
	m.tally.Reset(now)
	m.enable(drain)
}

// run emits the sums at intervals until stop ends. It returns without an emission that hangs.
func (m *metricsPipeline) run(stop context.Context) {
	ticker := time.NewTicker(m.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if term := m.term.Load(); term != nil {
				m.emit(stop, term.ctx, func() bool { return m.term.Load() == term && m.leadership.CertainlyLeads() })
			}
		case <-stop.Done():
			return
		}
	}
}

// prepareEnd is called after the last batch. What it changes is saved before end is called.
func (m *metricsPipeline) prepareEnd() {
	if m.next != nil {
		m.tally.End(time.Now())
	}
}

// end emits the last sums of the term: no later emission has them.
func (m *metricsPipeline) end() {
	if !m.saves {
		m.prepareEnd()
	}
	term := m.term.Swap(nil)
	if term == nil {
		return
	}
	defer term.end()
	left := min(lastEmission, m.leadership.NobodyElseLeadsFor(time.Now()))
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	m.emit(ctx, ctx, func() bool { return m.leadership.NobodyElseLeads(time.Now()) })
}

// emit emits the sums once, after the last emission, if it still may. It waits until wait ends: a
// pipeline may hang, even if its context has ended.
func (m *metricsPipeline) emit(wait, ctx context.Context, may func() bool) {
	if m.next == nil {
		return
	}
	select {
	case m.emitting <- struct{}{}:
	case <-wait.Done():
		reached.State("the metric is not emitted because its last emission hangs")
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { <-m.emitting }()
		if may() {
			m.consume(ctx)
		} else {
			reached.State("the metric is not emitted because another process may lead")
		}
	}()
	select {
	case <-done:
	case <-wait.Done():
	}
}

// consume passes the sums to the metrics pipeline. Rejected points are not emitted again: the next
// ones carry their values. Points that are rejected with a permanent error count as emitted: a backend
// that never takes the points of one series must not keep all others from ending.
func (m *metricsPipeline) consume(ctx context.Context) {
	now := time.Now()
	m.tally.Expire(now)
	m.report()
	accepted, emitted := true, false
	cluster := semconv.Cluster{UID: *m.clusterUID.Load(), Name: m.clusterName}
	for request := range m.tally.Metrics(m.scope, cluster, now) {
		points := request.DataPointCount()
		ctx := m.health.Operations.StartMetricsOp(ctx)
		err := m.next.ConsumeMetrics(ctx, request)
		m.health.Operations.EndMetricsOp(ctx, metadata.Type.String(), points, err)
		accepted, emitted = accepted && (err == nil || consumererror.IsPermanent(err)), true
	}
	if emitted && accepted {
		m.tally.Emitted()
	}
	if m.tally.IsUnsaved() {
		select {
		case m.unsaved <- struct{}{}:
		default:
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/multierr"
)

// delivery is what an exporter got at once.
type delivery struct {
	began   time.Time // when the process offered it to its pipelines
	at      time.Time // when the exporter decided
	process *process
	logs    plog.Logs
}

// exporter is the end of one logs pipeline. It outlives the processes that send to it.
type exporter struct {
	env    *environment
	number int

	mu         sync.Mutex // guards deliveries
	deliveries []delivery
}

func (e *exporter) note(d delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliveries = append(e.deliveries, d)
}

// all returns what was delivered so far.
func (e *exporter) all() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.deliveries)
}

// branch is one process's pipeline to an exporter.
type branch struct {
	*exporter
	process *process
	calls   counter

	rejected time.Time // when it last rejected with a retryable error, and nothing else since; zero: not
	hasty    int       // consecutive attempts that came too soon after that
}

func (b *branch) consume(ctx context.Context, began time.Time, logs plog.Logs) error {
	p, number := b.process, b.calls.next()
	hit := func(kind FaultKind) *Fault {
		return p.hit(kind, fmt.Sprint("exporter ", b.number), number, b.number)
	}
	if f := hit(PipelineSlow); f != nil {
		if err := sleep(ctx, f.Delay); err != nil {
			return err
		}
	}
	if f := hit(PipelineHangs); f != nil {
		heard := ctx
		if f.Deaf {
			heard = context.WithoutCancel(ctx)
		}
		_ = sleep(heard, time.Until(b.env.began.Add(f.To)))
	}
	if err := ctx.Err(); err != nil {
		return err // Another branch of the fan-out may have hung.
	}
	kill := p.reaches(AtPipeline)
	if kill && !p.kill.Acted {
		p.die("in a delivery, before the exporter had it")
	}
	if p.isDead() {
		return errors.New("this process is dead")
	}
	b.checkPause(ctx)
	err := b.decide(hit, began, logs)
	if kill {
		p.die("in a delivery, after the exporter had it")
		return errors.New("this process is dead")
	}
	return err
}

// mostHasty is how many consecutive attempts may come without a pause: at the end of a process, of a
// term or of a cluster, each batch that is left gets one.
const mostHasty = 5

// checkPause checks that what the branch rejected comes again after retry_on_failure's interval, of
// which half is random, unless the receiver gives it up. Without a pause, time would stand still.
func (b *branch) checkPause(ctx context.Context) {
	c := &b.env.plan.Configured
	usual := configretry.NewDefaultBackOffConfig()
	pause := min(cmp.Or(c.Retry.Initial, usual.InitialInterval), cmp.Or(c.Retry.MaxInterval, usual.MaxInterval)) / 2
	if b.rejected.IsZero() || time.Since(b.rejected) >= pause {
		b.hasty = 0
	} else if b.hasty++; b.hasty > mostHasty && !c.Retry.givesUp() && !b.env.plan.has(PipelinePermanent) {
		b.env.violate(boundedRequests, "", "exporter %d got more than %d attempts of %s without a pause of %v after its rejection",
			b.number, mostHasty, b.process.name, pause)
		_ = sleep(ctx, time.Minute)
	}
	b.rejected = time.Time{}
}

// decide accepts, or rejects as the plan says.
func (b *branch) decide(hit func(FaultKind) *Fault, began time.Time, logs plog.Logs) error {
	took := delivery{began: began, at: time.Now(), process: b.process, logs: plog.NewLogs()}
	n, note := logs.LogRecordCount(), b.process.note
	switch {
	case hit(PipelineRejects) != nil:
		note("exporter %d rejects %d records, retryable", b.number, n)
		b.noteIfDropped(took, logs)
		b.destroy(logs)
		b.rejected = took.at
		return errors.New("the queue is full")
	case hit(PipelinePermanent) != nil:
		logs.CopyTo(took.logs)
		b.note(took)
		note("exporter %d rejects %d records, permanent", b.number, n)
		return consumererror.NewPermanent(errors.New("malformed"))
	case hit(PipelinePartial) != nil && logs.ResourceLogs().Len() > 1:
		rest := plog.NewLogs()
		for i, rl := range logs.ResourceLogs().All() {
			to := took.logs
			if i%2 == 1 {
				to = rest
			}
			rl.CopyTo(to.ResourceLogs().AppendEmpty())
		}
		b.note(took)
		note("exporter %d accepts %d records of %d", b.number, took.logs.LogRecordCount(), n)
		b.noteIfDropped(delivery{took.began, took.at, took.process, plog.NewLogs()}, rest)
		return consumererror.NewLogs(errors.New("some were rejected"), rest)
	}
	logs.CopyTo(took.logs)
	b.note(took)
	b.destroy(logs)
	return nil
}

// noteIfDropped notes records that are rejected with a retryable error if retry_on_failure may then
// give them up: they are in the metric.
func (b *branch) noteIfDropped(took delivery, rejected plog.Logs) {
	if b.env.plan.Retry.givesUp() {
		rejected.CopyTo(took.logs)
		b.note(took)
	}
}

// destroy changes the data, as a processor may, whether what is behind it then accepts or not.
func (b *branch) destroy(logs plog.Logs) {
	if b.env.plan.MutatesData {
		logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true })
	}
}

// logsPipelines joins the branches as the Collector's fan-out does: each gets the data, and the
// errors are joined. One branch alone gets the data itself.
type logsPipelines struct {
	process  *process
	branches []*branch
}

func (l *logsPipelines) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: l.process.replica.env.plan.MutatesData}
}

func (l *logsPipelines) ConsumeLogs(ctx context.Context, logs plog.Logs) (errs error) {
	began, observed := time.Now(), l.process.offered(logs)
	l.process.checkLogs(logs)
	defer func() { l.process.settled(observed, errs) }()
	if len(l.branches) == 1 {
		return l.branches[0].consume(ctx, began, logs)
	}
	for _, b := range l.branches {
		data := logs
		if l.process.replica.env.plan.MutatesData {
			data = plog.NewLogs()
			logs.CopyTo(data)
		}
		errs = multierr.Append(errs, b.consume(ctx, began, data))
	}
	return errs
}

// metricsDelivery is what the metrics pipeline accepted at once.
type metricsDelivery struct {
	at      time.Time
	process *process
	metrics pmetric.Metrics
}

// metricsPipeline is a process's way to the one metrics exporter.
type metricsPipeline struct {
	process *process
	calls   counter
}

func (m *metricsPipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (m *metricsPipeline) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	p := m.process
	p.checkLeads("emits metrics")
	number := m.calls.next()
	f := p.hit(MetricsHangs, "metrics", number, 0)
	if f != nil {
		_ = sleep(ctx, time.Until(p.replica.env.began.Add(f.To)))
	}
	if f != nil || p.isDead() || p.hit(MetricsRejected, "metrics", number, 0) != nil {
		return errors.New("the metrics pipeline is full")
	}
	p.checkMetrics(metrics)
	took := pmetric.NewMetrics()
	metrics.CopyTo(took)
	env := p.replica.env
	env.mu.Lock()
	defer env.mu.Unlock()
	env.metrics = append(env.metrics, metricsDelivery{time.Now(), p, took})
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	deliveries "github.com/kubeevents/kubeeventsreceiver/internal/delivery"
)

const (
	// lookEvery is the least time between two looks, and lookShare how many times longer than a look the
	// time to the next one is, up to lookAgain: looks take a fiftieth of a processor, and in a storm more.
	lookEvery, lookAgain, lookShare = 10 * time.Second, 20 * time.Second, 50
	// newsFor is the time after the last record for which something can become known: whether pods are
	// available, or a problem has not come back.
	newsFor = 15 * time.Minute
	// patienceOfLoop is the time that a pipeline may take: then the loop looks and saves again.
	patienceOfLoop = 10 * time.Second
	// firstLook is the time after a start in which the receiver delivers what happened meanwhile, and catchUp the
	// time after a failure of the receiver: nothing is over only because it is not there yet.
	firstLook, catchUp = 15 * time.Second, time.Minute
)

// watch follows problems and changes. A page may use its model, and what it remembers; the rest belongs to its loop.
type watch struct {
	settings  connector.Settings
	telemetry *metadata.TelemetryBuilder
	own       attribute.KeyValue
	logs      consumer.Logs    // nil: no pipeline wants problems and changes
	metrics   consumer.Metrics // nil: no pipeline wants the gauge
	store     *store           // nil: there is no storage

	// receiving is that of the extension kube_events_status. Without the extension, all is whole.
	receiving func() (isWhole, isStandby bool)

	live   *incident.Live
	newest atomic.Int64 // Unix time in ns when the last record came; before it, the start

	remembering sync.RWMutex // for the following, which only the loop changes
	tracker     problem.Tracker
	changes     problem.Changes

	outbox outbox
	gauge  gauge
	blind  time.Time     // until then, events may be missing
	looked time.Time     // when the last look began
	took   time.Duration // the last look
}

// isWanted reports whether a pipeline wants something of it.
func (w *watch) isWanted() bool { return w.logs != nil || w.metrics != nil }

// take notes records. It never waits for a look, the pipeline or the storage.
func (w *watch) take(ctx context.Context, records []*record.Record) {
	if !w.isWanted() || len(records) == 0 {
		return
	}
	now := time.Now()
	w.newest.Store(now.UnixNano())
	if missed := w.live.Take(incident.FactsOf(records, now, true)); missed > 0 {
		w.telemetry.KubeIncidentsRecordsMissed.Add(ctx, int64(missed), metric.WithAttributes(w.own))
	}
}

// run looks and delivers until ctx ends.
func (w *watch) run(ctx context.Context) {
	w.looked = time.Now().Add(firstLook - lookEvery)
	w.newest.CompareAndSwap(0, time.Now().UnixNano()) // What was known before a restart can be over.
	for ticks := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			ticks.Stop()
			return
		case <-ticks.C:
			w.tick(ctx, time.Now())
		}
	}
}

func (w *watch) tick(ctx context.Context, now time.Time) {
	isWhole, isStandby := w.receiving()
	if !isWhole {
		w.blind = now.Add(catchUp)
	}
	w.live.Use(func(m *incident.Model) {
		if !isStandby && w.isTime(now) {
			w.look(ctx, now, m)
		}
	})
	w.save(ctx)     // Each pipeline may hang.
	if !isStandby { // The leader says what goes on.
		w.emit(ctx, now)
	}
	w.save(ctx)
	w.deliver(ctx, now)
	w.save(ctx)
}

// save saves what has come, and what was reported.
func (w *watch) save(ctx context.Context) {
	w.live.AddUnlessUsed()
	w.store.save(ctx, w)
}

// emit emits the metric, if a pipeline wants it.
func (w *watch) emit(ctx context.Context, now time.Time) {
	if w.metrics == nil {
		return
	}
	sending, cancel := context.WithTimeout(ctx, patienceOfLoop)
	defer cancel()
	if err := w.gauge.emit(sending, now, w.metrics, w.settings.BuildInfo.Version); deliveries.IsPermanent(err) {
		w.settings.Logger.Error("The pipeline rejected points of k8s.problem.active; they are dropped", zap.Error(err))
	}
}

// isTime reports whether a look can show something new, and the last one is long enough ago.
func (w *watch) isTime(now time.Time) bool {
	hasNews := now.Sub(time.Unix(0, w.newest.Load())) < newsFor || len(w.tracker.Open) > 0
	return hasNews && now.Sub(w.looked) >= min(lookAgain, max(lookEvery, lookShare*w.took))
}

// look compares what the model shows with what was reported.
func (w *watch) look(ctx context.Context, now time.Time, m *incident.Model) {
	w.looked = now
	at := m.At(ctx, now, incident.Query{})
	problems, changes := at.Problems(), at.Changes()
	if ctx.Err() != nil {
		return // The look is not whole.
	}
	if w.took == 0 { // What was open before a restart is open.
		for _, p := range w.tracker.Open {
			w.note(p, at)
		}
	}
	w.remembering.Lock()
	isBlind := now.Before(w.blind)
	updates, news := w.tracker.Look(now, problems, isBlind), w.changes.Look(now, changes, isBlind)
	news = append(news, w.changes.LookBack(now, at.EndOf)...)
	w.remembering.Unlock()
	for _, u := range updates {
		w.telemetry.KubeIncidentsProblems.Add(ctx, 1, metric.WithAttributes(w.own, attribute.String("state", u.State)))
		w.note(&u.Problem, at)
		w.outbox.add(itemOf(&u, recordOfProblem(&u, at, now, w.settings.BuildInfo.Version)))
	}
	for _, n := range news {
		logs := recordOfChange(&n, at, now, w.settings.BuildInfo.Version)
		w.outbox.add(item{logs: logs, in: problem.SpaceOf(n.Key), change: n.ID, opens: n.State == problem.Happened})
	}
	w.took = time.Since(now)
}

// note notes a problem for the metric.
func (w *watch) note(p *problem.Problem, at *incident.At) {
	if w.gauge.note(p, at) && w.metrics != nil {
		w.settings.Logger.Warn("The metric k8s.problem.active has no room for more problems; the records have all", zap.Int("series", maxSeries))
	}
}

// Live implements statusextension.Incidents.
func (w *watch) Live() *incident.Live { return w.live }

// Known implements statusextension.Incidents.
func (w *watch) Known(series []string) (open *problem.Problem, previous []problem.Problem) {
	w.remembering.RLock()
	defer w.remembering.RUnlock()
	return w.tracker.Known(series)
}

// Problems implements statusextension.Incidents.
func (w *watch) Problems(since time.Time) []problem.Problem {
	w.remembering.RLock()
	defer w.remembering.RUnlock()
	return w.tracker.Problems(since)
}

// Changes implements statusextension.Incidents.
func (w *watch) Changes(since time.Time) []problem.Change {
	w.remembering.RLock()
	defer w.remembering.RUnlock()
	return w.changes.Since(since)
}

// deliver delivers what the pipelines want. What they reject waits.
func (w *watch) deliver(ctx context.Context, now time.Time) {
	sending, cancel := context.WithTimeout(ctx, patienceOfLoop)
	defer cancel()
	delivered, dropped, err := w.outbox.deliver(sending, now, w.logs)
	for i := range delivered {
		w.store.noteItem(&delivered[i], &w.changes)
	}
	if dropped > 0 {
		w.telemetry.KubeIncidentsRecordsDropped.Add(ctx, int64(dropped), metric.WithAttributes(w.own))
		w.settings.Logger.Error("The pipeline rejected records of problems and changes; they are dropped", zap.Int("records", dropped), zap.Error(err))
	} else if err != nil {
		w.settings.Logger.Warn("The pipeline rejected records of problems and changes; retrying", zap.Error(err))
	}
}

// end delivers once more what waits, and saves it.
func (w *watch) end(ctx context.Context) {
	if !w.isWanted() {
		return
	}
	w.live.Use(func(*incident.Model) {}) // What has come is saved, even if a pipeline hangs.
	w.store.save(ctx, w)
	w.outbox.retryAt = time.Time{}
	w.emit(ctx, time.Now())
	w.deliver(ctx, time.Now())
	w.store.save(ctx, w)
	if w.store != nil {
		w.store.close(ctx)
	}
}

// item is a record that waits for the pipeline, with what it reports.
type item struct {
	logs    plog.Logs
	in      problem.Space
	problem *problem.Problem // nil: it is about a change
	opens   bool             // it is the first one of the problem or change
	change  string           // its id
}

// itemOf returns the item of a problem. It has a copy: an Update keeps all that its look has shown.
func itemOf(u *problem.Update, logs plog.Logs) item {
	p := u.Problem
	return item{logs: logs, in: p.Space(), problem: &p, opens: u.State == problem.Opened}
}

// id is that of the problem or change.
func (i *item) id() string {
	if i.problem != nil {
		return i.problem.ID
	}
	return i.change
}

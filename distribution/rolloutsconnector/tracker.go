// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/rolloutsconnector/internal/metadata"
)

// tracker follows the rollouts of one configured connector.
type tracker struct {
	config    *Config
	settings  connector.Settings
	telemetry *metadata.TelemetryBuilder
	of        attribute.KeyValue // the attribute of all metrics
	traces    consumer.Traces    // nil: no pipeline wants spans
	stamps    bool               // there is an output of logs
	outputs   int                // that use the tracker; see instances

	once     sync.Once
	startErr error
	stop     context.CancelFunc // nil: it was not started
	loop     sync.WaitGroup

	mu      sync.Mutex
	model   *rollout.Model
	lacks   rollout.Lacks
	saved   *saved    // nil: there is no storage
	room    int       // how many revisions and pods fit, at least, before something must be forgotten
	started time.Time // no rollout ends before it had idle_timeout since then
	// open has the revisions that are not delivered yet.
	open map[rollout.Key]waiting
}

// waiting is how long a revision waits for its delivery.
type waiting struct {
	next    time.Time // when to look at it
	most    time.Time // when to deliver it, even if there are news all the time
	started time.Time // when a container last started
	changed time.Time // when the last record came, also one that is no news
	// again reports that it was delivered. It is delivered once more if it has changed, and if it is
	// complete or no more records come.
	again bool
}

// wait makes a revision wait for more news. News that come all the time do not extend the longest
// wait, which is twice idle_timeout.
func (t *tracker) wait(key rollout.Key, now time.Time) {
	w, ok := t.open[key]
	if !ok || w.again {
		w.most = now.Add(2 * t.config.IdleTimeout)
	}
	w.again = false
	w.next = now.Add(t.config.SettleTime)
	t.open[key] = w
}

func newTracker(settings connector.Settings, config *Config) (*tracker, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &tracker{
		config: config, settings: settings, telemetry: telemetry,
		of:    attribute.String("connector", settings.ID.String()),
		model: &rollout.Model{}, open: map[rollout.Key]waiting{},
	}, nil
}

// start reads what was saved, and starts the loop that delivers spans. Only the first call does.
func (t *tracker) start(ctx context.Context, host component.Host) error {
	t.once.Do(func() {
		if t.startErr = t.load(ctx, host); t.startErr != nil {
			return
		}
		if t.startErr = t.observe(); t.startErr != nil {
			return
		}
		running, stop := context.WithCancel(context.Background())
		t.stop = stop
		t.loop.Go(func() { t.deliverUntil(running) })
	})
	return t.startErr
}

func (t *tracker) load(ctx context.Context, host component.Host) (err error) {
	t.started = time.Now()
	if t.config.Storage == nil {
		return nil
	}
	t.saved, err = openStorage(ctx, host, *t.config.Storage, t.settings.ID, t.restore)
	if err != nil {
		return err
	}
	for workload, w := range t.model.Workloads {
		for revision, r := range w.Revisions {
			key := rollout.Key{Workload: workload, Revision: revision}
			if !r.Closed {
				t.wait(key, t.started)
			}
			t.noteRecord(key, t.started, true)
		}
	}
	t.evict(ctx)
	return nil
}

func (t *tracker) restore(e entry) {
	for _, key := range t.model.Join(e.Model) {
		_, r := t.model.Revision(key)
		r.News = max(r.News, e.At)
	}
}

func (t *tracker) observe() error {
	known := t.telemetry.RegisterKubeRolloutsKnownCallback(func(_ context.Context, o metric.Int64Observer) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		revisions, _ := t.model.Size()
		o.Observe(int64(revisions), metric.WithAttributes(t.of))
		return nil
	})
	if known != nil {
		return known
	}
	return t.telemetry.RegisterKubeRolloutsOpenCallback(func(_ context.Context, o metric.Int64Observer) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.Observe(int64(t.undelivered()), metric.WithAttributes(t.of))
		return nil
	})
}

// undelivered returns how many revisions were not delivered since their last news.
func (t *tracker) undelivered() (count int) {
	for _, w := range t.open {
		if !w.again {
			count++
		}
	}
	return count
}

// shutdown ends the loop. With storage, open rollouts go on after the restart. Without it, their
// spans are delivered now, as incomplete.
func (t *tracker) shutdown(ctx context.Context) error {
	defer t.telemetry.Shutdown()
	if t.stop != nil {
		t.stop()
		t.loop.Wait()
		if t.saved == nil {
			t.deliverRest(ctx)
		}
	}
	if t.saved == nil {
		return nil
	}
	return t.saved.close(ctx)
}

// take adds what the records say. It saves it first: what is acknowledged survives a restart. An
// error is retryable, and the receiver then delivers the records again.
func (t *tracker) take(ctx context.Context, logs plog.Logs) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	read, used := rollout.ReadNew(logs, t.model)
	t.lacks.Report(t.settings.Logger, metadata.Type.String(), logs)
	now := time.Now()
	if t.saved != nil && used > 0 {
		if err := t.saved.append(ctx, now, read); err != nil {
			return fmt.Errorf("storage: cannot save rollouts, the records are to be delivered again: %w", err)
		}
	}
	t.telemetry.KubeRolloutsRecords.Add(ctx, int64(used), metric.WithAttributes(t.of))
	for _, key := range t.model.Join(read) {
		_, r := t.model.Revision(key)
		r.News = now.UnixNano()
		t.wait(key, now)
	}
	t.noteRecords(read, now)
	t.evictIfFull(ctx, read)
	t.compact(ctx)
	return nil
}

// noteRecords notes for which revisions records came. Most are no news, but change the spans.
func (t *tracker) noteRecords(read *rollout.Model, now time.Time) {
	for workload, of := range read.Workloads {
		for revision, r := range of.Revisions {
			t.noteRecord(rollout.Key{Workload: workload, Revision: revision}, now, r.HasStarts())
		}
	}
}

// noteRecord makes a revision that was delivered wait again. A container that has started again can end
// again, or go on.
func (t *tracker) noteRecord(key rollout.Key, now time.Time, starts bool) {
	w, ok := t.open[key]
	if !ok {
		w = waiting{next: now.Add(t.config.IdleTimeout), again: true}
	}
	w.changed = now
	if starts {
		w.started = now
	}
	t.open[key] = w
}

func (t *tracker) stamp(logs plog.Logs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model.Stamp(logs)
}

// compact writes a snapshot now and then. Without it, the journal grows, but nothing is lost.
func (t *tracker) compact(ctx context.Context) {
	if t.saved == nil {
		return
	}
	if err := t.saved.compact(ctx, t.model); err != nil {
		t.settings.Logger.Warn("Cannot write a snapshot of rollouts; trying again with the next records", zap.Error(err))
	}
}

// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

const (
	// bytesPerRollout times max_rollouts bounds the memory.
	bytesPerRollout = 64 << 10
	// maxFormer is the maximum number of delivered parts that the tracker remembers of revisions
	// that it has forgotten.
	maxFormer = 100_000
	// shutdownTimeout is the time that Shutdown waits for the pipeline and the storage.
	shutdownTimeout = 10 * time.Second
)

// tracker follows the rollouts and the problems of one configured connector.
type tracker struct {
	config    *Config
	settings  connector.Settings
	telemetry *metadata.TelemetryBuilder
	own       attribute.KeyValue // the attribute of all metrics
	traces    consumer.Traces    // nil: no pipeline wants spans
	stamps    bool               // there is an output of logs

	once     sync.Once
	startErr error
	stop     context.CancelFunc // nil: it was not started
	loops    sync.WaitGroup
	saved    *saved    // nil: there is no storage
	watch    *watch    // problems and changes
	taker    *output   // the only output that takes the records: all get the same ones
	started  time.Time // no rollout ends before it had its time since then

	mu    sync.Mutex // guards the following; it is never held while something waits
	model *rollout.Model
	lacks bool                 // records lack attributes, and this was reported
	open  map[rollout.Key]look // the revisions that have parts to deliver
	// former has the parts that were delivered of revisions that are forgotten: a late record does not repeat them.
	former map[partOf]bool
	oldest []partOf // of former, in the order in which they are forgotten
}

// look schedules the next check of a revision.
type look struct {
	at       time.Time
	backoff  time.Duration // of the last rejection
	rejected time.Time     // when the pipeline first rejected its spans; zero: it did not
}

// partOf identifies a part of all revisions.
type partOf struct {
	key  rollout.Key
	part string
}

func newTracker(settings connector.Settings, config *Config) (*tracker, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	live := incident.NewLive(time.Now)
	live.Harmless = config.HarmlessReasons
	return &tracker{
		config: config, settings: settings, telemetry: telemetry,
		own:   attribute.String("connector", settings.ID.String()),
		watch: &watch{settings: settings, telemetry: telemetry, own: attribute.String("connector", settings.ID.String()), live: live, receiving: allIsWhole},
		model: &rollout.Model{}, open: map[rollout.Key]look{}, former: map[partOf]bool{},
	}, nil
}

// start reads what was saved, and starts the loops that save, and deliver spans. Only the first call does.
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
		t.loops.Go(func() { t.deliverUntil(running) })
		if t.watch.isWanted() {
			for _, extension := range host.GetExtensions() {
				if status, ok := extension.(*statusextension.Extension); ok {
					t.watch.receiving = status.Receiving
					status.Offer(t.settings.ID, t.watch)
				}
			}
			t.loops.Go(func() { t.watch.run(running) })
		}
		if t.saved != nil {
			t.loops.Go(func() { t.saved.run(running) })
		}
	})
	return t.startErr
}

// allIsWhole is for a Collector without the extension kube_events_status.
func allIsWhole() (isWhole, isStandby bool) { return true, false }

func (t *tracker) load(ctx context.Context, host component.Host) error {
	t.started = time.Now()
	t.watch.live.Begin(t.started)
	if t.config.Storage == nil {
		return nil
	}
	failed := func() {
		t.telemetry.KubeIncidentsStorageErrors.Add(context.Background(), 1, metric.WithAttributes(t.own))
	}
	if t.watch.isWanted() {
		var err error
		if t.watch.store, err = openStore(ctx, host, *t.config.Storage, t.settings.ID, t.watch, failed); err != nil {
			return err
		}
	}
	t.saved = &saved{
		log: log{logger: t.settings.Logger, failed: failed}, each: t.each, unsaved: &rollout.Model{}, wake: make(chan struct{}, 1),
	}
	err := t.saved.open(ctx, host, *t.config.Storage, t.settings.ID, func(m *rollout.Model) { t.model.Join(m) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.model.Workloads {
		t.openAll(key)
	}
	t.evict(ctx)
	return err
}

// each yields a copy of each workload.
func (t *tracker) each(yield func(*rollout.Model) bool) {
	t.mu.Lock()
	keys := slices.Collect(maps.Keys(t.model.Workloads))
	t.mu.Unlock()
	for _, key := range keys {
		if w := t.copyOf(key); w != nil && !yield(&rollout.Model{Workloads: map[string]*rollout.Workload{key: w}}) {
			return
		}
	}
}

// copyOf returns a copy of a workload; nil: it is forgotten.
func (t *tracker) copyOf(key string) *rollout.Workload {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.model.Workloads[key]; w != nil {
		return w.Clone()
	}
	return nil
}

func (t *tracker) observe() error {
	observed := func(count func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			o.Observe(int64(count()), metric.WithAttributes(t.own))
			return nil
		}
	}
	if err := t.telemetry.RegisterKubeIncidentsKnownCallback(observed(func() int { return t.model.Revisions() })); err != nil {
		return err
	}
	return t.telemetry.RegisterKubeIncidentsOpenCallback(observed(func() int { return len(t.open) }))
}

// shutdown ends the loops. With storage, open rollouts go on after the restart. Without it, their
// spans are delivered now, as they are. A pipeline or a storage that hangs does not stop it.
func (t *tracker) shutdown(ctx context.Context) error {
	defer t.telemetry.Shutdown()
	if t.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	t.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.loops.Wait()
		t.watch.end(ctx)
		if t.saved == nil {
			t.deliver(ctx, true)
		} else {
			t.saved.close(ctx)
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		t.settings.Logger.Warn("The pipeline or the storage hangs; the end does not wait for it")
	}
	return nil
}

// take adds what the records say. Whatever fails here costs traces, and never a record.
func (t *tracker) take(ctx context.Context, logs plog.Logs) {
	records := record.Read(logs, t.config.HarmlessReasons...)
	t.watch.take(ctx, records)
	if t.traces == nil && !t.stamps {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	read, used := rollout.Read(records, t.model)
	if len(read.Lacks) > 0 && !t.lacks {
		t.lacks = true
		t.settings.Logger.Warn("Records lack attributes that rollouts need; they are in no trace. Enable these attributes in "+
			"resource_attributes of the receiver, and keep them in all processors", zap.Strings("attributes", read.Lacks))
	}
	t.telemetry.KubeIncidentsRecords.Add(ctx, int64(used), metric.WithAttributes(t.own))
	if used == 0 {
		t.model.Join(read)
		return
	}
	read.ReceivedAt(time.Now().UnixNano())
	t.saved.append(read)
	for _, key := range t.model.Join(read) {
		t.openAll(key.Workload)
	}
	t.evict(ctx)
}

// openAll looks soon at all revisions of a workload that have parts to deliver: what happens to one can prove
// something about another one.
func (t *tracker) openAll(workload string) {
	soon := time.Now().Add(max(interval, t.config.SettleTime))
	for name, r := range t.model.Workloads[workload].Revisions {
		key := rollout.Key{Workload: workload, Revision: name}
		if l, ok := t.open[key]; !r.Closed && (!ok || l.backoff == 0 && l.at.After(soon)) {
			l.at = soon
			t.open[key] = l
		}
	}
}

func (t *tracker) evict(ctx context.Context) {
	t.model.Evict(t.config.MaxRollouts*bytesPerRollout, func(key rollout.Key, r *rollout.Revision) {
		state := "closed"
		if !r.Closed {
			state = "open"
		}
		t.telemetry.KubeIncidentsEvicted.Add(ctx, 1, metric.WithAttributes(t.own, attribute.String("state", state)))
		delete(t.open, key)
		for part := range r.Sent {
			t.former[partOf{key, part}] = true
			t.oldest = append(t.oldest, partOf{key, part})
		}
	})
	for ; len(t.oldest) > maxFormer; t.oldest = t.oldest[1:] {
		delete(t.former, t.oldest[0])
	}
}

func (t *tracker) stamp(logs plog.Logs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model.Stamp(logs)
}

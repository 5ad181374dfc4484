// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Telemetry is the receiver's own telemetry. Its methods may be called concurrently.
type Telemetry struct {
	// Operations records the attempts to deliver.
	Operations *receiverhelper.ObsReport

	builder *metadata.TelemetryBuilder

	waiting      atomic.Int64 // events that arrived and are not dealt with yet
	hits         atomic.Int64 // objects that were answered from memory, not reported yet
	unsavedSince atomic.Int64 // time of the last checkpoint in nanoseconds since 1970; 0: it holds everything
}

func newTelemetry(settings receiver.Settings) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, Transport: "http", LongLivedCtx: true, ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	return &Telemetry{builder: builder, Operations: report}, nil
}

// Shutdown ends the measurements.
func (t *Telemetry) Shutdown() { t.builder.Shutdown() }

// Waiting returns how many events have arrived and are not dealt with yet.
func (t *Telemetry) Waiting() int64 { return t.waiting.Load() }

// Measure registers what is measured when it is asked for. owners is nil if owners are not looked up.
// The error is that of the meter provider.
func (t *Telemetry) Measure(owners *resolver.Resolver) error {
	err := t.builder.RegisterKubeEventsWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(t.waiting.Load())
		return nil
	})
	if err != nil {
		return err
	}
	err = t.builder.RegisterKubeEventsCheckpointAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(t.checkpointAge(time.Now()).Seconds())
		return nil
	})
	if err != nil || owners == nil {
		return err
	}
	return t.builder.RegisterKubeEventsOwnerCacheSizeCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(owners.Len()))
		return nil
	})
}

func (t *Telemetry) checkpointAge(now time.Time) time.Duration {
	last := t.unsavedSince.Load()
	if last == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, last))
}

// Arrived implements watch.Observer.
func (t *Telemetry) Arrived() { t.waiting.Add(1) }

// DealtWith takes the events of a batch from those that wait.
func (t *Telemetry) DealtWith(batch []watch.Change) {
	for _, change := range batch {
		if change.Event != nil {
			t.waiting.Add(-1)
		}
	}
}

// Accounted counts the events that were received, and those of them that the filters exclude.
func (t *Telemetry) Accounted(received, filtered int64) {
	t.builder.KubeEventsReceived.Add(context.Background(), received)
	t.builder.KubeEventsFiltered.Add(context.Background(), filtered)
}

// Resolved counts how far the owner chains of the observations go.
func (t *Telemetry) Resolved(observations []observation.Observation) {
	t.builder.KubeEventsOwnerCacheHits.Add(context.Background(), t.hits.Swap(0))
	counts := map[resolver.Resolution]int64{}
	for i := range observations {
		counts[observations[i].Chain.Resolution]++
	}
	for resolution, count := range counts {
		if resolution != "" {
			t.builder.KubeEventsOwnerResolutions.Add(context.Background(), count,
				metric.WithAttributes(attribute.String("resolution", string(resolution))))
		}
	}
}

// Accepted implements delivery.Observer.
func (t *Telemetry) Accepted(records int) {
	t.builder.KubeEventsAccepted.Add(context.Background(), int64(records))
}

// Delivered measures how long the records took since the receiver saw them.
func (t *Telemetry) Delivered(records []observation.Observation, now time.Time) {
	for i := range records {
		t.builder.KubeEventsLatency.Record(context.Background(), now.Sub(records[i].SeenAt).Seconds())
	}
}

// Rejected implements delivery.Observer.
func (t *Telemetry) Rejected(records int, _ error) {
	t.builder.KubeEventsRefused.Add(context.Background(), int64(records))
}

// Dropped implements delivery.Observer.
func (t *Telemetry) Dropped(records int, _ error, _ bool) {
	t.builder.KubeEventsDropped.Add(context.Background(), int64(records))
}

// Unsaved notes that there is something that the checkpoint of that time does not hold.
func (t *Telemetry) Unsaved(checkpoint time.Time) { t.unsavedSince.Store(checkpoint.UnixNano()) }

// Saved notes that the checkpoint holds everything.
func (t *Telemetry) Saved() { t.unsavedSince.Store(0) }

// NotSaved counts a checkpoint that could not be saved.
func (t *Telemetry) NotSaved() { t.builder.KubeEventsCheckpointFailures.Add(context.Background(), 1) }

func (t *Telemetry) restarted(cause watch.Cause) {
	t.builder.KubeEventsWatchRestarts.Add(context.Background(), 1, metric.WithAttributes(attribute.String("cause", string(cause))))
}

// LookupDone implements resolver.Observer.
func (t *Telemetry) LookupDone(result string, took time.Duration) {
	t.builder.KubeEventsOwnerLookups.Add(context.Background(), 1, metric.WithAttributes(attribute.String("result", result)))
	t.builder.KubeEventsOwnerLookupDuration.Record(context.Background(), took.Seconds())
}

// CacheHit implements resolver.Observer.
func (t *Telemetry) CacheHit() { t.hits.Add(1) }

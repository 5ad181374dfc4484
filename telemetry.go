// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

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

// telemetry is what the receiver says of itself. Its methods may be called concurrently.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	report  *receiverhelper.ObsReport

	waiting      atomic.Int64 // events that arrived and are not dealt with yet
	hits         atomic.Int64 // objects that were answered from memory, not reported yet
	unsavedSince atomic.Int64 // time of the last checkpoint in nanoseconds since 1970; 0: it holds everything
}

func newTelemetry(settings receiver.Settings) (*telemetry, error) {
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
	return &telemetry{builder: builder, report: report}, nil
}

// observe registers what is measured when it is asked for.
func (t *telemetry) observe(owners *resolver.Resolver) error {
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

func (t *telemetry) checkpointAge(now time.Time) time.Duration {
	last := t.unsavedSince.Load()
	if last == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, last))
}

func (t *telemetry) arrived() { t.waiting.Add(1) }

// dealtWith takes the events of a batch from those that wait.
func (t *telemetry) dealtWith(batch []watch.Change) {
	for _, change := range batch {
		if change.Event != nil {
			t.waiting.Add(-1)
		}
	}
}

func (t *telemetry) accounted(received, filtered int64) {
	t.builder.KubeEventsReceived.Add(context.Background(), received)
	t.builder.KubeEventsFiltered.Add(context.Background(), filtered)
}

func (t *telemetry) resolved(observations []observation.Observation) {
	t.builder.KubeEventsOwnerCacheHits.Add(context.Background(), t.hits.Swap(0))
	counts := map[resolver.Resolution]int64{}
	for i := range observations {
		counts[observations[i].Chain.Resolution]++
	}
	for resolution, count := range counts {
		if resolution != "" {
			t.builder.KubeEventsOwnerResolutions.Add(context.Background(), count,
				metric.WithAttributes(attribute.String("k8s.owner.resolution", string(resolution))))
		}
	}
}

func (t *telemetry) accepted(records int) {
	t.builder.KubeEventsAccepted.Add(context.Background(), int64(records))
}

// delivered measures how long the records took since the receiver saw them.
func (t *telemetry) delivered(records []observation.Observation, now time.Time) {
	for i := range records {
		t.builder.KubeEventsLatency.Record(context.Background(), now.Sub(records[i].SeenAt).Seconds())
	}
}

func (t *telemetry) refused(records int) {
	t.builder.KubeEventsRefused.Add(context.Background(), int64(records))
}

func (t *telemetry) dropped(records int) {
	t.builder.KubeEventsDropped.Add(context.Background(), int64(records))
}

// unsaved notes that there is something that the checkpoint of that time does not hold.
func (t *telemetry) unsaved(checkpoint time.Time) { t.unsavedSince.Store(checkpoint.UnixNano()) }

func (t *telemetry) saved() { t.unsavedSince.Store(0) }

func (t *telemetry) notSaved() { t.builder.KubeEventsCheckpointFailures.Add(context.Background(), 1) }

func (t *telemetry) restarted(cause watch.Cause) {
	t.builder.KubeEventsWatchRestarts.Add(context.Background(), 1, metric.WithAttributes(attribute.String("cause", string(cause))))
}

// LookupDone implements resolver.Observer.
func (t *telemetry) LookupDone(result string, took time.Duration) {
	t.builder.KubeEventsOwnerLookups.Add(context.Background(), 1, metric.WithAttributes(attribute.String("result", result)))
	t.builder.KubeEventsOwnerLookupDuration.Record(context.Background(), took.Seconds())
}

// CacheHit implements resolver.Observer.
func (t *telemetry) CacheHit() { t.hits.Add(1) }

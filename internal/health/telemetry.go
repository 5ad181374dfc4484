// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"errors"
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

// WaitCause is why a batch waits.
type WaitCause = metadata.AttributeWaitCause

// The causes. Each is measured for each batch.
const (
	WaitCauseGathering  = metadata.AttributeWaitCauseGathering
	WaitCauseLookups    = metadata.AttributeWaitCauseLookups
	WaitCauseDelivering = metadata.AttributeWaitCauseDelivering
)

// Telemetry is the receiver's own telemetry. Its methods may be called concurrently.
type Telemetry struct {
	// Operations records the attempts to deliver.
	Operations *receiverhelper.ObsReport

	builder *metadata.TelemetryBuilder
	// id has the attribute receiver, so that the receivers of one Collector have their own series.
	id metric.MeasurementOption
	// waits are the options to record a wait. They are made once, because sets of attributes are
	// sorted and hashed.
	waits map[WaitCause][]metric.RecordOption

	waiting      atomic.Int64 // events that arrived and are not processed yet
	hits         atomic.Int64 // objects that came from the cache; not reported yet
	series       atomic.Int64 // of the metric, without the overflow series
	unsavedSince atomic.Int64 // Unix time in ns of the last checkpoint; 0: everything is saved
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
	id := attribute.String("receiver", settings.ID.String())
	waits := map[WaitCause][]metric.RecordOption{}
	for name, cause := range metadata.MapAttributeWaitCause {
		waits[cause] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(id, attribute.String("cause", name)))}
	}
	return &Telemetry{builder: builder, Operations: report, id: metric.WithAttributeSet(attribute.NewSet(id)), waits: waits}, nil
}

// Shutdown ends the measurements.
func (t *Telemetry) Shutdown() { t.builder.Shutdown() }

// Measure registers the asynchronous metrics: whether this process leads, series.max, and the
// objects that the resolver remembers. If it is nil, owners are not looked up. The error is that of
// the meter provider.
func (t *Telemetry) Measure(leads func() bool, seriesLimit int, owners *resolver.Resolver) error {
	b := t.builder
	errs := errors.Join(
		b.RegisterKubeEventsWaitingCallback(t.observed(t.waiting.Load)),
		b.RegisterKubeEventsSeriesCallback(t.observed(t.series.Load)),
		b.RegisterKubeEventsSeriesLimitCallback(t.observed(func() int64 { return int64(seriesLimit) })),
		b.RegisterKubeEventsLeadingCallback(t.observed(func() int64 {
			if leads() {
				return 1
			}
			return 0
		})),
		b.RegisterKubeEventsCheckpointAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			age := time.Duration(0)
			if last := t.unsavedSince.Load(); last != 0 {
				age = time.Since(time.Unix(0, last))
			}
			o.Observe(age.Seconds(), t.id)
			return nil
		}),
	)
	if owners == nil {
		return errs
	}
	return errors.Join(errs, b.RegisterKubeEventsOwnerCacheSizeCallback(t.observed(func() int64 { return int64(owners.Len()) })))
}

// observed returns a callback that reads a value.
func (t *Telemetry) observed(value func() int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(value(), t.id)
		return nil
	}
}

// Arrived implements watch.Observer.
func (t *Telemetry) Arrived() { t.waiting.Add(1) }

// Withdrawn implements watch.Observer.
func (t *Telemetry) Withdrawn() { t.waiting.Add(-1) }

// DealtWith removes the events of a batch from those that wait.
func (t *Telemetry) DealtWith(batch []watch.Change) {
	for _, change := range batch {
		if change.Event != nil {
			t.waiting.Add(-1)
		}
	}
}

// Waited measures how long a batch waited for one cause.
func (t *Telemetry) Waited(cause WaitCause, d time.Duration) {
	t.builder.KubeEventsBatchWait.Record(context.Background(), d.Seconds(), t.waits[cause]...)
}

// Accounted counts received events, and how many of them the filters exclude.
func (t *Telemetry) Accounted(received, filtered int64) {
	t.builder.KubeEventsReceived.Add(context.Background(), received, t.id)
	t.builder.KubeEventsFiltered.Add(context.Background(), filtered, t.id)
}

// Resolved counts the resolutions of the observations' owner chains.
func (t *Telemetry) Resolved(observations []observation.Observation) {
	t.builder.KubeEventsOwnerCacheHits.Add(context.Background(), t.hits.Swap(0), t.id)
	counts := map[resolver.Resolution]int64{}
	for i := range observations {
		counts[observations[i].Chain.Resolution]++
	}
	for resolution, count := range counts {
		if resolution != "" {
			t.builder.KubeEventsOwnerResolutions.Add(context.Background(), count, t.id,
				metric.WithAttributes(attribute.String("resolution", string(resolution))))
		}
	}
}

// Counted notes how many series the metric has, and counts the observations that went to the
// overflow series.
func (t *Telemetry) Counted(series, overflow int) {
	t.series.Store(int64(series))
	t.builder.KubeEventsSeriesOverflow.Add(context.Background(), int64(overflow), t.id)
}

// Accepted implements delivery.Observer.
func (t *Telemetry) Accepted(records int) {
	t.builder.KubeEventsAccepted.Add(context.Background(), int64(records), t.id)
}

// Delivered measures the time since the receiver saw the records.
func (t *Telemetry) Delivered(records []observation.Observation, now time.Time) {
	options := []metric.RecordOption{t.id} // Not made again for each record.
	for i := range records {
		t.builder.KubeEventsLatency.Record(context.Background(), now.Sub(records[i].SeenAt).Seconds(), options...)
	}
}

// Rejected implements delivery.Observer.
func (t *Telemetry) Rejected(records int) {
	t.builder.KubeEventsRefused.Add(context.Background(), int64(records), t.id)
}

// Dropped implements delivery.Observer.
func (t *Telemetry) Dropped(records int) {
	t.builder.KubeEventsDropped.Add(context.Background(), int64(records), t.id)
}

// Unsaved records that something is not in the last checkpoint, which was saved at that time.
func (t *Telemetry) Unsaved(checkpoint time.Time) { t.unsavedSince.Store(checkpoint.UnixNano()) }

// Saved records that everything is in the checkpoint.
func (t *Telemetry) Saved() { t.unsavedSince.Store(0) }

// NotSaved counts a checkpoint that could not be saved.
func (t *Telemetry) NotSaved() {
	t.builder.KubeEventsCheckpointFailures.Add(context.Background(), 1, t.id)
}

// LookupDone implements resolver.Observer.
func (t *Telemetry) LookupDone(err error, took time.Duration) {
	result := cmp.Or(string(resolver.ResolutionOf(err)), "found")
	t.builder.KubeEventsOwnerLookups.Add(context.Background(), 1, t.id, metric.WithAttributes(attribute.String("result", result)))
	t.builder.KubeEventsOwnerLookupDuration.Record(context.Background(), took.Seconds(), t.id)
}

// CacheHit implements resolver.Observer.
func (t *Telemetry) CacheHit() { t.hits.Add(1) }

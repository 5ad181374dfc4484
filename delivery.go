// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// deliver offers the records to the logs pipeline until it takes them, or refuses them for good, or retry_on_failure
// gives up; then it returns true. It returns false if stop ends while they are refused for now: they are not delivered,
// and so must not be committed.
func (r *eventsReceiver) deliver(stop, work context.Context, records []observation.Observation) bool {
	if r.logs == nil {
		return true
	}
	// What a new leader inherits, or the end of many windows gives, may be far more than a batch.
	for part := range slices.Chunk(records, batchChanges) {
		if !r.deliverPart(stop, work, part) {
			return false
		}
	}
	return true
}

func (r *eventsReceiver) deliverPart(stop, work context.Context, records []observation.Observation) bool {
	logs := r.convert(records)
	pause := r.newBackoff()
	began := time.Now()
	for r.awaitCertainty(stop) {
		count := logs.LogRecordCount()
		err := r.offer(work, logs)
		if err == nil {
			r.delivered(records, count)
			return true
		}
		if r.isFinal(err, time.Since(began)) {
			r.drop(count, err)
			return true
		}
		r.refuse(count, err)
		if !sleep(stop, pause.NextBackOff()) {
			r.settings.Logger.Warn("Stopped while the pipeline refuses events; they are not delivered", zap.Int("records", count), zap.Error(err))
			return false
		}
		logs = r.remaining(err, records)
	}
	return false
}

func (r *eventsReceiver) convert(records []observation.Observation) plog.Logs {
	return r.converter.Convert(r.cluster.UID(), records)
}

func (r *eventsReceiver) offer(ctx context.Context, logs plog.Logs) error {
	// The consumer owns the logs from here on, so their number is taken before.
	count := logs.LogRecordCount()
	ctx = r.telemetry.report.StartLogsOp(ctx)
	err := r.logs.ConsumeLogs(ctx, logs)
	r.telemetry.report.EndLogsOp(ctx, metadata.Type.String(), count, err)
	return err
}

// isFinal says whether offering the records again is of no use, or no longer wanted.
func (r *eventsReceiver) isFinal(err error, elapsed time.Duration) bool {
	retry := r.config.RetryOnFailure
	return consumererror.IsPermanent(err) || !retry.Enabled || retry.MaxElapsedTime > 0 && elapsed > retry.MaxElapsedTime
}

// remaining is what to offer next: what the consumer says it did not take, or else everything, converted anew because
// a consumer may have changed what it was given.
func (r *eventsReceiver) remaining(err error, records []observation.Observation) plog.Logs {
	var partial consumererror.Logs
	if errors.As(err, &partial) {
		return partial.Data()
	}
	return r.convert(records)
}

func (r *eventsReceiver) newBackoff() *backoff.ExponentialBackOff {
	retry := r.config.RetryOnFailure
	return &backoff.ExponentialBackOff{
		InitialInterval:     retry.InitialInterval,
		RandomizationFactor: retry.RandomizationFactor,
		Multiplier:          retry.Multiplier,
		MaxInterval:         retry.MaxInterval,
	}
}

func (r *eventsReceiver) delivered(records []observation.Observation, count int) {
	r.telemetry.accepted(records, count)
	if r.refused {
		r.refused = false
		r.settings.Logger.Info("The pipeline takes events again")
	}
}

// refuse and drop log the first of a row only; all are counted.
func (r *eventsReceiver) refuse(count int, err error) {
	r.telemetry.refused(count)
	if !r.refused {
		r.refused = true
		r.settings.Logger.Warn("The pipeline refuses events for now; they are offered again, and the API server keeps what comes after them", zap.Error(err))
	}
}

func (r *eventsReceiver) drop(count int, err error) {
	r.telemetry.dropped(count)
	if !r.refused || !consumererror.IsPermanent(err) {
		r.refused = true
		r.settings.Logger.Error("The pipeline refused events; they are dropped from the logs and stay in the metric", zap.Int("records", count), zap.Error(err))
	}
}

// sleep returns false if the context ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

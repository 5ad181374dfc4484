// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
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

const (
	// rejectedLong is how long the pipeline may keep a batch waiting before the component's status reports it.
	rejectedLong = time.Minute
	// logRejection is how often the log repeats the pipeline's error.
	logRejection = 5 * time.Minute
	// logsPipeline is the part of the receiver that the component's status names.
	logsPipeline = "the logs pipeline"
)

func (r *eventsReceiver) deliverPart(stop, work context.Context, records []observation.Observation) bool {
	whole := func() plog.Logs { return r.convert(records) }
	logs := whole()
	pause := r.newBackoff()
	began := time.Now()
	long := time.AfterFunc(rejectedLong, func() {
		r.status.failed(logsPipeline, "rejecting", "The pipeline has accepted no events for a minute; retrying until it does", errNothingAccepted)
	})
	defer long.Stop()
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
		whole = remaining(err, whole)
		logs = whole()
	}
	return false
}

var errNothingAccepted = fmt.Errorf("the logs pipeline has accepted no events for %v: look at the exporters' errors", rejectedLong)

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

// isFinal reports whether a retry is of no use, or not wanted.
func (r *eventsReceiver) isFinal(err error, elapsed time.Duration) bool {
	retry := r.config.RetryOnFailure
	return isPermanent(err) || !retry.Enabled || retry.MaxElapsedTime > 0 && elapsed > retry.MaxElapsedTime
}

// isPermanent reports whether every pipeline that rejected the data did so with a permanent error. While one of them may
// still accept it, the batch is retried; what another rejects for ever costs that one nothing.
func isPermanent(err error) bool {
	for _, leaf := range leaves(err) {
		if !consumererror.IsPermanent(leaf) {
			return false
		}
	}
	return true
}

// leaves returns the errors that a fan-out to several pipelines has joined. An error that joins none is its own leaf; what a
// pipeline joins deeper within its error is that pipeline's.
func leaves(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// remaining returns what makes the data to deliver next, as often as it is rejected: a consumer may change what it is given.
// If one pipeline alone rejected a part, that is the part, and otherwise what was to be delivered before.
func remaining(err error, before func() plog.Logs) func() plog.Logs {
	var partial consumererror.Logs
	if len(leaves(err)) != 1 || !errors.As(err, &partial) {
		return before
	}
	part := partial.Data()
	return func() plog.Logs {
		again := plog.NewLogs()
		part.CopyTo(again)
		return again
	}
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
		r.settings.Logger.Info("The pipeline accepts events again")
	}
	r.status.recovered(logsPipeline, "The pipeline accepts events again")
}

// refuse and drop log the first rejection in a row, and refuse one every 5 minutes; all are counted.
func (r *eventsReceiver) refuse(count int, err error) {
	r.telemetry.refused(count)
	r.refusals++
	if !r.refused || time.Since(r.refusalLogged) >= logRejection {
		r.settings.Logger.Warn("The pipeline rejected events with a retryable error; retrying. Later events stay in the API server",
			zap.Int("rejections", r.refusals), zap.Error(err))
		r.refused, r.refusalLogged, r.refusals = true, time.Now(), 0
	}
}

func (r *eventsReceiver) drop(count int, err error) {
	r.telemetry.dropped(count)
	if !r.refused || !isPermanent(err) {
		r.refused, r.refusalLogged = true, time.Now()
		r.settings.Logger.Error("The pipeline rejected events that are not retried; they are dropped from the logs and stay in the metric",
			zap.Int("records", count), zap.Error(err))
	}
	r.status.forget(logsPipeline)
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

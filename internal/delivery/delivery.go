// SPDX-License-Identifier: Apache-2.0

// Package delivery delivers logs to the pipelines until they are accepted, or rejected with a
// permanent error, or until retry_on_failure gives up.
package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

const (
	// rejectedLong is the time without an accepted request after which the observer is called.
	rejectedLong = time.Minute
	// logInterval is the time after which the log repeats that the pipeline rejects or drops logs.
	logInterval = 5 * time.Minute
)

// Request is a request to the pipelines.
type Request struct {
	Records int
	// Logs returns a fresh copy, since a consumer may change the logs that it gets.
	Logs func() plog.Logs
}

// Outcome is the result of a delivery.
type Outcome int

// The outcomes of a delivery.
const (
	// OutcomeAccepted means that the pipeline has accepted the request.
	OutcomeAccepted Outcome = iota + 1
	// OutcomeDropped means that a pipeline rejected the request with a permanent error, or that
	// retry_on_failure gave up. The request is not to be delivered again.
	OutcomeDropped
	// OutcomeStopped means that the request is still to be delivered: the caller stops, or may no longer
	// deliver.
	OutcomeStopped
)

// Observer observes deliveries. Its methods are never called concurrently. The goroutine that
// delivers calls them; only RejectingLong may also come from a timer, since the pipeline may keep
// that goroutine waiting. The Deliverer writes the log, so an observer only counts and reports.
type Observer interface {
	// Accepted observes records that the pipeline accepted. Each record of a request that is
	// accepted or dropped is observed once as accepted or dropped.
	Accepted(records int)
	// Rejected observes records that the pipeline rejected with a retryable error. They may be
	// rejected many times.
	Rejected(records int)
	// Dropped observes records that are not delivered again.
	Dropped(records int)
	// RejectingLong is called once when the pipeline has accepted nothing for a minute.
	RejectingLong(since time.Duration)
	// AcceptingAgain is called once after RejectingLong, when the pipeline accepts a request, or
	// when the caller calls Forget.
	AcceptingAgain()
}

// Operations records the attempts. *receiverhelper.ObsReport implements it.
type Operations interface {
	StartLogsOp(ctx context.Context) context.Context
	EndLogsOp(ctx context.Context, format string, records int, err error)
}

// Settings are the settings of a Deliverer. Callers must set all of them.
type Settings struct {
	Next       consumer.Logs
	Retry      configretry.BackOffConfig
	Logger     *zap.Logger
	Observer   Observer
	Operations Operations
	// Format is the format in the names of the operations.
	Format string
}

// Deliverer delivers requests one after the other. It knows for how long the pipeline has accepted
// nothing, over many requests.
type Deliverer struct {
	settings Settings

	// mu guards the following, and is held while the observer is called.
	mu sync.Mutex
	// since is the start of the first delivery after the last acceptance. Zero means that there was
	// none.
	since time.Time
	// long reports whether RejectingLong was called since the last acceptance.
	long                bool
	rejections, dropped occurrences
	// hasAccepted reports whether the pipeline has ever accepted a request.
	hasAccepted bool
}

// New returns a Deliverer that has delivered nothing yet.
func New(settings Settings) *Deliverer { return &Deliverer{settings: settings} }

// Deliver delivers the request until it is accepted or dropped. What a pipeline accepted of it before
// it rejected the rest is delivered again. An attempt runs on the context drain, until the pipeline
// returns. If stop has ended, Deliver makes at most one attempt. If drain has ended, it makes none.
// Callers must not call Deliver concurrently.
func (d *Deliverer) Deliver(stop, drain context.Context, request Request) Outcome {
	d.begin() // Before the watchdog starts, which would find too short a time otherwise.
	watchdog := time.AfterFunc(rejectedLong, d.check)
	defer watchdog.Stop()
	maxTries := uint(0) // No limit.
	if !d.settings.Retry.Enabled {
		maxTries = 1
	}
	var rejection error // of the last attempt
	outcome, err := backoff.Retry(stop,
		func() (outcome Outcome, retry error) {
			if outcome, rejection = d.attempt(drain, request); rejection != nil && drain.Err() == nil {
				retry = errRetryable
			}
			return outcome, retry
		},
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval:     d.settings.Retry.InitialInterval,
			RandomizationFactor: d.settings.Retry.RandomizationFactor,
			Multiplier:          d.settings.Retry.Multiplier,
			MaxInterval:         d.settings.Retry.MaxInterval,
		}),
		backoff.WithMaxTries(maxTries),
		backoff.WithMaxElapsedTime(d.settings.Retry.MaxElapsedTime), // 0: no limit.
		backoff.WithNotify(func(error, time.Duration) { d.retrying(request.Records, rejection) }))
	switch {
	case errors.Is(err, errRetryable):
		d.drop(request.Records, rejection, false)
		return OutcomeDropped
	case rejection != nil:
		d.settings.Logger.Warn("Stopped while the pipeline rejects events",
			zap.Int("records", request.Records), zap.Error(rejection))
	}
	return outcome
}

// Forget resets what the Deliverer knows of the pipeline. Callers must call it at the end of a term
// of leading: a standby delivers nothing, so its status must not report the pipeline.
func (d *Deliverer) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resetLocked()
}

// errRetryable replaces the pipeline's error in backoff.Retry. A component may use package backoff
// too, and Retry would obey a backoff.PermanentError anywhere in the pipeline's error.
var errRetryable = errors.New("retryable")

// attempt attempts to deliver once. It returns the pipeline's error if the request is still to be
// delivered.
func (d *Deliverer) attempt(drain context.Context, request Request) (Outcome, error) {
	if drain.Err() != nil {
		return OutcomeStopped, nil //nolint:nilerr // The outcome says that the caller stops.
	}
	ctx := d.settings.Operations.StartLogsOp(drain)
	err := d.settings.Next.ConsumeLogs(ctx, request.Logs())
	d.settings.Operations.EndLogsOp(ctx, d.settings.Format, request.Records, err)
	switch {
	case err == nil:
		d.accept(request.Records)
		return OutcomeAccepted, nil
	case drain.Err() == nil && IsPermanent(err): // The end of drain may cause a permanent error.
		d.drop(request.Records, err, true)
		return OutcomeDropped, nil
	default:
		d.reject(request.Records)
		return OutcomeStopped, err
	}
}

// begin starts the clock of the time without acceptance.
func (d *Deliverer) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = time.Now()
	}
}

func (d *Deliverer) reject(records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings.Observer.Rejected(records)
}

// retrying logs that the pipeline rejected the request and will get it again.
func (d *Deliverer) retrying(records int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, due := d.rejections.add(1); due {
		d.settings.Logger.Warn("The pipeline rejected events with a retryable error; retrying. Later events stay in the API server",
			zap.Int("rejections", n), zap.Int("records", records), zap.Error(err))
	}
	d.checkLocked()
}

func (d *Deliverer) accept(records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings.Observer.Accepted(records)
	switch {
	case !d.hasAccepted: // Users look for this line, whatever happened before.
		d.settings.Logger.Info("First records accepted by the pipeline", zap.Int("records", records))
	case d.long || d.rejections.any() || d.dropped.any():
		d.settings.Logger.Info("The pipeline accepts events again")
	}
	d.hasAccepted = true
	d.resetLocked()
}

func (d *Deliverer) drop(records int, err error, permanent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings.Observer.Dropped(records)
	if n, due := d.dropped.add(records); due {
		d.settings.Logger.Error("The pipeline rejected events that are not retried; they are dropped from the logs and stay in the metric",
			zap.Int("records", n), zap.Bool("permanent", permanent), zap.Error(err))
	}
	d.checkLocked()
}

func (d *Deliverer) check() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checkLocked()
}

// checkLocked reports that the pipeline has accepted nothing for long, once.
func (d *Deliverer) checkLocked() {
	if d.long || d.since.IsZero() || time.Since(d.since) < rejectedLong {
		return
	}
	d.long = true
	if !d.rejections.any() && !d.dropped.any() {
		d.settings.Logger.Warn("The pipeline has neither accepted nor rejected events for a minute; waiting for it")
	}
	d.settings.Observer.RejectingLong(time.Since(d.since))
}

func (d *Deliverer) resetLocked() {
	if d.long {
		d.settings.Observer.AcceptingAgain()
	}
	d.since, d.long, d.rejections, d.dropped = time.Time{}, false, occurrences{}, occurrences{}
}

// occurrences counts consecutive occurrences for the log. The log has the first one at once, and
// repeats the others every logInterval.
type occurrences struct {
	logged   time.Time // zero: nothing has happened
	unlogged int
}

// add reports whether a log message is due. If so, it returns the number of occurrences since the
// last one.
func (o *occurrences) add(n int) (unlogged int, due bool) {
	o.unlogged += n
	if time.Since(o.logged) < logInterval {
		return 0, false
	}
	unlogged = o.unlogged
	o.logged, o.unlogged = time.Now(), 0
	return unlogged, true
}

func (o *occurrences) any() bool { return !o.logged.IsZero() }

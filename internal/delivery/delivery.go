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

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// rejectedLong is how long the pipeline may accept nothing before the observer is called.
	rejectedLong = time.Minute
	// logInterval is how often the log repeats that the pipeline rejects or drops logs.
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
	// Accepted means that the request is delivered. Several pipelines may have accepted its parts
	// one after the other.
	Accepted Outcome = iota + 1
	// Dropped means that a pipeline rejected records with a permanent error, or that
	// retry_on_failure gave up. The request is not to be delivered again.
	Dropped
	// Stopped means that the request is still to be delivered: the caller stops, or may no longer
	// deliver.
	Stopped
)

// Observer observes deliveries. Its methods are never called concurrently. The goroutine that
// delivers calls them; only RejectingLong may also come from a timer, since the pipeline may keep
// that goroutine waiting. The Deliverer writes the log, so an observer only counts and reports.
type Observer interface {
	// Accepted observes records that the pipeline accepted. Each record of a request that is
	// accepted or dropped is observed once as accepted or dropped.
	Accepted(records int)
	// Rejected observes records that the pipeline rejected with a retryable error. They are still
	// to be delivered, and may be rejected many times.
	Rejected(records int, err error)
	// Dropped observes records that are not delivered again. If permanent is false,
	// retry_on_failure gave up.
	Dropped(records int, err error, permanent bool)
	// RejectingLong is called once when the pipeline has accepted nothing for a minute.
	RejectingLong(since time.Duration)
	// AcceptingAgain is called once after RejectingLong, when the pipeline accepts a request, when
	// a minute has passed without a request since the last drop, or when the caller calls Forget.
	AcceptingAgain()
}

// Operations records the attempts. *receiverhelper.ObsReport implements it.
type Operations interface {
	StartLogsOp(ctx context.Context) context.Context
	EndLogsOp(ctx context.Context, format string, records int, err error)
}

// Settings are the settings of a Deliverer. Callers must set all of them.
type Settings struct {
	Next     consumer.Logs
	Retry    configretry.BackOffConfig
	Logger   *zap.Logger
	Observer Observer
	// GiveUp is closed when an attempt may not be waited for any more, although its context has
	// ended: the pipeline hangs. Nil: never.
	GiveUp     <-chan struct{}
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
	// since is when the first attempt since the last acceptance began; zero: there was none.
	since time.Time
	// long reports whether RejectingLong was called since the last acceptance.
	long                bool
	rejections, dropped occurrences
	// quiet ends RejectingLong when nothing has been delivered for a while after a drop; nil:
	// nothing was dropped.
	quiet *time.Timer
}

// New returns a Deliverer that has delivered nothing yet.
func New(settings Settings) *Deliverer { return &Deliverer{settings: settings} }

// Deliver delivers the request until it is accepted or dropped. An attempt runs on the context
// drain, until the pipeline returns, or until Settings.GiveUp. If stop has ended, Deliver makes at
// most one attempt. If drain has ended, it makes none. Callers must not call Deliver concurrently.
func (d *Deliverer) Deliver(stop, drain context.Context, request Request) Outcome {
	a := &attempts{Deliverer: d, pending: request.Records, request: request, outcome: Accepted}
	defer a.end()
	maxTries := uint(0) // No limit.
	if !d.settings.Retry.Enabled {
		maxTries = 1
	}
	outcome, err := backoff.Retry(stop,
		func() (Outcome, error) { return a.attempt(drain) },
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval:     d.settings.Retry.InitialInterval,
			RandomizationFactor: d.settings.Retry.RandomizationFactor,
			Multiplier:          d.settings.Retry.Multiplier,
			MaxInterval:         d.settings.Retry.MaxInterval,
		}),
		backoff.WithMaxTries(maxTries),
		backoff.WithMaxElapsedTime(d.settings.Retry.MaxElapsedTime), // 0: no limit.
		backoff.WithNotify(func(error, time.Duration) { a.retrying() }))
	if errors.Is(err, errRetryable) {
		reached.State("retry_on_failure gives up")
		d.drop(a.pending, a.err, false)
		return Dropped
	}
	if outcome == Stopped { // If stop ends between attempts, this is the outcome of the last one.
		a.stopped()
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

// attempts are the attempts to deliver one request.
type attempts struct {
	*Deliverer
	request Request
	// named has the UIDs of the records of the request that the next attempt has; nil: all.
	named   map[string]bool
	pending int     // records of the next attempt
	outcome Outcome // the outcome once the pending records are accepted

	err      error // of the last attempt
	observed bool  // whether Observer.Rejected was called for it

	// watchdog fires when the pipeline has accepted nothing for long.
	watchdog *time.Timer
}

// logs returns the logs of the next attempt.
func (a *attempts) logs() plog.Logs {
	logs := a.request.Logs()
	if a.named != nil {
		only(logs, a.named)
	}
	return logs
}

// attempt attempts to deliver once. It returns an error if another attempt is needed.
func (a *attempts) attempt(drain context.Context) (Outcome, error) {
	if drain.Err() != nil {
		return Stopped, nil //nolint:nilerr // The outcome says that the caller stops.
	}
	a.begin()
	logs := a.logs()
	records := logs.LogRecordCount() // The consumer owns the logs once it gets them.
	ctx := a.settings.Operations.StartLogsOp(drain)
	err := a.consume(ctx, logs)
	a.settings.Operations.EndLogsOp(ctx, a.settings.Format, records, err)
	if err == nil {
		a.accept(a.pending)
		return a.outcome, nil
	}
	a.err, a.observed = err, false
	if drain.Err() != nil {
		return Stopped, nil //nolint:nilerr // drain may be the cause, even of a permanent error.
	}
	r := classify(err)
	a.keep(r)
	if r.permanent {
		a.drop(a.pending, err, true)
		return Dropped, nil
	}
	return Stopped, errRetryable
}

// errHangs is the error of an attempt that is given up.
var errHangs = errors.New("the pipeline has not returned, although its context has ended")

// consume passes the logs to the pipeline, and waits until it returns. One that hangs although drain
// has ended must not keep the Collector from shutting down its exporters: it is left alone.
func (a *attempts) consume(ctx context.Context, logs plog.Logs) error {
	result := make(chan error, 1)
	go func() { result <- a.settings.Next.ConsumeLogs(ctx, logs) }()
	select {
	case err := <-result:
		return err
	case <-a.settings.GiveUp:
		if len(result) > 0 {
			return <-result
		}
		reached.State("a pipeline hangs at shutdown and is given up")
		return errHangs
	}
}

// begin starts the clock of the time without acceptance.
func (a *attempts) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
	a.stopQuietLocked()
	if a.watchdog == nil {
		a.watchdog = time.AfterFunc(rejectedLong, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.checkLocked()
		})
	}
}

func (a *attempts) end() {
	if a.watchdog != nil {
		a.watchdog.Stop()
	}
}

// keep reduces what is to be delivered to the rest of a partly rejected request. The records are
// those of the request, not what processors made of them.
func (a *attempts) keep(r rejection) {
	if r.rests == nil {
		return
	}
	named, records := originals(a.logs(), r.rests)
	if named == nil {
		reached.State("a pipeline returns a part that has other records")
		return
	}
	gone := a.pending - records
	a.named, a.pending = named, records
	switch {
	case gone == 0:
	case r.someDropped:
		reached.State("a pipeline drops a part and another one wants the rest again")
		// Some pipeline did not accept them and never will.
		a.outcome = Dropped
		a.drop(gone, a.err, true)
	default:
		reached.State("a pipeline accepts a part of a request")
		a.acceptPart(gone)
	}
}

// acceptPart observes that the pipeline accepted some records and rejected others.
func (a *attempts) acceptPart(records int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.Observer.Accepted(records)
	a.since = time.Now()
	a.watchdog.Reset(rejectedLong)
}

// retrying observes that the pipeline rejected the request and will get it again.
func (a *attempts) retrying() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.observed = true
	a.settings.Observer.Rejected(a.pending, a.err)
	if n, due := a.rejections.add(1); due {
		a.settings.Logger.Warn("The pipeline rejected events with a retryable error; retrying. Later events stay in the API server",
			zap.Int("rejections", n), zap.Int("records", a.pending), zap.Error(a.err))
	}
	a.checkLocked()
}

// stopped observes that the request is still to be delivered.
func (a *attempts) stopped() {
	if a.err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.observed {
		a.settings.Observer.Rejected(a.pending, a.err)
	}
	a.settings.Logger.Warn("Stopped while the pipeline rejects events",
		zap.Int("records", a.pending), zap.Error(a.err))
}

func (d *Deliverer) accept(records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings.Observer.Accepted(records)
	if d.long || d.rejections.any() || d.dropped.any() {
		d.settings.Logger.Info("The pipeline accepts events again")
	}
	d.resetLocked()
}

func (d *Deliverer) drop(records int, err error, permanent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings.Observer.Dropped(records, err, permanent)
	if n, due := d.dropped.add(records); due {
		d.settings.Logger.Error("The pipeline rejected events that are not retried; they are dropped from the logs and stay in the metric",
			zap.Int("records", n), zap.Bool("permanent", permanent), zap.Error(err))
	}
	d.checkLocked()
	if d.long {
		d.quiet = time.AfterFunc(rejectedLong, d.endLong)
	}
}

// endLong ends RejectingLong: nothing waits for the pipeline, and nothing was delivered to it
// lately.
func (d *Deliverer) endLong() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet != nil {
		reached.State("nothing is delivered for a minute after a drop")
		d.settings.Observer.AcceptingAgain()
		d.since, d.long = time.Time{}, false
	}
}

func (d *Deliverer) stopQuietLocked() {
	if d.quiet != nil {
		d.quiet.Stop()
		d.quiet = nil
	}
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
	d.stopQuietLocked()
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

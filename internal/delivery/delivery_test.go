// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

var _ Operations = (*receiverhelper.ObsReport)(nil)

var (
	errFull    = errors.New("the queue is full")
	errInvalid = consumererror.NewPermanent(errors.New("invalid"))
)

// harness is a Deliverer with simulated surroundings. It records what they see, with the time since
// the harness was created.
type harness struct {
	*Deliverer
	start time.Time
	// consume is the pipeline. It gets the names of the records.
	consume  func(ctx context.Context, names []string) error
	attempts [][]string
	seen     []string // the calls of the observer
	ops      []string
	log      *observer.ObservedLogs
}

// everySecond retries without a limit, and without randomness, which would blur the specifications.
func everySecond() configretry.BackOffConfig {
	return configretry.BackOffConfig{Enabled: true, InitialInterval: time.Second, Multiplier: 1, MaxInterval: time.Second}
}

func newHarness(t testing.TB, retry configretry.BackOffConfig, consume func(context.Context, []string) error) *harness {
	t.Helper()
	core, log := observer.New(zapcore.InfoLevel)
	h := &harness{start: time.Now(), log: log, consume: consume}
	next, err := consumer.NewLogs(h.consumeLogs, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	h.Deliverer = New(Settings{
		Next: next, Retry: retry, Logger: zap.New(core), Observer: h, Operations: h, Format: "kube_events",
	})
	return h
}

func (h *harness) consumeLogs(ctx context.Context, logs plog.Logs) error {
	names := namesIn(logs)
	h.attempts = append(h.attempts, names)
	// The logs are the consumer's: it may change them.
	logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true })
	return h.consume(ctx, names)
}

func (h *harness) note(format string, args ...any) {
	h.seen = append(h.seen, fmt.Sprintf("%v ", time.Since(h.start))+fmt.Sprintf(format, args...))
}

func (h *harness) Accepted(records int)              { h.note("accepted %d", records) }
func (h *harness) Rejected(records int)              { h.note("rejected %d", records) }
func (h *harness) RejectingLong(since time.Duration) { h.note("rejecting for %v", since) }
func (h *harness) AcceptingAgain()                   { h.note("accepting again") }
func (h *harness) Dropped(records int)               { h.note("dropped %d", records) }

type opKey struct{}

func (h *harness) StartLogsOp(ctx context.Context) context.Context {
	return context.WithValue(ctx, opKey{}, len(h.ops))
}

func (h *harness) EndLogsOp(ctx context.Context, format string, records int, err error) {
	h.ops = append(h.ops, fmt.Sprintf("%s %d: %d %v", format, ctx.Value(opKey{}), records, err))
}

// logged returns the log: time, level, message and fields other than the error.
func (h *harness) logged() (lines []string) {
	for _, entry := range h.log.All() {
		fields := entry.ContextMap()
		delete(fields, "error")
		line := fmt.Sprintf("%v %v %s", entry.Time.Sub(h.start), entry.Level, entry.Message)
		if len(fields) > 0 {
			line += fmt.Sprint(" ", fields)
		}
		lines = append(lines, line)
	}
	return lines
}

func request(names ...string) Request {
	return Request{Records: len(names), Logs: func() plog.Logs { return logsOf(names...) }}
}

// deliver delivers records with contexts that do not end.
func (h *harness) deliver(t testing.TB, names ...string) Outcome {
	return h.Deliver(t.Context(), t.Context(), request(names...))
}

// failing returns a pipeline that returns these errors, and then accepts everything.
func failing(errs ...error) func(context.Context, []string) error {
	return func(context.Context, []string) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func always(err error) func(context.Context, []string) error {
	return func(context.Context, []string) error { return err }
}

func TestARequestIsDeliveredUntilItIsAcceptedOrDropped(t *testing.T) {
	part := func(err error, names ...string) error { return consumererror.NewLogs(err, logsOf(names...)) }
	limited := everySecond()
	limited.MaxElapsedTime = 2500 * time.Millisecond
	for name, tt := range map[string]struct {
		retry    configretry.BackOffConfig
		errs     []error
		outcome  Outcome
		attempts [][]string
		seen     []string
	}{
		"accepted at once": {
			everySecond(), nil, OutcomeAccepted, [][]string{{"a", "b"}}, []string{"0s accepted 2"},
		},
		"accepted after two rejections": {
			everySecond(), []error{errFull, errFull}, OutcomeAccepted, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s rejected 2", "2s accepted 2"},
		},
		"rejected with a permanent error": {
			everySecond(), []error{errInvalid}, OutcomeDropped, [][]string{{"a", "b"}}, []string{"0s dropped 2"},
		},
		"one of two pipelines rejects it with a permanent error, the other one accepts it later": {
			everySecond(), []error{errors.Join(errInvalid, errFull), errInvalid}, OutcomeDropped, [][]string{{"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s dropped 2"},
		},
		"a part is rejected: all is delivered again": {
			everySecond(), []error{part(errFull, "b")}, OutcomeAccepted, [][]string{{"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s accepted 2"},
		},
		"retry_on_failure is disabled": {
			configretry.BackOffConfig{}, []error{errFull}, OutcomeDropped, [][]string{{"a", "b"}}, []string{"0s rejected 2", "0s dropped 2"},
		},
		"retry_on_failure gives up": {
			limited, []error{errFull, errFull, errFull}, OutcomeDropped, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s rejected 2", "2s rejected 2", "2s dropped 2"},
		},
		"the error is one that package backoff obeys": {
			everySecond(), []error{backoff.Permanent(errFull), backoff.RetryAfter(60)}, OutcomeAccepted, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s rejected 2", "2s accepted 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, tt.retry, failing(tt.errs...))
				assert.Equal(t, tt.outcome, h.deliver(t, "a", "b"))
				assert.Equal(t, tt.attempts, h.attempts)
				assert.Equal(t, tt.seen, h.seen)
			})
		})
	}
}

func TestTheIntervalsAreThoseOfRetryOnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := configretry.BackOffConfig{Enabled: true, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Second}
		h := newHarness(t, retry, failing(errFull, errFull, errFull, errFull, errFull))
		for range 2 { // Each request begins with the first interval.
			h.start = time.Now()
			h.deliver(t, "a")
			h.consume = failing(errFull)
		}
		assert.Equal(t, []string{
			"0s rejected 1", "1s rejected 1", "3s rejected 1", "7s rejected 1", "12s rejected 1", "17s accepted 1",
			"0s rejected 1", "1s accepted 1",
		}, h.seen)
	})
}

func TestEachAttemptIsAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, everySecond(), failing(consumererror.NewLogs(errFull, logsOf("b"))))
		var ops []any
		consume := h.consume
		h.consume = func(ctx context.Context, names []string) error {
			ops = append(ops, ctx.Value(opKey{}))
			return consume(ctx, names)
		}
		h.deliver(t, "a", "b")
		assert.Equal(t, []string{"kube_events 0: 2 the queue is full", "kube_events 1: 2 <nil>"}, h.ops)
		assert.Equal(t, []any{0, 1}, ops, "the pipeline gets the context of the operation")
	})
}

func TestTheDeliveryStops(t *testing.T) {
	hour := configretry.BackOffConfig{Enabled: true, InitialInterval: time.Hour, Multiplier: 1, MaxInterval: time.Hour}
	t.Run("while it waits for the next attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, hour, always(errFull))
			stop, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			assert.Equal(t, OutcomeStopped, h.Deliver(stop, t.Context(), request("a")))
			assert.Equal(t, 10*time.Second, time.Since(h.start))
			assert.Equal(t, []string{"0s rejected 1"}, h.seen)
			assert.Equal(t, "10s warn Stopped while the pipeline rejects events map[records:1]", h.logged()[1])
		})
	})
	t.Run("after the attempt that is under way", func(t *testing.T) {
		for err, want := range map[error]struct {
			outcome Outcome
			seen    []string
		}{
			nil:        {OutcomeAccepted, []string{"20s accepted 1"}},
			errInvalid: {OutcomeDropped, []string{"20s dropped 1"}},
			errFull:    {OutcomeStopped, []string{"20s rejected 1"}},
		} {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, hour, func(ctx context.Context, _ []string) error {
					time.Sleep(20 * time.Second)
					assert.NoError(t, ctx.Err(), "the attempt runs with the context of the work")
					return err
				})
				stop, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				assert.Equal(t, want.outcome, h.Deliver(stop, t.Context(), request("a")))
				assert.Equal(t, want.seen, h.seen)
			})
		}
	})
	t.Run("after one attempt if stop has ended before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop, cancel := context.WithCancel(t.Context())
			cancel()
			h := newHarness(t, hour, failing(nil, errFull))
			assert.Equal(t, OutcomeAccepted, h.Deliver(stop, t.Context(), request("a")))
			assert.Equal(t, OutcomeStopped, h.Deliver(stop, t.Context(), request("b")))
			assert.Equal(t, []string{"0s accepted 1", "0s rejected 1"}, h.seen)
		})
	})
	t.Run("when the work has ended, whatever the error is", func(t *testing.T) {
		for _, err := range []error{errInvalid, errFull, context.Canceled} {
			for _, retry := range []configretry.BackOffConfig{hour, {}} {
				synctest.Test(t, func(t *testing.T) {
					work, cancel := context.WithCancel(t.Context())
					h := newHarness(t, retry, func(context.Context, []string) error {
						cancel()
						return err
					})
					assert.Equal(t, OutcomeStopped, h.Deliver(t.Context(), work, request("a")))
					assert.Equal(t, []string{"0s rejected 1"}, h.seen)
					assert.Equal(t, OutcomeStopped, h.Deliver(t.Context(), work, request("a")))
					assert.Len(t, h.attempts, 1, "there is no attempt after the end")
				})
			}
		}
	})
	t.Run("when the work ends while the pipeline waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			work, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			h := newHarness(t, hour, func(ctx context.Context, _ []string) error {
				<-ctx.Done()
				return ctx.Err()
			})
			assert.Equal(t, OutcomeStopped, h.Deliver(t.Context(), work, request("a")))
			assert.Equal(t, []string{"10s rejected 1"}, h.seen)
		})
	})
	t.Run("but not if the pipeline accepts the request at the end of the work", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			work, cancel := context.WithCancel(t.Context())
			h := newHarness(t, hour, func(context.Context, []string) error {
				cancel()
				return nil
			})
			assert.Equal(t, OutcomeAccepted, h.Deliver(t.Context(), work, request("a")))
		})
	})
}

func TestTheObserverIsCalledWhenThePipelineAcceptsNothingForAMinute(t *testing.T) {
	// status returns the calls other than those for each attempt.
	status := func(h *harness) (calls []string) {
		for _, call := range h.seen {
			if strings.Contains(call, "rejecting") || strings.Contains(call, "again") {
				calls = append(calls, call)
			}
		}
		return calls
	}
	until := func(h *harness, end time.Duration, err error) func(context.Context, []string) error {
		return func(context.Context, []string) error {
			if time.Since(h.start) < end {
				return err
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		retry func(*configretry.BackOffConfig)
		run   func(t *testing.T, h *harness)
		want  []string
	}{
		"not after less than a minute": {nil, func(t *testing.T, h *harness) {
			h.consume = until(h, 59*time.Second, errFull)
			h.deliver(t, "a")
		}, nil},
		"once, in a long delivery": {nil, func(t *testing.T, h *harness) {
			h.consume = until(h, time.Hour, errFull)
			h.deliver(t, "a")
			h.deliver(t, "b")
		}, []string{"1m0s rejecting for 1m0s", "1h0m0s accepting again"}},
		"at once, however long the pause between attempts is": {
			func(r *configretry.BackOffConfig) { r.InitialInterval, r.MaxInterval = time.Hour, time.Hour },
			func(t *testing.T, h *harness) {
				h.consume = failing(errFull)
				h.deliver(t, "a")
			}, []string{"1m0s rejecting for 1m0s", "1h0m0s accepting again"}},
		"from a pipeline that does not return": {nil, func(t *testing.T, h *harness) {
			h.consume = func(context.Context, []string) error {
				time.Sleep(10 * time.Minute)
				return nil
			}
			h.deliver(t, "a")
		}, []string{"1m0s rejecting for 1m0s", "10m0s accepting again"}},
		"over requests that retry_on_failure gives up": {
			func(r *configretry.BackOffConfig) { r.MaxElapsedTime = 10 * time.Second },
			func(t *testing.T, h *harness) {
				h.consume = until(h, 5*time.Minute, errFull)
				for h.deliver(t, "a") != OutcomeAccepted {
					time.Sleep(5 * time.Second)
				}
			}, []string{"1m0s rejecting for 1m0s", "5m0s accepting again"}},
		"over requests that are rejected with permanent errors": {nil, func(t *testing.T, h *harness) {
			h.consume = until(h, 5*time.Minute, errInvalid)
			for h.deliver(t, "a") != OutcomeAccepted {
				time.Sleep(20 * time.Second)
			}
		}, []string{"1m0s rejecting for 1m0s", "5m0s accepting again"}},
		"not while there is nothing to deliver": {nil, func(t *testing.T, h *harness) {
			h.consume = failing(errInvalid)
			h.deliver(t, "a")
			time.Sleep(time.Hour)
			h.deliver(t, "b")
		}, nil},
		"until the deliverer forgets, and then again": {nil, func(t *testing.T, h *harness) {
			h.consume = always(errFull)
			for range 2 {
				stop, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				h.Deliver(stop, t.Context(), request("a"))
				cancel()
				h.Forget()
				h.Forget()
			}
		}, []string{"1m0s rejecting for 1m0s", "1m30s accepting again", "2m30s rejecting for 1m0s", "3m0s accepting again"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry := everySecond()
				if tt.retry != nil {
					tt.retry(&retry)
				}
				h := newHarness(t, retry, nil)
				tt.run(t, h)
				assert.Equal(t, tt.want, status(h))
			})
		})
	}
}

func TestTheLogHasTheFirstRejectionAndARepetitionEveryFiveMinutes(t *testing.T) {
	const (
		rejected = "warn The pipeline rejected events with a retryable error; retrying. Later events stay in the API server"
		dropped  = "error The pipeline rejected events that are not retried; they are dropped from the logs and stay in the metric"
		again    = "info The pipeline accepts events again"
		first    = "info First records accepted by the pipeline map[records:1]"
		waiting  = "warn The pipeline has neither accepted nor rejected events for a minute; waiting for it"
	)
	for name, tt := range map[string]struct {
		run  func(t *testing.T, h *harness)
		want []string
	}{
		"of a request that is retried": {func(t *testing.T, h *harness) {
			h.consume = func(context.Context, []string) error {
				if time.Since(h.start) < 11*time.Minute {
					return errFull
				}
				return nil
			}
			h.deliver(t, "a")
			h.deliver(t, "b")
		}, []string{
			"0s " + rejected + " map[records:1 rejections:1]",
			"5m0s " + rejected + " map[records:1 rejections:300]",
			"10m0s " + rejected + " map[records:1 rejections:300]",
			"11m0s " + first,
		}},
		"of each row of rejections": {func(t *testing.T, h *harness) {
			for range 2 {
				h.consume = failing(errFull, errFull)
				h.deliver(t, "a")
			}
		}, []string{
			"0s " + rejected + " map[records:1 rejections:1]", "2s " + first,
			"2s " + rejected + " map[records:1 rejections:1]", "4s " + again,
		}},
		"of requests that are dropped": {func(t *testing.T, h *harness) {
			h.consume = always(errInvalid)
			for range 7 {
				h.deliver(t, "a", "b")
				time.Sleep(time.Minute)
			}
			h.consume = failing()
			h.deliver(t, "a")
			h.deliver(t, "a")
		}, []string{
			"0s " + dropped + " map[permanent:true records:2]",
			"5m0s " + dropped + " map[permanent:true records:10]",
			"7m0s " + first,
		}},
		"of a single request that is dropped": {func(t *testing.T, h *harness) {
			h.consume = failing(errInvalid)
			for range 3 {
				h.deliver(t, "a")
			}
		}, []string{"0s " + dropped + " map[permanent:true records:1]", "0s " + first}},
		"of each row of drops": {func(t *testing.T, h *harness) {
			for range 2 {
				h.consume = failing(errInvalid)
				h.deliver(t, "a")
				h.deliver(t, "a")
				time.Sleep(time.Second)
			}
		}, []string{
			"0s " + dropped + " map[permanent:true records:1]", "0s " + first,
			"1s " + dropped + " map[permanent:true records:1]", "1s " + again,
		}},
		"of requests that are retried and then dropped": {func(t *testing.T, h *harness) {
			h.settings.Retry.MaxElapsedTime = 2 * time.Second
			h.consume = always(errFull)
			for range 3 {
				h.deliver(t, "a")
			}
			h.consume = failing()
			h.deliver(t, "a")
		}, []string{
			"0s " + rejected + " map[records:1 rejections:1]",
			"2s " + dropped + " map[permanent:false records:1]",
			"6s " + first,
		}},
		"and names a pipeline that does not return": {func(t *testing.T, h *harness) {
			h.consume = func(context.Context, []string) error {
				time.Sleep(10 * time.Minute)
				return nil
			}
			h.deliver(t, "a")
		}, []string{"1m0s " + waiting, "10m0s " + first}},
		"and one line of a pipeline that accepts everything": {func(t *testing.T, h *harness) {
			h.consume = failing()
			h.deliver(t, "a")
			h.deliver(t, "b")
		}, []string{"0s " + first}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, everySecond(), nil)
				tt.run(t, h)
				assert.Equal(t, tt.want, h.logged())
			})
		})
	}
}

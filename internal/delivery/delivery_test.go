// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"go.uber.org/multierr"
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
	giveUp   chan struct{}
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
	h := &harness{start: time.Now(), log: log, consume: consume, giveUp: make(chan struct{})}
	next, err := consumer.NewLogs(h.consumeLogs, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	h.Deliverer = New(Settings{
		Next: next, Retry: retry, Logger: zap.New(core), Observer: h, Operations: h, Format: "kube_events", GiveUp: h.giveUp,
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
func (h *harness) Rejected(records int, _ error)     { h.note("rejected %d", records) }
func (h *harness) RejectingLong(since time.Duration) { h.note("rejecting for %v", since) }
func (h *harness) AcceptingAgain()                   { h.note("accepting again") }
func (h *harness) Dropped(records int, _ error, permanent bool) {
	h.note("dropped %d, permanent: %v", records, permanent)
}

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
			everySecond(), nil, Accepted, [][]string{{"a", "b"}}, []string{"0s accepted 2"},
		},
		"accepted after two rejections": {
			everySecond(), []error{errFull, errFull}, Accepted, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s rejected 2", "2s accepted 2"},
		},
		"rejected with a permanent error": {
			everySecond(), []error{errInvalid}, Dropped, [][]string{{"a", "b"}}, []string{"0s dropped 2, permanent: true"},
		},
		"one of two pipelines rejects it with a permanent error, the other one accepts it later": {
			everySecond(), []error{errors.Join(errInvalid, errFull), errInvalid}, Dropped, [][]string{{"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s dropped 2, permanent: true"},
		},
		"a part is rejected, twice": {
			everySecond(), []error{part(errFull, "b"), errFull, part(errFull, "b")}, Accepted, [][]string{{"a", "b"}, {"b"}, {"b"}, {"b"}},
			[]string{"0s accepted 1", "0s rejected 1", "1s rejected 1", "2s rejected 1", "3s accepted 1"},
		},
		"a part is rejected, then with a permanent error": {
			everySecond(), []error{part(errFull, "b"), errInvalid}, Dropped, [][]string{{"a", "b"}, {"b"}},
			[]string{"0s accepted 1", "0s rejected 1", "1s dropped 1, permanent: true"},
		},
		"a part is rejected with a permanent error": {
			everySecond(), []error{part(errInvalid, "b")}, Dropped, [][]string{{"a", "b"}},
			[]string{"0s accepted 1", "0s dropped 1, permanent: true"},
		},
		"one of two pipelines rejects a part, the other one everything with a permanent error": {
			everySecond(), []error{errors.Join(errInvalid, part(errFull, "b"))}, Dropped, [][]string{{"a", "b"}, {"b"}},
			[]string{"0s dropped 1, permanent: true", "0s rejected 1", "1s accepted 1"},
		},
		"a part is rejected that has a record of others": {
			everySecond(), []error{part(errFull, "a", "x")}, Accepted, [][]string{{"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s accepted 2"},
		},
		"two pipelines reject a part each": {
			everySecond(), []error{errors.Join(part(errFull, "b"), part(errFull, "a"))}, Accepted, [][]string{{"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s accepted 2"},
		},
		"two pipelines reject a part with a permanent error": {
			everySecond(), []error{errors.Join(part(errInvalid, "b"), part(errInvalid, "b"))}, Dropped, [][]string{{"a", "b"}},
			[]string{"0s accepted 1", "0s dropped 1, permanent: true"},
		},
		"retry_on_failure is disabled": {
			configretry.BackOffConfig{}, []error{errFull}, Dropped, [][]string{{"a", "b"}}, []string{"0s dropped 2, permanent: false"},
		},
		"retry_on_failure gives up": {
			limited, []error{errFull, errFull, errFull}, Dropped, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
			[]string{"0s rejected 2", "1s rejected 2", "2s dropped 2, permanent: false"},
		},
		"retry_on_failure gives up after a part": {
			configretry.BackOffConfig{}, []error{part(errFull, "b")}, Dropped, [][]string{{"a", "b"}},
			[]string{"0s accepted 1", "0s dropped 1, permanent: false"},
		},
		"the error is one that package backoff obeys": {
			everySecond(), []error{backoff.Permanent(errFull), backoff.RetryAfter(60)}, Accepted, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}},
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

func TestWithoutALimitTheDeliveryNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		everyMinute := configretry.BackOffConfig{Enabled: true, InitialInterval: time.Minute, Multiplier: 1, MaxInterval: time.Minute}
		h := newHarness(t, everyMinute, nil)
		h.consume = func(context.Context, []string) error {
			if time.Since(h.start) < 72*time.Hour {
				return errFull
			}
			return nil
		}
		assert.Equal(t, Accepted, h.deliver(t, "a"))
		assert.Len(t, h.attempts, 72*60+1)
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
		assert.Equal(t, []string{"kube_events 0: 2 the queue is full", "kube_events 1: 1 <nil>"}, h.ops)
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
			assert.Equal(t, Stopped, h.Deliver(stop, t.Context(), request("a")))
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
			nil:        {Accepted, []string{"20s accepted 1"}},
			errInvalid: {Dropped, []string{"20s dropped 1, permanent: true"}},
			errFull:    {Stopped, []string{"20s rejected 1"}},
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
	t.Run("while the pipeline hangs, once it is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			released := make(chan struct{})
			defer close(released)
			h := newHarness(t, hour, func(context.Context, []string) error {
				<-released
				return nil
			})
			drain, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			time.AfterFunc(12*time.Second, func() { close(h.giveUp) })
			assert.Equal(t, Stopped, h.Deliver(drain, drain, request("a")))
			assert.Equal(t, 12*time.Second, time.Since(h.start))
			assert.Equal(t, []string{"12s rejected 1"}, h.seen)
			assert.Equal(t, []string{"12s warn Stopped while the pipeline rejects events map[records:1]"}, h.logged())
		})
	})
	t.Run("after one attempt if stop has ended before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop, cancel := context.WithCancel(t.Context())
			cancel()
			h := newHarness(t, hour, failing(nil, errFull))
			assert.Equal(t, Accepted, h.Deliver(stop, t.Context(), request("a")))
			assert.Equal(t, Stopped, h.Deliver(stop, t.Context(), request("b")))
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
					assert.Equal(t, Stopped, h.Deliver(t.Context(), work, request("a")))
					assert.Equal(t, []string{"0s rejected 1"}, h.seen)
					assert.Equal(t, Stopped, h.Deliver(t.Context(), work, request("a")))
					assert.Len(t, h.attempts, 1, "there is no attempt after the end")
				})
			}
		}
	})
	t.Run("but not if the pipeline accepts the request at the end of the work", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			work, cancel := context.WithCancel(t.Context())
			h := newHarness(t, hour, func(context.Context, []string) error {
				cancel()
				return nil
			})
			assert.Equal(t, Accepted, h.Deliver(t.Context(), work, request("a")))
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
				for h.deliver(t, "a") != Accepted {
					time.Sleep(5 * time.Second)
				}
			}, []string{"1m0s rejecting for 1m0s", "5m0s accepting again"}},
		"over requests that are rejected with permanent errors": {nil, func(t *testing.T, h *harness) {
			h.consume = until(h, 5*time.Minute, errInvalid)
			for h.deliver(t, "a") != Accepted {
				time.Sleep(20 * time.Second)
			}
		}, []string{"1m0s rejecting for 1m0s", "5m0s accepting again"}},
		"not while there is nothing to deliver": {nil, func(t *testing.T, h *harness) {
			h.consume = failing(errInvalid)
			h.deliver(t, "a")
			time.Sleep(time.Hour)
			h.deliver(t, "b")
		}, nil},
		"not while the pipeline accepts a part from time to time": {nil, func(t *testing.T, h *harness) {
			h.consume = func(_ context.Context, names []string) error {
				time.Sleep(40 * time.Second)
				if len(names) == 1 {
					return nil
				}
				return consumererror.NewLogs(errFull, logsOf(names[1:]...))
			}
			h.deliver(t, "a", "b", "c", "d")
		}, nil},
		"but after a part if a minute follows": {nil, func(t *testing.T, h *harness) {
			rejectOnce := failing(consumererror.NewLogs(errFull, logsOf("b")))
			h.consume = func(ctx context.Context, names []string) error {
				time.Sleep(30 * time.Second)
				return rejectOnce(ctx, names)
			}
			h.settings.Retry.InitialInterval, h.settings.Retry.MaxInterval = time.Hour, time.Hour
			h.deliver(t, "a", "b")
		}, []string{"1m30s rejecting for 1m0s", "1h1m0s accepting again"}},
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
			h.deliver(t, "a", "b")
			h.deliver(t, "c")
		}, []string{
			"0s " + rejected + " map[records:2 rejections:1]",
			"5m0s " + rejected + " map[records:2 rejections:300]",
			"10m0s " + rejected + " map[records:2 rejections:300]",
			"11m0s " + again,
		}},
		"of each row of rejections": {func(t *testing.T, h *harness) {
			for range 2 {
				h.consume = failing(errFull, errFull)
				h.deliver(t, "a")
			}
		}, []string{
			"0s " + rejected + " map[records:1 rejections:1]", "2s " + again,
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
			"7m0s " + again,
		}},
		"of a single request that is dropped": {func(t *testing.T, h *harness) {
			h.consume = failing(errInvalid)
			for range 3 {
				h.deliver(t, "a")
			}
		}, []string{"0s " + dropped + " map[permanent:true records:1]", "0s " + again}},
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
			"6s " + again,
		}},
		"and names a pipeline that does not return": {func(t *testing.T, h *harness) {
			h.consume = func(context.Context, []string) error {
				time.Sleep(10 * time.Minute)
				return nil
			}
			h.deliver(t, "a")
		}, []string{"1m0s " + waiting, "10m0s " + again}},
		"and nothing of a pipeline that accepts everything": {func(t *testing.T, h *harness) {
			h.consume = failing()
			h.deliver(t, "a")
			h.deliver(t, "b")
		}, nil},
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

// TestRandomRejectionsLoseAndRepeatNothing delivers to several pipelines that reject at random. A
// record is settled in a pipeline when this pipeline accepted it, or rejected it with a permanent
// error. No record may be lost: at the end, every record is settled everywhere. The attempt after
// a rejection has exactly the records that may not be settled everywhere, as far as the error names
// them.
func TestRandomRejectionsLoseAndRepeatNothing(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			pipelines := make([]*pipeline, 1+random.IntN(3))
			for i := range pipelines {
				pipelines[i] = &pipeline{random: random, settled: map[string]bool{}}
			}
			var next []string // what the next attempt must have; nil: there must be none
			h := newHarness(t, everySecond(), func(_ context.Context, names []string) error {
				require.Equal(t, next, names, "seed %d", seed)
				return consumeAll(pipelines, names, &next, random)
			})
			for i := range 4 {
				var names []string
				for j := range 1 + random.IntN(5) {
					names = append(names, fmt.Sprint(i, "/", j))
				}
				next, h.seen = names, nil
				outcome := h.deliver(t, names...)
				assert.Nil(t, next, "seed %d: the delivery ended too early", seed)
				for _, p := range pipelines {
					for _, name := range names {
						assert.True(t, p.settled[name], "seed %d: record %s is lost", seed, name)
					}
				}
				accepted, dropped := h.total("accepted"), h.total("dropped")
				assert.Equal(t, len(names), accepted+dropped, "seed %d: each record is observed once: %v", seed, h.seen)
				assert.Equal(t, dropped > 0, outcome == Dropped, "seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// total returns the sum of the records that the observer saw.
func (h *harness) total(kind string) (sum int) {
	for _, call := range h.seen {
		var at, what string
		var records int
		if n, _ := fmt.Sscanf(call, "%s %s %d", &at, &what, &records); n == 3 && what == kind {
			sum += records
		}
	}
	return sum
}

// pipeline accepts and rejects at random.
type pipeline struct {
	random  *rand.Rand
	settled map[string]bool
}

// consume returns the records that are not settled (nil: all of them are), whether the error names
// them, and the error.
func (p *pipeline) consume(names []string) (open []string, named bool, err error) {
	accepted := p.random.IntN(len(names))
	rest := names[accepted:]
	settle := func(names []string) {
		for _, name := range names {
			p.settled[name] = true
		}
	}
	switch p.random.IntN(6) {
	case 0:
		return names, false, p.wrap(errFull)
	case 1:
		settle(names)
		return nil, false, p.wrap(errInvalid)
	case 2:
		settle(names[:accepted])
		return rest, true, p.wrap(consumererror.NewLogs(p.wrap(errFull), logsOf(rest...)))
	case 3:
		settle(names)
		return nil, false, p.wrap(consumererror.NewLogs(p.wrap(errInvalid), logsOf(rest...)))
	default:
		settle(names)
		return nil, false, nil
	}
}

// wrap wraps the error as components do.
func (p *pipeline) wrap(err error) error {
	for range p.random.IntN(3) {
		switch p.random.IntN(4) {
		case 0:
			err = fmt.Errorf("export: %w", err)
		case 1:
			err = consumererror.NewDownstream(err)
		case 2:
			err = errors.Join(err)
		default:
			err = consumererror.NewRetryableError(err)
		}
	}
	return err
}

// consumeAll is the fan-out to the pipelines. It sets what the next attempt must have.
func consumeAll(pipelines []*pipeline, names []string, next *[]string, random *rand.Rand) error {
	var errs error
	open, allNamed := map[string]bool{}, true // of the pipelines that reject with a retryable error
	*next = nil
	for _, p := range pipelines {
		rest, named, err := p.consume(names)
		switch random.IntN(3) {
		case 0:
			errs = multierr.Append(errs, err)
		case 1:
			errs = errors.Join(errs, err)
		default:
			if errs = errors.Join(errs, err); errs != nil {
				errs = consumererror.NewDownstream(errs)
			}
		}
		for _, name := range rest {
			open[name] = true
		}
		allNamed = allNamed && (rest == nil || named)
	}
	for _, name := range names {
		if open[name] || len(open) > 0 && !allNamed {
			*next = append(*next, name)
		}
	}
	return errs
}

// What a pipeline rejects may be what a processor made of the records, and a queue of an exporter
// may have merged it with records of others.
func TestARejectedPartIsDeliveredAgainAsItWas(t *testing.T) {
	setBody := func(text string) func(plog.LogRecord) {
		return func(lr plog.LogRecord) { lr.Body().SetStr(text) }
	}
	noUID := func(lr plog.LogRecord) { lr.Attributes().Remove(uidAttribute) }
	none, all := []string(nil), []string{"a", "b", "b", "c"} // Two records have the same UID.
	for name, tt := range map[string]struct {
		rest   []string
		change func(plog.LogRecord)
		want   []string
	}{
		"with other bodies":                           {[]string{"b", "c"}, setBody("changed"), []string{"b", "b", "c"}},
		"one of two records with the same UID":        {[]string{"b"}, setBody("changed"), []string{"b", "b"}},
		"split into several":                          {[]string{"c", "c", "c", "c", "c", "c"}, setBody("part"), []string{"c"}},
		"in another order":                            {[]string{"c", "a"}, nil, []string{"a", "c"}},
		"without UIDs: all are delivered again":       {[]string{"b"}, noUID, all},
		"with records of others: all":                 {[]string{"b", "of another receiver"}, nil, all},
		"only records of others: all":                 {[]string{"of another receiver"}, nil, all},
		"with other UIDs: all":                        {[]string{"b"}, func(lr plog.LogRecord) { lr.Attributes().PutStr(uidAttribute, "new") }, all},
		"with UIDs that are no strings: all":          {[]string{"b"}, func(lr plog.LogRecord) { lr.Attributes().PutInt(uidAttribute, 7) }, all},
		"nothing, as an empty part: all":              {none, nil, all},
		"more than there was, with records of others": {[]string{"a", "b", "b", "c", "d", "e"}, nil, all},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rest := logsOf(tt.rest...)
				for _, rl := range rest.ResourceLogs().All() {
					rl.Resource().Attributes().PutStr("k8s.node.name", "added")
					for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
						if tt.change != nil {
							tt.change(lr)
						}
					}
				}
				h := newHarness(t, everySecond(), failing(consumererror.NewLogs(errFull, rest), errFull))
				assert.Equal(t, Accepted, h.deliver(t, all...))
				assert.Equal(t, [][]string{all, tt.want, tt.want}, h.attempts)
				assert.Equal(t, len(all), h.total("accepted"), "each record is observed once: %v", h.seen)
			})
		})
	}
}

func TestAPipelineThatGotNothingSinceADropIsForgottenAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, everySecond(), always(consumererror.NewPermanent(errors.New("malformed"))))
		for range 3 {
			require.Equal(t, Dropped, h.deliver(t, "a"))
			time.Sleep(50 * time.Second)
		}
		newest := func() string {
			h.mu.Lock() // Held while the observer is called.
			defer h.mu.Unlock()
			return h.seen[len(h.seen)-1]
		}
		assert.NotContains(t, newest(), "accepting again")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		assert.Contains(t, newest(), "accepting again")

		for range 3 {
			require.Equal(t, Dropped, h.deliver(t, "a"))
			time.Sleep(40 * time.Second)
		}
		assert.Contains(t, newest(), "rejecting for", "it is reported again")
	})
}

func TestAPipelineThatRejectsAgainSinceADropIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, everySecond(), always(errInvalid))
		for range 3 {
			require.Equal(t, Dropped, h.deliver(t, "a"))
			time.Sleep(30 * time.Second)
		}
		h.consume = always(errFull)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.Equal(t, Stopped, h.Deliver(ctx, t.Context(), request("a")))
		assert.NotContains(t, strings.Join(h.seen, "\n"), "accepting again")
	})
}

func TestAPipelineThatIsForgottenAfterADropAcceptsAgainOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, everySecond(), always(errInvalid))
		for range 3 {
			require.Equal(t, Dropped, h.deliver(t, "a"))
			time.Sleep(30 * time.Second)
		}
		h.Forget()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, strings.Count(strings.Join(h.seen, "\n"), "accepting again"))
	})
}

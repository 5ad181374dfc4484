// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/distribution/rolloutsconnector/internal/metadata"
)

// sink keeps what the connector delivers.
type sink struct {
	mu       sync.Mutex // guards the following
	requests []ptrace.Traces
	logs     []plog.Logs
	err      error                     // that the next requests get
	during   func()                    // called during the next request of traces; nil: nothing is
	rejects  func(ptrace.Traces) error // the error of a request; nil: none has one
}

func (s *sink) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	if during := s.next(nil); during != nil {
		during()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rejects != nil && s.rejects(traces) != nil {
		return s.rejects(traces)
	}
	if s.err == nil {
		s.requests = append(s.requests, traces)
	}
	return s.err
}

// next sets what is called during the next request of traces, and returns what was set before.
func (s *sink) next(during func()) (before func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.during = s.during, during
	return before
}

// reject sets which requests have an error.
func (s *sink) reject(rejects func(ptrace.Traces) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejects = rejects
}

func (s *sink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, logs)
	return nil
}

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// fail sets the error that the next requests get; nil: none.
func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// received returns the requests that were delivered.
func (s *sink) received() []ptrace.Traces {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// spans returns the names of the delivered spans, and of their outcomes.
func (s *sink) spans() (names []string) {
	for _, traces := range s.received() {
		for span := range allSpans(traces) {
			name := span.Name()
			if outcome, ok := span.Attributes().Get("k8s.rollout.outcome"); ok {
				name += " " + outcome.Str()
			}
			names = append(names, name)
		}
	}
	return names
}

func allSpans(traces ptrace.Traces) iter.Seq[ptrace.Span] {
	return func(yield func(ptrace.Span) bool) {
		for _, rs := range traces.ResourceSpans().All() {
			for span := range spansOf(rs) {
				if !yield(span) {
					return
				}
			}
		}
	}
}

func spansOf(rs ptrace.ResourceSpans) iter.Seq[ptrace.Span] {
	return func(yield func(ptrace.Span) bool) {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if !yield(span) {
					return
				}
			}
		}
	}
}

// disk is a storage extension whose content survives a restart.
type disk struct {
	component.StartFunc
	component.ShutdownFunc

	mu      sync.Mutex // guards the following
	values  map[string][]byte
	err     error
	left    int // how many writes succeed before err
	written int // bytes
}

// fail sets the error of the next writes; nil: none.
func (d *disk) fail(err error) { d.failAfter(0, err) }

// failAfter sets the error of all writes after the next ones.
func (d *disk) failAfter(left int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.err = left, err
}

// write returns the error of a write. Callers must hold mu.
func (d *disk) write() error {
	if d.left > 0 {
		d.left--
		return nil
	}
	return d.err
}

// content returns a copy of the values.
func (d *disk) content() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.values)
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.values[key], nil
}

func (d *disk) Set(_ context.Context, key string, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.write()
	if err == nil {
		d.values[key] = value
		d.written += len(value)
	}
	return err
}

func (d *disk) Delete(_ context.Context, key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.write()
	if err == nil {
		delete(d.values, key)
	}
	return err
}

func (d *disk) Batch(ctx context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		change := func() error { return d.Set(ctx, op.Key, op.Value) }
		if op.Type == storage.Delete {
			change = func() error { return d.Delete(ctx, op.Key) }
		}
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

func (*disk) Close(context.Context) error { return nil }

var diskID = component.MustNewID("disk")

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// process is the connector in a Collector.
type process struct {
	connector.Logs
	*sink
	telemetry *componenttest.Telemetry
}

// start starts the connector, with storage if there is a disk.
func start(t testing.TB, d *disk, change func(*Config)) *process {
	t.Helper()
	return startLogging(t, d, change, zap.NewNop())
}

func startLogging(t testing.TB, d *disk, change func(*Config), logger *zap.Logger) *process {
	t.Helper()
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	if d != nil {
		config.Storage = &diskID
	}
	if change != nil {
		change(config)
	}
	p := &process{sink: &sink{}, telemetry: componenttest.NewTelemetry()}
	settings := connectortest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type)
	settings.TelemetrySettings = p.telemetry.NewTelemetrySettings()
	settings.Logger = logger
	var err error
	p.Logs, err = factory.CreateLogsToTraces(t.Context(), settings, config, p.sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host{diskID: d}))
	return p
}

func (p *process) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	return p.Logs.ConsumeLogs(ctx, logs)
}

func (p *process) Capabilities() consumer.Capabilities { return p.Logs.Capabilities() }

func (p *process) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Shutdown(context.WithoutCancel(t.Context())))
	require.NoError(t, p.telemetry.Shutdown(context.WithoutCancel(t.Context())))
}

// records returns one record of the pod for each reason, all at this time.
func records(name string, at time.Time, reasons ...string) plog.Logs {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	owner := name[:strings.LastIndex(name, "-")]
	for key, value := range map[string]string{
		"k8s.cluster.uid": "cluster", "k8s.object.api_version": "v1", "k8s.object.kind": "Pod", "k8s.object.name": name,
		"k8s.object.uid": "uid-" + name, "k8s.workload.kind": "Deployment", "k8s.workload.name": "shop", "k8s.workload.uid": "uid-shop",
		"k8s.container.name": "app",
	} {
		rl.Resource().Attributes().PutStr(key, value)
	}
	rl.Resource().Attributes().PutEmptySlice("k8s.owner.chain").AppendEmpty().SetStr("replicaset.apps/" + owner)
	scope := rl.ScopeLogs().AppendEmpty()
	for _, reason := range reasons {
		record := scope.LogRecords().AppendEmpty()
		record.SetEventName("k8s.event")
		record.SetTimestamp(pcommon.NewTimestampFromTime(at))
		record.Body().SetStr(reason)
		record.Attributes().PutStr("k8s.event.uid", name+reason)
		record.Attributes().PutStr("k8s.event.reason", reason)
		record.Attributes().PutStr("k8s.event.type", map[bool]string{true: "Warning", false: "Normal"}[reason == "BackOff"])
	}
	return logs
}

func TestCompleteRolloutIsDeliveredSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Scheduled", "Created", "Started")))
		time.Sleep(9 * time.Second)
		assert.Empty(t, p.spans())
		time.Sleep(3 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "schedule", "start app"}, p.spans())
		p.stop(t)
		assert.Len(t, p.spans(), 4, "nothing is delivered twice")
	})
}

func TestIncompleteRolloutIsDeliveredAfterTheIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Scheduled")))
		time.Sleep(290 * time.Second)
		assert.Empty(t, p.spans())
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "schedule"}, p.spans())

		// Late records open it again, and change what was delivered.
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Created", "Started")))
		time.Sleep(20 * time.Second)
		require.Len(t, p.received(), 2)
		assert.Contains(t, p.spans(), "rollout deployment/shop complete")
		assert.Equal(t, rootOf(p.received()[0]), rootOf(p.received()[1]), "the same ids")
		p.stop(t)
	})
}

// TestJobThatFailsLate: the record of the failure opens the rollout again, and makes its span an error.
func TestJobThatFailsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e, epoch := start(t, nil, nil), &environment{}, time.Now()
		job := e.newWorkload("Job", "import")
		pod := job.owned("Pod", job.name+"-x", "uid-x")
		for i, h := range []happening{
			{0, job, "SuccessfulCreate", "Created pod: " + pod.name, ""}, {0, pod, "Started", "Container started", "app"},
			{3 * time.Hour, job, "DeadlineExceeded", "Job was active longer than specified deadline", ""},
		} {
			time.Sleep(time.Until(epoch.Add(h.at)))
			require.NoError(t, p.ConsumeLogs(t.Context(), e.logsOf([]record{{h, fmt.Sprint("event-", i), h.at, 1}}, epoch)))
		}
		time.Sleep(time.Minute)
		p.stop(t)
		require.Len(t, p.received(), 2)
		before, after := rootOf(p.received()[0]), rootOf(p.received()[1])
		assert.Equal(t, before, after, "the same ids")
		for span := range allSpans(p.received()[1]) {
			assert.Equal(t, "Job was active longer than specified deadline", span.Status().Message(), span.Name())
		}
	})
}

// TestProbeThatFailsForever: a kubelet writes 25 Events about a pod at once, and then one in five minutes. The trace
// is complete only when the probe has not failed for longer.
func TestProbeThatFailsForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e, epoch := start(t, nil, nil), &environment{}, time.Now()
		d := e.newWorkload("Deployment", "shop")
		rs := d.owned("ReplicaSet", d.name+"-a", "uid-a")
		pod := rs.owned("Pod", rs.name+"-x", "uid-x")
		says := func(at time.Duration, reason, uid string, count int64) {
			time.Sleep(time.Until(epoch.Add(at)))
			logs := e.logsOf([]record{{happening{at, pod, reason, reason, "app"}, uid, 5 * time.Second, count}}, epoch)
			require.NoError(t, p.ConsumeLogs(t.Context(), logs))
		}
		for _, reason := range []string{"Pulling", "Pulled", "Created", "Started"} {
			says(4*time.Second, reason, reason, 1)
		}
		for i := range int64(21) { // Every 5 s until 1m45s, which is more than half of idle_timeout before 5m5s.
			says(5*time.Second+time.Duration(i)*5*time.Second, "Unhealthy", "probe", i+1)
		}
		for i := range int64(12) {
			says(305*time.Second+time.Duration(i)*5*time.Minute, "Unhealthy", "probe", 61*(i+1))
		}
		assert.Contains(t, p.spans()[0], "incomplete")
		for _, name := range p.spans() {
			assert.False(t, strings.HasSuffix(name, " complete"), name)
		}
		time.Sleep(11 * time.Minute)
		assert.True(t, slices.ContainsFunc(p.spans(), func(name string) bool { return strings.HasSuffix(name, " complete") }))
		p.stop(t)
	})
}

// TestRestartedContainerWaits: a container that ended can end again, so its last start is not enough.
func TestRestartedContainerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		at := time.Now()
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", at, "Started")))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", at.Add(time.Second), "BackOff")))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", at.Add(2*time.Second), "Started")))
		time.Sleep(290 * time.Second)
		assert.Empty(t, p.spans())
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "start app", "restart app"}, p.spans())
		p.stop(t)
	})
}

// TestRecoveryAfterTheDelivery: a container that crashed for longer than idle_timeout goes on. All that
// comes is repeats, which are no news.
func TestRecoveryAfterTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		again := func(reason string) {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
		}
		again("Started")
		for range 4 {
			time.Sleep(time.Second)
			again("BackOff")
			time.Sleep(4 * time.Minute)
			again("Started")
		}
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "start app", "restart app"}, p.spans(), "delivered once")
		killed := &disk{values: d.content()}
		p.stop(t)

		p = start(t, killed, nil)
		time.Sleep(6 * time.Minute)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "start app", "restart app"}, p.spans())
		p.stop(t)
	})
}

// TestRecoveryDuringTheDelivery: the last start of a container comes while the spans are delivered.
func TestRecoveryDuringTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for _, reason := range []string{"Started", "BackOff"} {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
			time.Sleep(time.Second)
		}
		p.next(func() {
			time.Sleep(time.Second)
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Started")))
		})
		time.Sleep(6 * time.Minute)
		assert.Equal(t, "rollout deployment/shop incomplete", p.spans()[0])
		time.Sleep(6 * time.Minute)
		assert.Contains(t, p.spans(), "rollout deployment/shop complete")
		p.stop(t)
	})
}

// TestRestartBeforeTheEnd: a container that started immediately before the end of the wait can crash.
func TestRestartBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for _, reason := range []string{"Started", "BackOff"} {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
			time.Sleep(time.Second)
		}
		time.Sleep(295 * time.Second)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Started")))
		time.Sleep(10 * time.Second)
		assert.Empty(t, p.spans(), "it looks as if it had recovered")
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "BackOff")))
		time.Sleep(10 * time.Minute)
		assert.Contains(t, p.spans(), "rollout deployment/shop incomplete")
		assert.NotContains(t, p.spans(), "rollout deployment/shop complete")
		p.stop(t)
	})
}

// TestRecoveryOfOnePod: a pod goes on after the delivery, but its rollout stays incomplete.
func TestRecoveryOfOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-2", time.Now(), "Scheduled")))
		for _, reason := range []string{"Started", "BackOff"} {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
			time.Sleep(time.Second)
		}
		time.Sleep(6 * time.Minute)
		assert.Len(t, p.received(), 1)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Started")))
		time.Sleep(9 * time.Minute)
		assert.Len(t, p.received(), 1, "more repeats can come")
		time.Sleep(2 * time.Minute)
		require.Len(t, p.received(), 2)
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "start app", "restart app"}, p.spans()[6:], "what has changed")
		time.Sleep(time.Hour)
		assert.Len(t, p.received(), 2)
		p.stop(t)
	})
}

// TestCrashAfterTheDelivery: a container that had recovered ends again, and never starts. This is no news.
func TestCrashAfterTheDelivery(t *testing.T) {
	for name, after := range map[string]func(*testing.T, *disk, *process) *process{
		"no more records": func(t *testing.T, _ *disk, p *process) *process {
			time.Sleep(11 * time.Minute)
			p.stop(t)
			return p
		},
		"a restart": func(t *testing.T, d *disk, p *process) *process {
			killed := &disk{values: d.content()}
			p.stop(t)
			p = start(t, killed, nil)
			time.Sleep(11 * time.Minute)
			p.stop(t)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{values: map[string][]byte{}}
				p := start(t, d, nil)
				for _, reason := range []string{"Started", "BackOff", "Started"} {
					require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
					time.Sleep(time.Second)
				}
				time.Sleep(6 * time.Minute)
				assert.Contains(t, p.spans(), "rollout deployment/shop complete")
				require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "BackOff")))
				p = after(t, d, p)
				assert.Contains(t, p.spans(), "rollout deployment/shop incomplete")
			})
		})
	}
}

// TestChangesAreDeliveredAtTheEnd: without storage, what repeats have changed is not lost at an orderly stop.
func TestChangesAreDeliveredAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for range 2 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "BackOff")))
			time.Sleep(6 * time.Minute)
		}
		assert.Len(t, p.received(), 1)
		p.stop(t)
		assert.Len(t, p.received(), 2)
	})
}

// crashUntilTheLongestWait gives the connector the records of a container that crashes, and that has
// started again 5 s before twice idle_timeout is over. The function gives it the records that follow.
func (p *process) crashUntilTheLongestWait(t *testing.T) (says func(at time.Duration, reason string)) {
	t.Helper()
	began := time.Now()
	says = func(at time.Duration, reason string) {
		time.Sleep(at - time.Since(began))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), reason)))
	}
	says(0, "Started")
	says(time.Second, "BackOff")
	says(299*time.Second, "Started")
	says(310*time.Second, "BackOff")
	says(595*time.Second, "Started")
	return says
}

// TestRestartBeforeTheLongestWait: a container that crashes forever happens to run when its rollout has
// waited for twice idle_timeout. The trace cannot stay complete.
func TestRestartBeforeTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		says := p.crashUntilTheLongestWait(t)
		says(610*time.Second, "BackOff")
		assert.Contains(t, p.spans(), "rollout deployment/shop complete", "after ten minutes")
		killed := &disk{values: d.content()}
		p.stop(t)

		p = start(t, killed, nil)
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "start app", "restart app"}, p.spans())
		p.stop(t)
	})
}

// TestCrashesAfterTheLongestWait: as before, and the container never stops crashing.
func TestCrashesAfterTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		says := p.crashUntilTheLongestWait(t)
		for at := 610 * time.Second; at < time.Hour; at += 4 * time.Minute {
			says(at, "BackOff")
		}
		assert.Equal(t, []string{
			"rollout deployment/shop complete", "pod shop-a-1", "start app", "restart app",
			"rollout deployment/shop incomplete", "pod shop-a-1", "start app", "restart app",
		}, p.spans())
		p.stop(t)
	})
}

func rootOf(traces ptrace.Traces) string {
	for span := range allSpans(traces) {
		if span.ParentSpanID().IsEmpty() {
			return span.TraceID().String() + span.SpanID().String()
		}
	}
	return ""
}

func TestOpenRolloutSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, d := time.Now(), &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", at, "Scheduled", "Created")))
		killed := &disk{values: d.content()}
		p.stop(t)
		assert.Empty(t, p.spans(), "with storage, the rollout goes on after the restart")

		p = start(t, killed, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", at, "Created", "Started")))
		time.Sleep(12 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "schedule", "start app"}, p.spans())
		p.stop(t)

		p = start(t, killed, nil)
		time.Sleep(time.Hour)
		assert.Empty(t, p.spans(), "what was delivered is saved")
		p.stop(t)
	})
}

// TestNewsDuringADelivery: news of a rollout come while it is delivered with another one. They survive a
// restart.
func TestNewsDuringADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		p.next(func() {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-2", time.Now(), "Started")))
		})
		for _, name := range []string{"shop-a-1", "shop-b-1"} {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(name, time.Now(), "Started")))
		}
		time.Sleep(12 * time.Second)
		require.Len(t, p.received(), 1, "both in one request")
		killed := &disk{values: d.content()}
		p.stop(t)

		p = start(t, killed, nil)
		time.Sleep(12 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-2", "start app"}, p.spans())
		p.stop(t)
	})
}

func TestWithoutStorageTheRestIsDeliveredAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Scheduled")))
		p.stop(t)
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "schedule"}, p.spans())
	})
}

func TestRecordsThatCannotBeSavedAreNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		d.fail(errors.New("disk full"))
		logs := records("shop-a-1", time.Now(), "Scheduled", "Started")
		err := p.ConsumeLogs(t.Context(), logs)
		require.ErrorContains(t, err, "disk full")
		assert.False(t, consumererror.IsPermanent(err))
		time.Sleep(time.Hour)
		assert.Empty(t, p.spans(), "nothing is known of them")

		d.fail(nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), logs))
		time.Sleep(12 * time.Second)
		assert.Len(t, p.spans(), 4)
		p.stop(t)
	})
}

func TestSnapshotReplacesTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 8000
		at, d := time.Now(), &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		for i := range pods {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-a-%d", i), at, "Scheduled", "Pulling", "Pulled", "Created", "Started")))
		}
		assert.Less(t, len(d.content()), pods/2, "a snapshot has replaced entries")
		p.stop(t)

		p = start(t, d, nil)
		time.Sleep(12 * time.Second)
		assert.Len(t, p.spans(), 1+4*pods)
		p.stop(t)
	})
}

func TestRetryAndPermanentErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		p.fail(errors.New("unavailable"))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "Started")))
		time.Sleep(time.Minute)
		p.fail(nil)
		time.Sleep(time.Minute)
		assert.Len(t, p.spans(), 3, "it was delivered later")

		p.fail(consumererror.NewPermanent(errors.New("too large")))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-b-1", time.Now(), "Started")))
		time.Sleep(time.Hour)
		p.fail(nil)
		time.Sleep(time.Hour)
		assert.Len(t, p.spans(), 3, "it was dropped")
		assert.EqualValues(t, 3, sumOf(t, p, "otelcol_kube_rollouts_spans_dropped"))
		p.stop(t)
	})
}

// TestRejectedRollout: of two rollouts in a request, the pipeline rejects one permanently.
func TestRejectedRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		p.reject(func(traces ptrace.Traces) error {
			for span := range allSpans(traces) {
				if span.Name() == "pod shop-a-1" {
					return consumererror.NewPermanent(errors.New("not this one"))
				}
			}
			return nil
		})
		for _, name := range []string{"shop-a-1", "shop-b-1"} {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(name, time.Now(), "Started")))
		}
		time.Sleep(12 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-b-1", "start app"}, p.spans())
		assert.EqualValues(t, 3, sumOf(t, p, "otelcol_kube_rollouts_spans_dropped"))
		p.stop(t)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 2 })
		for i := range 4 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-%d-1", i), time.Now(), "Scheduled")))
			time.Sleep(time.Millisecond) // Too fast for the loop, which would deliver them.
		}
		assert.EqualValues(t, 2, sumOf(t, p, "otelcol_kube_rollouts_evicted"))
		time.Sleep(time.Hour)
		assert.Contains(t, p.spans(), "pod shop-2-1")
		assert.Contains(t, p.spans(), "pod shop-3-1")
		assert.NotContains(t, p.spans(), "pod shop-0-1")
		p.stop(t)
	})
}

// TestJobsDoNotDisplaceOthers: a CronJob makes more Jobs than the connector can keep. It still knows a rollout of a
// Deployment when a container crashes later, so the rollout stays complete.
func TestJobsDoNotDisplaceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e, epoch := start(t, nil, func(c *Config) { c.MaxRollouts = 20 }), &environment{}, time.Now()
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", epoch, "Scheduled", "Started")))
		report := e.newWorkload("CronJob", "report")
		for i := range 100 {
			time.Sleep(15 * time.Second)
			job := report.owned("Job", fmt.Sprint("report-", i), fmt.Sprint("uid-", i))
			pod := job.owned("Pod", job.name+"-x", job.uid+"-x")
			at := time.Since(epoch)
			require.NoError(t, p.ConsumeLogs(t.Context(), e.logsOf([]record{{happening{at, pod, "Started", "Started", "app"}, job.uid, at, 1}}, epoch)))
		}
		assert.Positive(t, sumOf(t, p, "otelcol_kube_rollouts_evicted"))
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now(), "BackOff")))
		time.Sleep(time.Hour)
		assert.Contains(t, p.spans(), "restart app", "the crash is in the trace")
		assert.NotContains(t, p.spans(), "rollout deployment/shop incomplete")
		p.stop(t)
	})
}

// runOf returns records of the pod of a run that a CI system makes, which lives once. The
// controller of the run can own the pod, or another object between them, or nothing owns it.
func runOf(i int, at time.Time, reasons ...string) plog.Logs {
	name := fmt.Sprint("build-x-", i)
	logs := records(name, at, reasons...)
	resource := logs.ResourceLogs().At(0).Resource().Attributes()
	chain, _ := resource.Get("k8s.owner.chain")
	chain.Slice().RemoveIf(func(pcommon.Value) bool { return true })
	kind := []string{"PipelineRun", "Pod"}[i%2]
	resource.PutStr("k8s.namespace.name", fmt.Sprint("ci-", i%3))
	resource.PutStr("k8s.workload.kind", kind)
	resource.PutStr("k8s.workload.name", name)
	resource.PutStr("k8s.workload.uid", "uid-"+name)
	if kind == "PipelineRun" {
		resource.PutStr("k8s.owner.uid", "uid-task-"+name)
		chain.Slice().AppendEmpty().SetStr("taskrun.tekton.dev/" + name)
		chain.Slice().AppendEmpty().SetStr("pipelinerun.tekton.dev/" + name)
	}
	return logs
}

// TestRunsDoNotDisplaceOthers: 10,000 runs in an hour. Each fails, so that it waits for news. The
// connector still knows the rollouts of Deployments that crash later, and it does not end the wait
// of one that goes on.
func TestRunsDoNotDisplaceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for i := range 100 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-%d-1", i), time.Now(), "Scheduled", "Started")))
		}
		for i := range 10_000 {
			if i == 5_000 {
				require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-slow-1", time.Now(), "Scheduled")))
			}
			if i == 5_700 { // four minutes later
				require.NotContains(t, p.spans(), "pod shop-slow-1", "before idle_timeout")
			}
			require.NoError(t, p.ConsumeLogs(t.Context(), runOf(i, time.Now(), "Scheduled", "Started", "BackOff")))
			time.Sleep(time.Hour / 10_000)
		}
		assert.Positive(t, sumOf(t, p, "otelcol_kube_rollouts_evicted"))
		assert.Zero(t, sumOf(t, p, "otelcol_kube_rollouts_evicted", attribute.String("state", "open")))
		for i := range 100 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-%d-1", i), time.Now(), "BackOff")))
		}
		time.Sleep(time.Hour)
		outcomes := map[string]int{}
		for _, name := range p.spans() {
			if outcome, ok := strings.CutPrefix(name, "rollout deployment/shop "); ok {
				outcomes[outcome]++
			}
		}
		assert.Equal(t, map[string]int{"complete": 100, "incomplete": 1}, outcomes)
		p.stop(t)
	})
}

// TestNamesWithoutARevision: StatefulSets without a record of their pods do not take memory without
// bound.
func TestNamesWithoutARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e, epoch := start(t, nil, func(c *Config) { c.MaxRollouts = 20 }), &environment{}, time.Now()
		for i := range 100 {
			time.Sleep(time.Second)
			set, at := e.newWorkload("StatefulSet", "db"), time.Since(epoch)
			made := happening{at, set, "SuccessfulCreate", fmt.Sprintf("create Pod %s-0 in StatefulSet %s successful", set.name, set.name), ""}
			require.NoError(t, p.ConsumeLogs(t.Context(), e.logsOf([]record{{made, fmt.Sprint("uid-", i), at, 1}}, epoch)))
		}
		assert.LessOrEqual(t, len(p.Logs.(*output).tracker.model.Workloads), 2*20+1)
		p.stop(t)
	})
}

// TestMissingAttributeIsReportedOnce: the receiver's configuration disables an attribute. There are
// no traces rather than wrong ones, also not of what the Deployment says itself.
func TestMissingAttributeIsReportedOnce(t *testing.T) {
	for _, name := range []string{"k8s.workload.uid", "k8s.owner.chain"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, logged := observer.New(zap.WarnLevel)
				p, e, epoch := startLogging(t, nil, nil, zap.New(logger)), newEnvironment(1), time.Now()
				e.happened, e.drops = nil, 0
				e.deployment(0)
				for _, r := range e.recordsOf(e.happened) {
					logs := e.logsOf([]record{r}, epoch)
					of := logs.ResourceLogs().At(0)
					of.Resource().Attributes().Remove(name)
					of.ScopeLogs().At(0).Scope().SetName("github.com/kubeevents/kubeeventsreceiver")
					of.ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr("k8s.owner.resolution", "complete")
					require.NoError(t, p.ConsumeLogs(t.Context(), logs))
				}
				time.Sleep(time.Hour)
				assert.Empty(t, p.spans())
				require.Len(t, logged.All(), 1)
				assert.Contains(t, logged.All()[0].Message, "kube_rollouts needs the attribute "+name)
				p.stop(t)
			})
		})
	}
}

// TestCrowdedRolloutsAreDeliveredEarly: a container that crashes has no news. Other workloads that
// begin all the time must not make the connector forget it before its trace is delivered.
func TestCrowdedRolloutsAreDeliveredEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 60 })
		for i := range 200 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-crashing-1", time.Now(), "BackOff")))
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-%d-1", i), time.Now(), "Scheduled")))
			time.Sleep(1100 * time.Millisecond)
		}
		delivered := map[string]bool{}
		for _, name := range p.spans() {
			delivered[name] = true
		}
		assert.True(t, delivered["pod shop-crashing-1"], "before idle_timeout")
		for i := range 140 {
			assert.True(t, delivered[fmt.Sprintf("pod shop-%d-1", i)], i)
		}
		p.stop(t)
	})
}

// TestCrowdedRestarts: if there are too many rollouts, one with a container that can still end is not kept
// open at the cost of others.
func TestCrowdedRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 60 })
		for i := range 200 {
			for _, reason := range []string{"Started", "BackOff", "Started"} {
				require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-%d-1", i), time.Now(), reason)))
				time.Sleep(time.Second)
			}
		}
		assert.Positive(t, sumOf(t, p, "otelcol_kube_rollouts_evicted"))
		assert.Zero(t, sumOf(t, p, "otelcol_kube_rollouts_evicted", attribute.String("state", "open")))
		p.stop(t)
	})
}

// TestARolloutWithMorePodsThanAllMayHave: it does not make the connector forget the others.
func TestARolloutWithMorePodsThanAllMayHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 5 })
		for i := range 10 * podsPerRollout {
			if i == 9*podsPerRollout {
				require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-small-1", time.Now(), "Scheduled")))
			}
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprint("shop-large-", i), time.Now(), "Scheduled")))
		}
		time.Sleep(time.Hour)
		assert.Contains(t, p.spans(), "pod shop-small-1")
		assert.Contains(t, p.spans(), "pod shop-large-0")
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-next-1", time.Now(), "Scheduled")))
		assert.Positive(t, sumOf(t, p, "otelcol_kube_rollouts_evicted"), "it is forgotten after its delivery")
		p.stop(t)
	})
}

// TestNewsAllTheTime: a rollout is delivered, even if its pods are replaced forever.
func TestNewsAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for i := range 25 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-a-%d", i), time.Now(), "Scheduled", "FailedMount")))
			time.Sleep(time.Minute)
		}
		assert.Len(t, p.received(), 2, "every ten minutes")
		assert.Contains(t, p.spans(), "pod shop-a-0")
		p.stop(t)
	})
}

// TestRepeatsAreNoNews: kubelets write a new Event if the message differs, and more of them than the
// connector keeps.
func TestRepeatsAreNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for i := range 200 {
			logs := records("shop-a-1", time.Now(), "Pulled", "BackOff")
			for _, record := range logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
				record.Attributes().PutStr("k8s.event.uid", fmt.Sprint("event-", i, record.Body().Str()))
			}
			require.NoError(t, p.ConsumeLogs(t.Context(), logs))
			time.Sleep(2 * time.Second)
		}
		assert.Len(t, p.received(), 1, "after five minutes")
		p.stop(t)
	})
}

// sumOf returns the sum of the points that have these attributes.
func sumOf(t *testing.T, p *process, name string, with ...attribute.KeyValue) (total int64) {
	t.Helper()
	found, err := p.telemetry.GetMetric(name)
	require.NoError(t, err)
	for _, point := range found.Data.(metricdata.Sum[int64]).DataPoints {
		if !slices.ContainsFunc(with, func(kv attribute.KeyValue) bool { value, _ := point.Attributes.Value(kv.Key); return value != kv.Value }) {
			total += point.Value
		}
	}
	return total
}

// TestLargeRolloutIsCut: 10,000 pods make one trace, in several requests of at most 2 MiB.
func TestLargeRolloutIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		at := time.Now()
		for i := range 10_000 {
			require.NoError(t, p.ConsumeLogs(t.Context(), records(fmt.Sprintf("shop-a-%d", i), at, "Scheduled", "Started")))
		}
		time.Sleep(12 * time.Second)
		assert.Len(t, p.spans(), 1+3*10_000)
		assert.Greater(t, len(p.received()), 1)
		traces := map[pcommon.TraceID]bool{}
		for _, request := range p.received() {
			assert.LessOrEqual(t, (&ptrace.ProtoMarshaler{}).TracesSize(request), 2<<20)
			for span := range allSpans(request) {
				traces[span.TraceID()] = true
			}
		}
		assert.Len(t, traces, 1)
		p.stop(t)
	})
}

// TestStampedRecords: a record gets the ids of its span, if it has no trace context.
func TestStampedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory, out := NewFactory(), &sink{}
		config := factory.CreateDefaultConfig().(*Config)
		config.Stamp = true
		settings := connectortest.NewNopSettings(metadata.Type)
		toTraces, err := factory.CreateLogsToTraces(t.Context(), settings, config, out)
		require.NoError(t, err)
		toLogs, err := factory.CreateLogsToLogs(t.Context(), settings, config, out)
		require.NoError(t, err)
		for _, c := range []component.Component{toTraces, toLogs} {
			require.NoError(t, c.Start(t.Context(), host{}))
		}
		logs := records("shop-a-1", time.Now(), "Scheduled", "Started", "Unrelated")
		own := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1)
		own.SetTraceID(pcommon.TraceID{1})
		require.NoError(t, toTraces.ConsumeLogs(t.Context(), logs))
		require.NoError(t, toLogs.ConsumeLogs(t.Context(), logs))
		for _, c := range []component.Component{toTraces, toLogs} {
			require.NoError(t, c.Shutdown(t.Context()))
		}

		ids := map[string]string{}
		for span := range allSpans(out.received()[0]) {
			ids[span.Name()] = span.TraceID().String() + span.SpanID().String()
		}
		stamped := out.logs[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		assert.Equal(t, ids["pod shop-a-1"], stamped.At(0).TraceID().String()+stamped.At(0).SpanID().String())
		assert.Equal(t, pcommon.TraceID{1}, stamped.At(1).TraceID(), "its own trace context stays")
		assert.Equal(t, 3, stamped.Len())
	})
}

// TestRecoveryAtAnyTime: the last start comes shortly before, during or after the end of a wait.
func TestRecoveryAtAnyTime(t *testing.T) {
	for at := 280 * time.Second; at < 330*time.Second; at += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, &disk{values: map[string][]byte{}}, nil)
			began := time.Now()
			says := func(reason string) {
				require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", time.Now().Truncate(time.Second), reason)))
			}
			for _, reason := range []string{"Scheduled", "Pulled", "Created", "Started"} {
				says(reason)
			}
			for time.Since(began) < at-4*time.Second {
				time.Sleep(2 * time.Second)
				says("BackOff")
			}
			time.Sleep(at - time.Since(began))
			for _, reason := range []string{"Pulled", "Created", "Started"} {
				says(reason)
			}
			time.Sleep(20 * time.Minute)
			assert.Contains(t, p.spans(), "rollout deployment/shop complete", "%v", at)
			p.stop(t)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// sink keeps what the connector delivers.
type sink struct {
	mu       sync.Mutex // guards the following
	requests []ptrace.Traces
	logs     []plog.Logs
	during   func()                    // called during the next request of traces; nil: nothing is
	rejects  func(ptrace.Traces) error // the error of a request; nil: none has one
}

func (s *sink) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	if during := s.next(nil); during != nil {
		during()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rejects != nil {
		if err := s.rejects(traces); err != nil {
			return err
		}
	}
	s.requests = append(s.requests, traces)
	return nil
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
func (s *sink) fail(err error) { s.reject(func(ptrace.Traces) error { return err }) }

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
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
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

	mu     sync.Mutex // guards the following
	values map[string][]byte
	err    error
	left   int // how many writes succeed before err
}

// fail sets the error of the next writes; nil: none.
func (d *disk) fail(err error) { d.failAfter(0, err) }

// failAfter sets the error of all writes after the next ones.
func (d *disk) failAfter(left int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.err = left, err
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

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range ops {
		if d.left--; d.left < 0 && d.err != nil {
			err := d.err
			d.mu.Unlock()
			time.Sleep(time.Second) // More records come meanwhile.
			d.mu.Lock()
			return err
		}
		if op.Type == storage.Set {
			d.values[op.Key] = op.Value
		} else {
			delete(d.values, op.Key)
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
	if d == nil {
		return startWith(t, nil, change, zap.NewNop())
	}
	return startWith(t, d, change, zap.NewNop())
}

func startWith(t testing.TB, d storage.Extension, change func(*Config), logger *zap.Logger) *process {
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

// consume gives the connector records. It never fails.
func (p *process) consume(t testing.TB, logs plog.Logs) {
	t.Helper()
	require.NoError(t, p.ConsumeLogs(t.Context(), logs))
}

func (p *process) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Shutdown(context.WithoutCancel(t.Context())))
	require.NoError(t, p.telemetry.Shutdown(context.WithoutCancel(t.Context())))
}

// records returns one record of the pod for each reason, all of now. BackOff is a warning.
func records(name string, reasons ...string) plog.Logs {
	lines := ""
	for _, reason := range reasons {
		lines += "0s Pod/" + name + " " + strings.Replace(reason, "BackOff", "!BackOff", 1) + "{app}: " + reason + "\n"
	}
	return logsOf(story.Records(lines), time.Now())
}

// logsOf returns records of a story that begins at a time.
func logsOf(all []story.Record, epoch time.Time) plog.Logs {
	logs := plog.NewLogs()
	for _, r := range all {
		r.Logs(epoch).ResourceLogs().MoveAndAppendTo(logs.ResourceLogs())
	}
	return logs
}

// tell gives the connector the records of a story when their time comes.
func (p *process) tell(t testing.TB, lines string) {
	t.Helper()
	epoch := time.Now()
	for _, r := range story.Records(lines) {
		time.Sleep(time.Until(epoch.Add(r.At)))
		p.consume(t, r.Logs(epoch))
	}
}

func TestWithoutStorageTheRestIsDeliveredAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		require.NoError(t, p.ConsumeLogs(t.Context(), records("shop-a-1", "Scheduled")))
		p.stop(t)
		assert.Equal(t, []string{"rollout deployment/shop incomplete", "pod shop-a-1", "schedule"}, p.spans())
	})
}

// TestMissingAttributesAreReportedOnce: the receiver's configuration disables an attribute.
func TestMissingAttributesAreReportedOnce(t *testing.T) {
	for _, attribute := range []string{"k8s.owner.chain", "k8s.workload.uid"} {
		synctest.Test(t, func(t *testing.T) {
			logger, logged := observer.New(zap.WarnLevel)
			p := startWith(t, nil, nil, zap.New(logger))
			for range 2 {
				logs := records("shop-a-1", "Scheduled")
				logs.ResourceLogs().At(0).Resource().Attributes().Remove(attribute)
				p.consume(t, logs)
			}
			time.Sleep(time.Hour)
			assert.Empty(t, p.spans())
			require.Len(t, logged.All(), 1)
			assert.Equal(t, []any{attribute}, logged.All()[0].ContextMap()["attributes"])
			p.stop(t)
		})
	}
}

// TestEachPartIsDeliveredOnce: a pod when it has run for a minute, the rollout with it, and late news change nothing.
func TestEachPartIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		p.consume(t, records("shop-a-1", "Scheduled", "Created", "Started"))
		time.Sleep(59 * time.Second)
		assert.Empty(t, p.spans())
		time.Sleep(3 * time.Second)
		all := []string{"rollout deployment/shop complete", "pod shop-a-1", "schedule", "start app"}
		assert.Equal(t, all, p.spans())
		p.consume(t, records("shop-a-1", "BackOff"))
		time.Sleep(time.Hour)
		p.consume(t, records("shop-a-1", "Killing"))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, append(all, "stop shop-a-1"), p.spans(), "the end of the pod is a part of its own")
		p.stop(t)
		assert.Len(t, p.spans(), 5)
	})
}

// TestProvenRolloutIsDeliveredSoon: a scale-down of the old revision proves that the new pod is available. A probe that
// failed before does not matter, however slowly the program started.
func TestProvenRolloutIsDeliveredSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		p.tell(t, `0s Deployment/web ScalingReplicaSet: Scaled up replica set web-b from 0 to 1
0s Pod/web-b-x Scheduled: Successfully assigned
1s Pod/web-b-x Started{app}: Container started
5s Pod/web-b-x !Unhealthy{app}: Readiness probe failed
6m0s Deployment/web ScalingReplicaSet: Scaled down replica set web-a from 1 to 0`)
		time.Sleep(12 * time.Second)
		assert.Contains(t, p.spans(), "rollout deployment/web complete")
		p.stop(t)
	})
}

func TestFailedAndIncompleteRollouts(t *testing.T) {
	for _, c := range []struct {
		reasons []string
		outcome string
	}{{[]string{"Scheduled"}, "incomplete"}, {[]string{"Scheduled", "Started", "BackOff"}, "failed"}} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, nil, nil)
			p.consume(t, records("shop-a-1", c.reasons...))
			time.Sleep(290 * time.Second)
			assert.Empty(t, p.spans())
			time.Sleep(20 * time.Second)
			assert.Equal(t, "rollout deployment/shop "+c.outcome, p.spans()[0])
			p.stop(t)
		})
	}
}

// TestJobThatFailsLate: the trace waits for the end of the Job, and its pod does not.
func TestJobThatFailsLate(t *testing.T) {
	for reason, outcome := range map[string]string{"!DeadlineExceeded": "failed", "Completed": "complete"} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, nil, nil)
			p.tell(t, `0s Job/import SuccessfulCreate: Created pod: import-x
0s Pod/import-x<job.batch/import Started{app}: Container started
3h0m0s Job/import `+reason+`: the Job has ended`)
			assert.Equal(t, []string{"pod import-x", "schedule", "start app"}, p.spans())
			time.Sleep(12 * time.Second)
			assert.Contains(t, p.spans(), "rollout job/import "+outcome)
			p.stop(t)
		})
	}
}

func TestOpenRolloutSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		p.consume(t, records("shop-a-1", "Scheduled", "Created"))
		p.consume(t, records("shop-a-2", "Started"))
		time.Sleep(63 * time.Second)
		killed := &disk{values: d.content()}
		p.stop(t)
		assert.Equal(t, []string{"pod shop-a-2", "start app"}, p.spans(), "with storage, the rollout goes on after the restart")

		time.Sleep(10 * time.Minute)
		p = start(t, killed, nil)
		time.Sleep(30 * time.Second)
		p.consume(t, records("shop-a-1", "Created", "Started"))
		time.Sleep(63 * time.Second)
		assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "schedule", "start app"}, p.spans())
		p.stop(t)

		p = start(t, killed, nil)
		time.Sleep(time.Hour)
		assert.Empty(t, p.spans(), "what was delivered is saved")
		p.stop(t)
	})
}

// TestFullDisk: records go on, and what could not be saved is saved later.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		d.fail(errors.New("disk full"))
		p.consume(t, records("shop-a-1", "Scheduled", "Started"))
		time.Sleep(time.Second / 2)
		p.consume(t, records("shop-b-1", "Started"))
		time.Sleep(10 * time.Second)
		for i := range 8 { // More than waits for the storage.
			large := with(records(fmt.Sprintf("shop-%d-1", i), "Started"), "k8s.namespace.label.note", strings.Repeat("x", 1_200_000))
			p.consume(t, large)
		}
		assert.Positive(t, sumOf(t, p, "otelcol_kube_incidents_storage_errors"))
		d.fail(nil)
		time.Sleep(40 * time.Second)
		killed := &disk{values: d.content()}
		p.stop(t)
		p = start(t, killed, nil)
		time.Sleep(63 * time.Second)
		assert.Subset(t, p.spans(), []string{"pod shop-a-1", "pod shop-b-1", "pod shop-0-1"})
		p.stop(t)
	})
}

// TestARestartSavesEverythingInFewWrites: the first write after a start has all workloads.
func TestARestartSavesEverythingInFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		for i := range 300 { // More than a chunk.
			workload := with(records(fmt.Sprintf("shop-%d-1", i), "Scheduled", "Started"), "k8s.workload.uid", fmt.Sprint(i))
			p.consume(t, with(workload, "k8s.namespace.label.note", strings.Repeat("x", 8000)))
		}
		p.stop(t)
		for range 2 {
			killed := &disk{values: d.content()}
			p = start(t, killed, nil)
			p.consume(t, records("shop-late-1", "Started"))
			synctest.Wait()
			assert.Less(t, len(killed.content()), 6, "the head, and chunks of 1 MiB")
			d = &disk{values: killed.content()}
			p.stop(t)
		}
		p = start(t, d, nil)
		time.Sleep(63 * time.Second)
		for i := range 300 {
			require.Contains(t, p.spans(), fmt.Sprintf("pod shop-%d-1", i))
		}
		assert.Contains(t, p.spans(), "pod shop-late-1")
		p.stop(t)
	})
}

// slowDisk takes a second for each write.
type slowDisk struct{ *disk }

func (d slowDisk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d slowDisk) Set(ctx context.Context, key string, value []byte) error {
	time.Sleep(time.Second)
	return d.disk.Set(ctx, key, value)
}

// TestTheEndDuringASave saves what came since the save began, too.
func TestTheEndDuringASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := startWith(t, slowDisk{d}, nil, zap.NewNop())
		p.consume(t, records("shop-a-1", "Started"))
		time.Sleep(2500 * time.Millisecond) // The head and a chunk are written.
		p.consume(t, records("shop-b-1", "Started"))
		p.stop(t)
		p = start(t, d, nil)
		time.Sleep(63 * time.Second)
		assert.Subset(t, p.spans(), []string{"pod shop-a-1", "pod shop-b-1"})
		p.stop(t)
	})
}

// hanging is storage that never answers a write.
type hanging struct{ *disk }

func (h hanging) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return h, nil
}

func (hanging) Set(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestStorageThatHangs: neither the records nor the spans nor the end wait for it, and memory is bounded.
func TestStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startWith(t, hanging{&disk{values: map[string][]byte{}}}, nil, zap.NewNop())
		begin := time.Now()
		const count = 3000
		for i := range count {
			p.consume(t, with(records(fmt.Sprintf("shop-%d-1", i), "Scheduled", "Started"), "k8s.workload.uid", fmt.Sprint(i)))
		}
		assert.Equal(t, begin, time.Now())
		saved := p.Logs.(*output).tracker.saved
		saved.mu.Lock()
		assert.LessOrEqual(t, saved.unsaved.Size(), maxUnsaved+100_000)
		saved.mu.Unlock()
		time.Sleep(70 * time.Second)
		assert.Len(t, p.spans(), 4*count)
		begin = time.Now()
		p.stop(t)
		assert.LessOrEqual(t, time.Since(begin), shutdownTimeout)
	})
}

// TestDamagedStorage: a damaged entry costs this entry, and a damaged head all of them. The connector starts.
func TestDamagedStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{}}
		p := start(t, d, nil)
		for _, name := range []string{"shop-a-1", "shop-b-1"} {
			p.consume(t, records(name, "Scheduled", "Started"))
			synctest.Wait()
		}
		saved := d.content()
		p.stop(t)
		for key, names := range map[string][]string{"1/0": {"pod shop-b-1"}, "head": nil} {
			damaged := maps.Clone(saved)
			damaged[key] = []byte("{")
			logger, logged := observer.New(zap.ErrorLevel)
			p = startWith(t, &disk{values: damaged}, nil, zap.New(logger))
			time.Sleep(63 * time.Second)
			assert.Subset(t, p.spans(), names)
			assert.NotContains(t, p.spans(), "pod shop-a-1")
			assert.Len(t, logged.All(), 1, key)
			p.stop(t)
		}
	})
}

// TestRejectedRollout: the pipeline rejects one of two rollouts, permanently or not. The other one arrives. What is
// rejected for a while arrives later: see the simulation.
func TestRejectedRollout(t *testing.T) {
	for _, err := range []error{errors.New("not now"), consumererror.NewPermanent(errors.New("not this one"))} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, nil, nil)
			p.reject(func(traces ptrace.Traces) error {
				for span := range allSpans(traces) {
					if span.Name() == "pod shop-a-1" {
						return err
					}
				}
				return nil
			})
			for _, name := range []string{"shop-a-1", "shop-b-1"} {
				p.consume(t, records(name, "Started"))
			}
			time.Sleep(63 * time.Second)
			assert.Equal(t, []string{"rollout deployment/shop complete", "pod shop-b-1", "start app"}, p.spans())
			time.Sleep(2 * patience)
			assert.EqualValues(t, 3, sumOf(t, p, "otelcol_kube_incidents_spans_dropped"), "one rollout is given up")
			p.stop(t)
		})
	}
}

// TestPipelineThatHangs: the end does not wait for it, and neither do records.
func TestPipelineThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		hung := make(chan struct{})
		p.next(func() { <-hung })
		p.consume(t, records("shop-a-1", "Started"))
		time.Sleep(2 * time.Minute)
		begin := time.Now()
		p.consume(t, records("shop-b-1", "Started"))
		require.NoError(t, p.Shutdown(t.Context()))
		assert.Equal(t, shutdownTimeout, time.Since(begin))
		close(hung)
		require.NoError(t, p.telemetry.Shutdown(t.Context()))
	})
}

// with sets an attribute of the records' resources.
func with(logs plog.Logs, attribute, value string) plog.Logs {
	for _, resource := range logs.ResourceLogs().All() {
		resource.Resource().Attributes().PutStr(attribute, value)
	}
	return logs
}

// TestBoundOfATenant: what one tenant makes up displaces only what is in its own namespace.
func TestBoundOfATenant(t *testing.T) {
	for name, flood := range map[string]func(int) plog.Logs{
		"names of pods": func(i int) plog.Logs {
			line := fmt.Sprint("0s ReplicaSet/evil-a SuccessfulCreate: Created pod: ", strings.Repeat("x", 240), i)
			return logsOf(story.Records(line), time.Now())
		},
		"pods of one revision": func(i int) plog.Logs { return records(fmt.Sprint("evil-a-", i), "Scheduled", "Started") },
		"revisions": func(i int) plog.Logs {
			return records(fmt.Sprint("evil-", i, "-1"), "Scheduled", "Started")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, nil, func(c *Config) { c.MaxRollouts = 10 })
				p.consume(t, records("shop-a-1", "Scheduled"))
				for i := range 5_000 {
					p.consume(t, with(flood(i), "k8s.namespace.name", "evil"))
				}
				model := p.Logs.(*output).tracker.model
				assert.LessOrEqual(t, model.Size(), 10*bytesPerRollout)
				assert.Positive(t, sumOf(t, p, "otelcol_kube_incidents_evicted"))
				time.Sleep(time.Hour)
				assert.Contains(t, p.spans(), "pod shop-a-1")
				p.stop(t)
			})
		})
	}
}

// TestForgottenRollout: a late record of a rollout that was delivered and forgotten does not make a second one.
func TestForgottenRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 1 })
		p.consume(t, records("shop-a-1", "Started"))
		time.Sleep(2 * time.Minute)
		for i := range 100 {
			p.consume(t, records(fmt.Sprintf("shop-%d-1", i), "Started"))
		}
		p.consume(t, records("shop-a-1", "BackOff"))
		time.Sleep(time.Hour)
		count := 0
		for _, name := range p.spans() {
			if name == "pod shop-a-1" {
				count++
			}
		}
		assert.Equal(t, 1, count)
		p.stop(t)
	})
}

// TestForgottenDuringADelivery: what the pipeline rejects is not open again, and what is forgotten is closed.
func TestForgottenDuringADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, func(c *Config) { c.MaxRollouts = 1 })
		tracker := p.Logs.(*output).tracker
		isOpen := func(key rollout.Key) bool {
			tracker.mu.Lock()
			defer tracker.mu.Unlock()
			_, is := tracker.open[key]
			return is
		}
		p.consume(t, records("shop-a-1", "Started"))
		keys := tracker.due(true)
		require.Len(t, keys, 1)
		var rejected atomic.Bool
		p.reject(func(ptrace.Traces) error { return errors.New("busy") })
		p.next(func() {
			for i := range 100 {
				p.consume(t, records(fmt.Sprintf("shop-%d-1", i), "Started"))
			}
			rejected.Store(true)
		})
		for !rejected.Load() {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		assert.False(t, isOpen(keys[0]))

		tracker.mu.Lock()
		tracker.open[keys[0]] = look{}
		tracker.mu.Unlock()
		time.Sleep(2 * interval)
		synctest.Wait()
		assert.False(t, isOpen(keys[0]))
		p.stop(t)
	})
}

// TestLargeRolloutIsCut: 6,000 pods make one trace, in several requests of at most 2 MiB. News of another revision that
// come meanwhile are not forgotten.
func TestLargeRolloutIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		p.consume(t, records("shop-b-1", "Started"))
		time.Sleep(time.Second)
		for i := range 6_000 {
			p.consume(t, records(fmt.Sprintf("shop-a-%d", i), "Scheduled", "Started"))
		}
		large, traces := 0, map[pcommon.TraceID]bool{}
		p.reject(func(request ptrace.Traces) error {
			assert.LessOrEqual(t, (&ptrace.ProtoMarshaler{}).TracesSize(request), 2<<20)
			if request.SpanCount() > 1000 {
				large++
				p.consume(t, records("shop-b-2", "Started"))
			}
			for span := range allSpans(request) {
				if strings.HasPrefix(span.Name(), "pod shop-a-") {
					traces[span.TraceID()] = true
				}
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		assert.Greater(t, large, 1)
		assert.Len(t, traces, 1)
		assert.Len(t, p.spans(), 1+3*6_000+1+2*2)
		p.stop(t)
	})
}

// TestRepeatsAreNoNews: kubelets write a new Event if the message differs, and more of them than the
// connector keeps.
func TestRepeatsAreNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil, nil)
		for i := range 200 {
			p.tell(t, fmt.Sprintf("0s Pod/shop-a-1 Pulled{app}: %d\n0s Pod/shop-a-1 !BackOff{app}: %d", i, i))
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
		logs := records("shop-a-1", "Scheduled", "Started", "Unrelated")
		record := func(logs plog.Logs, i int) plog.LogRecord {
			return logs.ResourceLogs().At(i).ScopeLogs().At(0).LogRecords().At(0)
		}
		record(logs, 1).SetTraceID(pcommon.TraceID{1})
		require.NoError(t, toTraces.ConsumeLogs(t.Context(), logs))
		require.NoError(t, toLogs.ConsumeLogs(t.Context(), logs))
		for _, c := range []component.Component{toTraces, toLogs} {
			require.NoError(t, c.Shutdown(t.Context()))
		}

		ids := map[string]string{}
		for span := range allSpans(out.received()[0]) {
			ids[span.Name()] = span.TraceID().String() + span.SpanID().String()
		}
		stamped := record(out.logs[0], 0)
		assert.Equal(t, ids["pod shop-a-1"], stamped.TraceID().String()+stamped.SpanID().String())
		assert.Equal(t, pcommon.TraceID{1}, record(out.logs[0], 1).TraceID(), "its own trace context stays")
		assert.Equal(t, 3, out.logs[0].LogRecordCount())
	})
}

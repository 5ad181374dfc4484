// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

const quickRetries = "retry_on_failure: {initial_interval: 5ms, max_interval: 50ms}"

// runInto starts the receiver into a logs pipeline that passes on what decide allows; decide
// returns what the pipeline answers, and what it takes goes to the sink.
func (c *cluster) runInto(t *testing.T, decide func(ctx context.Context, logs plog.Logs, take func(plog.Logs)) error, config ...string) *running {
	t.Helper()
	r := &running{t: t, c: c, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}, host: &statusHost{}}
	logs, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		return decide(ctx, logs, func(taken plog.Logs) { _ = r.logs.ConsumeLogs(ctx, taken) })
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	r.stop = start(t, c.parse(t, config...), r.host, logs, r.metrics)
	return r
}

// TestWhatIsRefusedForNow is held, with its count, and then arrives exactly once and in order.
func TestWhatIsRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(plog.Logs, func(plog.Logs)) error{
		"all of it": func(plog.Logs, func(plog.Logs)) error { return errors.New("not now") },
		"after it was changed": func(logs plog.Logs, _ func(plog.Logs)) error {
			logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true })
			return errors.New("not now")
		},
		"but for a part": func(logs plog.Logs, take func(plog.Logs)) error {
			if logs.LogRecordCount() < 2 {
				return errors.New("not now")
			}
			part, rest := split(logs)
			take(part)
			return consumererror.NewLogs(errors.New("not all of it now"), rest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			var refusals atomic.Int64
			var open atomic.Bool
			r := kube.runInto(t, func(_ context.Context, logs plog.Logs, take func(plog.Logs)) error {
				if !open.Load() {
					refusals.Add(1)
					return refuse(logs, take)
				}
				take(logs)
				return nil
			}, in(ns), quickRetries)

			ev := kube.makeEvent(t, ns, eventOf("Held", "pod"))
			eventually(t, func() bool { return refusals.Load() > 3 }, "several refusals")
			for n := int32(2); n <= 30; n++ {
				ev = kube.updateEvent(t, withCount(ev, n))
			}
			assert.Zero(t, r.sum(anyPoint), "what is not delivered is not counted")
			opened := time.Now()
			open.Store(true)
			r.fence(t, ns)
			r.stop()
			assert.True(t, r.records(named(ev.Name))[0].log.ObservedTimestamp().AsTime().Before(opened), "observed at first sight")
			for i, rec := range r.records(named(ev.Name)) {
				assert.Equal(t, observation{int64(i + 1), 1}, observation{rec.count(), rec.occurrences()})
			}
			assert.Len(t, r.records(named(ev.Name)), 30)
			checkPromises(t, r)
		})
	}
}

// TestBackPressure: while the pipeline refuses, the API server keeps the events.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	var open atomic.Bool
	r := kube.runInto(t, func(_ context.Context, logs plog.Logs, take func(plog.Logs)) error {
		if !open.Load() {
			return errors.New("not now")
		}
		take(logs)
		return nil
	}, in(ns), quickRetries)
	const events = 1500
	kube.makeEvents(t, ns, events, func(int) *corev1.Event {
		ev := withMessage(strings.Repeat("much to say ", 400))
		ev.Name = unique("much")
		return ev
	})
	open.Store(true)
	r.await(events, about(ns, "Message"))
	r.fence(t, ns)
	assert.Len(t, r.records(about(ns, "Message")), events)
	r.stop()
	checkPromises(t, r)
}

// split divides logs after their first record.
func split(logs plog.Logs) (first, rest plog.Logs) {
	first, rest = plog.NewLogs(), plog.NewLogs()
	logs.CopyTo(first)
	logs.CopyTo(rest)
	keepRecords(first, func(n int) bool { return n == 0 })
	keepRecords(rest, func(n int) bool { return n > 0 })
	return first, rest
}

func keepRecords(logs plog.Logs, keep func(n int) bool) {
	n := -1
	logs.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		records := rl.ScopeLogs().At(0).LogRecords()
		records.RemoveIf(func(plog.LogRecord) bool { n++; return !keep(n) })
		return records.Len() == 0
	})
}

// TestWhatIsRefusedForGood is passed over, and stays in the metric.
func TestWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		retry string
	}{
		"a permanent error":           {consumererror.NewPermanent(errors.New("never")), quickRetries},
		"no retries":                  {errors.New("not now"), "retry_on_failure: {enabled: false}"},
		"retries that came to an end": {errors.New("not now"), "retry_on_failure: {initial_interval: 5ms, max_interval: 20ms, max_elapsed_time: 100ms}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			dropped := &consumertest.LogsSink{}
			r := kube.runInto(t, func(ctx context.Context, logs plog.Logs, take func(plog.Logs)) error {
				if hasReason(logs, "Bad") {
					_ = dropped.ConsumeLogs(ctx, logs)
					return test.err
				}
				take(logs)
				return nil
			}, in(ns), test.retry)
			r.fence(t, ns)
			kube.makeEvent(t, ns, withCount(eventOf("Bad", "pod"), 3))
			eventually(t, func() bool { return dropped.LogRecordCount() > 0 }, "the refusal")
			r.fence(t, ns)
			r.awaitSum(t, 3, withReason("Bad"))
			assert.Empty(t, r.records(about(ns, "Bad")))
			if consumererror.IsPermanent(test.err) {
				assert.Equal(t, 1, dropped.LogRecordCount(), "a permanent error is final")
			}
		})
	}
}

func hasReason(logs plog.Logs, reason string) bool {
	for _, r := range recordsOf(logs) {
		if r.text("k8s.event.reason") == reason {
			return true
		}
	}
	return false
}

// TestShutdownUnderLoad: it returns, nothing comes after it, and what came out before is what was
// counted.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	var down, late atomic.Bool
	r := kube.runInto(t, func(_ context.Context, logs plog.Logs, take func(plog.Logs)) error {
		late.Store(late.Load() || down.Load())
		take(logs)
		return nil
	}, in(ns))
	load, stopLoad := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	for range 4 {
		loading.Go(func() {
			for load.Err() == nil {
				ev := eventOf("Load", unique("pod"))
				ev.Name, ev.InvolvedObject.Namespace = unique("load"), ns
				_, _ = kube.CoreV1().Events(ns).Create(load, ev, metav1.CreateOptions{})
			}
		})
	}
	r.await(100, about(ns, "Load"))
	r.stop()
	down.Store(true)
	emitted := len(r.all())
	stopLoad()
	loading.Wait()
	assert.Equal(t, componentstatus.StatusOK, r.host.last().Status(), "an end that was asked for is no error")
	assert.False(t, late.Load(), "work goes on after Shutdown")
	assert.Len(t, r.all(), emitted)
	checkPromises(t, r)
}

// TestShutdownReturns in spite of what hangs.
func TestShutdownReturns(t *testing.T) {
	t.Parallel()
	t.Run("while the pipeline refuses", func(t *testing.T) {
		t.Parallel()
		ns := kube.newNamespace(t)
		asked := make(chan struct{}, 1000)
		r := kube.runInto(t, func(context.Context, plog.Logs, func(plog.Logs)) error {
			asked <- struct{}{}
			return errors.New("not now")
		}, in(ns), "retry_on_failure: {initial_interval: 1h, max_interval: 1h}")
		kube.makeEvent(t, ns, eventOf("Refused", "pod"))
		<-asked
		r.stop()
		assert.Zero(t, r.sum(anyPoint), "what is not delivered is not counted")
	})
	t.Run("while the pipeline hangs", func(t *testing.T) {
		t.Parallel()
		ns := kube.newNamespace(t)
		asked := make(chan struct{}, 1000)
		r := kube.runInto(t, func(ctx context.Context, _ plog.Logs, _ func(plog.Logs)) error {
			asked <- struct{}{}
			<-ctx.Done() // As an exporter does that waits for its backend.
			return ctx.Err()
		}, in(ns))
		kube.makeEvent(t, ns, eventOf("Hung", "pod"))
		<-asked
		r.stop()
	})
	t.Run("while the API server is away", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t, kube.Kubeconfig())
		g.server.Close()
		r := kube.run(t, g.config())
		r.host.await(t, componentstatus.StatusRecoverableError, "refused")
		r.stop()
	})
	t.Run("while the API server hangs", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t, kube.Kubeconfig())
		g.inject(hang(anyRequest))
		r := kube.run(t, g.config())
		eventually(t, func() bool { return len(g.requests(anyRequest)) > 0 }, "a request")
		r.stop()
	})
	t.Run("while lookups hang", func(t *testing.T) {
		t.Parallel()
		ns := kube.newNamespace(t)
		g := newGateway(t, kube.Kubeconfig())
		g.inject(hang(isOwnerLookup))
		r := kube.run(t, in(ns), g.config(), "owners: {lookup_timeout: 1h}")
		kube.makeEvent(t, ns, eventOf("Slow", "pod"))
		eventually(t, func() bool { return len(g.requests(isOwnerLookup)) > 0 }, "a lookup")
		r.stop()
	})
}

// TestCollectorsConsumeContract is the Collector's own test of what a receiver owes to its
// pipelines.
func TestCollectorsConsumeContract(t *testing.T) {
	t.Parallel()
	for _, signal := range []pipeline.Signal{pipeline.SignalLogs, pipeline.SignalMetrics} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
				T: t, Factory: identifying(kubeevents.NewFactory()), Signal: signal,
				Config:        kube.parse(t, in(ns), quickRetries, "collection_interval: 20ms"),
				Generator:     &generator{t: t, ns: ns},
				GenerateCount: 100,
			})
		})
	}
}

// generator makes events whose reasons, and names, are the ids that the test looks for.
type generator struct {
	t  *testing.T
	ns string
}

var _ receivertest.Generator = (*generator)(nil)

func (g *generator) Start() {}

// Stop clears the namespace, so that the next receiver finds nothing of the last one's.
func (g *generator) Stop() {
	assert.NoError(g.t, kube.CoreV1().Events(g.ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func (g *generator) Generate() []receivertest.UniqueIDAttrVal {
	id := unique("id")
	ev := eventOf(id, "pod")
	ev.Name, ev.InvolvedObject.Namespace = id, g.ns
	_, err := kube.CoreV1().Events(g.ns).Create(context.Background(), ev, metav1.CreateOptions{})
	assert.NoError(g.t, err)
	return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(id)}
}

// identifying makes receivers whose data carry the id that the test looks for, under the name that
// it looks for.
func identifying(factory receiver.Factory) receiver.Factory {
	return receiver.NewFactory(factory.Type(), factory.CreateDefaultConfig,
		receiver.WithLogs(func(ctx context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			return factory.CreateLogs(ctx, settings, config, identifyingLogs{next})
		}, component.StabilityLevelAlpha),
		receiver.WithMetrics(func(ctx context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			return factory.CreateMetrics(ctx, settings, config, &firstPoints{next: next, done: map[string]bool{}})
		}, component.StabilityLevelAlpha),
	)
}

type identifyingLogs struct{ next consumer.Logs }

func (identifyingLogs) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (l identifyingLogs) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	for _, r := range recordsOf(logs) {
		r.log.Attributes().PutStr(receivertest.UniqueIDAttrName, r.text("k8s.event.reason"))
	}
	return l.next.ConsumeLogs(ctx, logs)
}

// firstPoints passes on the first point of each series alone, until it is taken or refused
// permanently: the test knows nothing of cumulative sums, whose points come again and again.
type firstPoints struct {
	next consumer.Metrics

	mu   sync.Mutex // guards done
	done map[string]bool
}

func (*firstPoints) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{}
}

func (f *firstPoints) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	passed := pmetric.NewMetrics()
	points := passed.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySum().DataPoints()
	var ids []string
	for _, p := range pointsOf(metrics) {
		if id := p.attrs["k8s.event.reason"].(string); !f.done[id] {
			points.AppendEmpty().Attributes().PutStr(receivertest.UniqueIDAttrName, id)
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	err := f.next.ConsumeMetrics(ctx, passed)
	for _, id := range ids {
		f.done[id] = err == nil || consumererror.IsPermanent(err)
	}
	return err
}

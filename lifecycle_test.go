// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

const testTimeout = 20 * time.Second

// configFor is a configuration that reaches the fake API server.
func configFor(t *testing.T, url, more string) *Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`, url)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	cfg, err := configure(t, more)
	require.NoError(t, err)
	cfg.AuthType, cfg.Kubeconfig = "kubeConfig", path
	cfg.RetryOnFailure.InitialInterval = 10 * time.Millisecond
	require.NoError(t, cfg.Validate())
	return cfg
}

// started is a receiver that runs in a logs pipeline, and in a metrics pipeline unless that is nil.
func started(t *testing.T, cfg *Config, logs consumer.Logs, metrics consumer.Metrics) (stop func()) {
	t.Helper()
	return launchInto(t, cfg, receivertest.NewNopSettings(metadata.Type), componenttest.NewNopHost(), logs, metrics)
}

// launchInto starts a receiver, and returns what stops it before the test ends.
func launchInto(t *testing.T, cfg *Config, settings receiver.Settings, host component.Host, logs consumer.Logs, metrics consumer.Metrics) (stop func()) {
	t.Helper()
	r, err := NewFactory().CreateLogs(t.Context(), settings, cfg, logs)
	require.NoError(t, err)
	receivers := []component.Component{r}
	if metrics != nil {
		r, err := NewFactory().CreateMetrics(t.Context(), settings, cfg, metrics)
		require.NoError(t, err)
		receivers = append(receivers, r)
	}
	for _, r := range receivers {
		require.NoError(t, r.Start(t.Context(), host))
	}
	stop = sync.OnceFunc(func() {
		for _, r := range receivers {
			assert.NoError(t, r.Shutdown(context.Background()))
		}
	})
	t.Cleanup(stop)
	return stop
}

func eventNamed(name string, count int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Now())},
		Count:      count, Reason: "Testing", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod"},
	}
}

// names are the events of all records, in order, with their occurrences.
func names(all []plog.Logs) (found []string) {
	for _, logs := range all {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				name, _ := record.Attributes().Get("k8s.event.name")
				occurrences, _ := record.Attributes().Get("k8s.event.occurrences")
				found = append(found, fmt.Sprintf("%s+%d", name.Str(), occurrences.Int()))
			}
		}
	}
	return found
}

func awaitNames(t *testing.T, sink *consumertest.LogsSink, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(names(sink.AllLogs())) >= len(want) }, testTimeout, 5*time.Millisecond)
	assert.Equal(t, want, names(sink.AllLogs()))
}

func TestBothPipelinesShareOneWatch(t *testing.T) {
	api := apitest.New(t)
	logs, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	stop := started(t, configFor(t, api.URL, "{start_at: beginning, collection_interval: 10ms}"), logs, metrics)
	api.Put(eventNamed("a", 3))
	awaitNames(t, logs, "a+3")
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, testTimeout, 5*time.Millisecond)
	stop()
	assert.Equal(t, []string{"stream"}, api.Requests())
}

func TestStartFailsForAConfigurationThatTheUserMustFix(t *testing.T) {
	for name, tt := range map[string]struct{ config, want string }{
		"a kubeconfig that is not there": {"{auth_type: kubeConfig, kubeconfig: /nowhere/config}", `"/nowhere/config"`},
		"a context that is not there":    {"{auth_type: kubeConfig, kubeconfig: testdata/unreachable.kubeconfig, context: blue}", `"blue"`},
		"no service account":             {"{}", "auth_type: kubeConfig"},
		"no environment":                 {"{auth_type: none}", "KUBERNETES_SERVICE_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg, err := configure(t, tt.config)
			require.NoError(t, err)
			r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), tt.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

func TestShutdown(t *testing.T) {
	create := func(t *testing.T, cfg *Config) receiver.Logs {
		r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		return r
	}
	t.Run("of a receiver that was never started", func(t *testing.T) {
		r := create(t, configFor(t, "http://127.0.0.1:1", ""))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("twice", func(t *testing.T) {
		r := create(t, configFor(t, apitest.New(t).URL, ""))
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("with an API server that is away", func(t *testing.T) {
		r := create(t, configFor(t, "http://127.0.0.1:1", ""))
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("and the same configuration starts again", func(t *testing.T) {
		api := apitest.New(t)
		cfg := configFor(t, api.URL, "start_at: beginning")
		api.Put(eventNamed("a", 1))
		for range 2 {
			sink := &consumertest.LogsSink{}
			stop := started(t, cfg, sink, nil)
			awaitNames(t, sink, "a+1")
			stop()
		}
	})
}

// refusing is a pipeline that rejects everything while it has an error, and otherwise accepts it.
type refusing struct {
	consumertest.LogsSink
	err      atomic.Pointer[error]
	attempts atomic.Int64
	mutates  bool
}

func (c *refusing) refuseWith(err error) { c.err.Store(&err) }

func (c *refusing) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: c.mutates}
}

func (c *refusing) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	c.attempts.Add(1)
	if err := c.err.Load(); err != nil && *err != nil {
		// What was given is the pipeline's: a rejected batch may come back changed.
		logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true })
		return *err
	}
	return c.LogsSink.ConsumeLogs(ctx, logs)
}

func TestAPipelineThatRejectsWithARetryableErrorGetsEverythingOnceAndInOrder(t *testing.T) {
	api := apitest.New(t)
	pipeline := &refusing{mutates: true}
	metrics := &consumertest.MetricsSink{}
	pipeline.refuseWith(errors.New("the queue is full"))
	started(t, configFor(t, api.URL, "{start_at: beginning, collection_interval: 10ms}"), pipeline, metrics)
	api.Put(eventNamed("a", 2))
	require.Eventually(t, func() bool { return pipeline.attempts.Load() >= 3 }, testTimeout, time.Millisecond)
	api.Put(eventNamed("a", 5))
	api.Put(eventNamed("b", 1))
	assert.Zero(t, metrics.DataPointCount(), "what is not delivered is not counted")
	pipeline.refuseWith(nil)
	awaitNames(t, &pipeline.LogsSink, "a+2", "a+3", "b+1")
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, testTimeout, time.Millisecond)
}

func TestRecordsThatAreRejectedWithAPermanentErrorAreCounted(t *testing.T) {
	api := apitest.New(t)
	pipeline, metrics := &refusing{}, &consumertest.MetricsSink{}
	pipeline.refuseWith(consumererror.NewPermanent(errors.New("too large")))
	started(t, configFor(t, api.URL, "{start_at: beginning, collection_interval: 10ms}"), pipeline, metrics)
	api.Put(eventNamed("a", 2))
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, testTimeout, time.Millisecond)
	pipeline.refuseWith(nil)
	api.Put(eventNamed("a", 5))
	awaitNames(t, &pipeline.LogsSink, "a+3")
	require.Eventually(t, func() bool {
		all := metrics.AllMetrics()
		sum := all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum()
		return sum.DataPoints().At(0).IntValue() == 5
	}, testTimeout, time.Millisecond, "the metric is the sum over all records, the rejected ones included")
}

func TestOnlyRecordsThatAPipelineDidNotAcceptAreDeliveredAgain(t *testing.T) {
	api := apitest.New(t)
	sink := &consumertest.LogsSink{}
	var first atomic.Bool
	pipeline, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		if logs.LogRecordCount() < 2 || !first.CompareAndSwap(false, true) {
			return sink.ConsumeLogs(ctx, logs)
		}
		rest := plog.NewLogs()
		logs.CopyTo(rest)
		records := func(l plog.Logs) plog.LogRecordSlice { return l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords() }
		keep := 0
		records(rest).RemoveIf(func(plog.LogRecord) bool { keep++; return keep == 1 })
		taken := 0
		records(logs).RemoveIf(func(plog.LogRecord) bool { taken++; return taken > 1 })
		return errors.Join(sink.ConsumeLogs(ctx, logs), consumererror.NewLogs(errors.New("half of it"), rest))
	})
	require.NoError(t, err)
	api.Put(eventNamed("a", 1))
	api.Put(eventNamed("b", 1))
	started(t, configFor(t, api.URL, "start_at: beginning"), pipeline, nil)
	awaitNames(t, sink, "a+1", "b+1")
}

func TestRetriesThatMayEndEnd(t *testing.T) {
	for name, settings := range map[string]string{
		"switched off": "{start_at: beginning, collection_interval: 10ms, retry_on_failure: {enabled: false}}",
		"after a time": "{start_at: beginning, collection_interval: 10ms, retry_on_failure: {max_elapsed_time: 30ms, initial_interval: 10ms, max_interval: 10ms}}",
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			pipeline, metrics := &refusing{}, &consumertest.MetricsSink{}
			pipeline.refuseWith(errors.New("the queue is full"))
			started(t, configFor(t, api.URL, settings), pipeline, metrics)
			api.Put(eventNamed("a", 1))
			require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, testTimeout, time.Millisecond, "dropped, and counted")
			pipeline.refuseWith(nil)
			api.Put(eventNamed("b", 1))
			awaitNames(t, &pipeline.LogsSink, "b+1")
		})
	}
}

func TestShutdownWhileAPipelineRejectsReturns(t *testing.T) {
	api := apitest.New(t)
	pipeline := &refusing{}
	pipeline.refuseWith(errors.New("the queue is full"))
	cfg := configFor(t, api.URL, "{start_at: beginning, retry_on_failure: {initial_interval: 1h, max_interval: 1h}}")
	cfg.RetryOnFailure.InitialInterval = time.Hour
	stop := started(t, cfg, pipeline, nil)
	api.Put(eventNamed("a", 1))
	require.Eventually(t, func() bool { return pipeline.attempts.Load() > 0 }, testTimeout, time.Millisecond)
	stop()
}

func TestShutdownDoesNotWaitForAPipelineThatHangs(t *testing.T) {
	api := apitest.New(t)
	release := make(chan struct{})
	entered := make(chan struct{}, 1)
	pipeline, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	require.NoError(t, err)
	r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), configFor(t, api.URL, "start_at: beginning"), pipeline)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	api.Put(eventNamed("a", 1))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorContains(t, r.Shutdown(ctx), "still being delivered")
	close(release)
	<-r.(*eventsReceiver).life.done
}

// The Collector's shutdown has no deadline of its own: the pod's grace period ends it.
func TestShutdownGivesUpAPipelineThatIgnoresItsContext(t *testing.T) {
	for name, o := range map[string]options{"alone": {}, "with storage": {disk: newDisk()}, "with an elector": {vote: newVote()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				released := make(chan struct{})
				defer close(released)
				o.config, o.logs = "start_at: beginning", &pipeline{}
				o.logs.onAttempt(func() { <-released })
				p := launch(t, api, o)
				if o.vote != nil {
					p.elect()
				}
				settle()
				api.Put(eventNamed("a", 1))
				settle()
				began := time.Now()
				p.stop()
				assert.LessOrEqual(t, time.Since(began), 12*time.Second)
				assert.Empty(t, p.logs.names())
				if o.disk == nil {
					return
				}
				next := launch(t, api, options{config: o.config, disk: o.disk})
				next.awaitRecords(t, "a+1")
			})
		})
	}
}

func TestTheLastWindowIsFlushedAtShutdown(t *testing.T) {
	api := apitest.New(t)
	sink, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	stop := started(t, configFor(t, api.URL, "{start_at: beginning, dedup_interval: 1h, collection_interval: 10ms}"), sink, metrics)
	api.Put(eventNamed("a", 1))
	awaitNames(t, sink, "a+1")
	api.Put(eventNamed("a", 4))
	require.Eventually(t, func() bool {
		all := metrics.AllMetrics()
		return len(all) > 0 && all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).IntValue() == 4
	}, testTimeout, time.Millisecond, "the metric does not wait for the window")
	assert.Len(t, names(sink.AllLogs()), 1)
	stop()
	assert.Equal(t, []string{"a+1", "a+3"}, names(sink.AllLogs()))
}

func TestWhatExistsAtTheFirstStart(t *testing.T) {
	for startAt, want := range map[string][]string{
		"end":       {"a+2", "b+1"},
		"beginning": {"a+3", "a+2", "b+1"},
	} {
		t.Run(startAt, func(t *testing.T) {
			api := apitest.New(t)
			api.Put(eventNamed("a", 3))
			sink := &consumertest.LogsSink{}
			r := started(t, configFor(t, api.URL, "start_at: "+startAt), sink, nil)
			require.Eventually(t, func() bool { return len(api.Requests()) > 0 }, testTimeout, time.Millisecond)
			if startAt == "beginning" {
				awaitNames(t, sink, "a+3")
			} else {
				awaitListed(t, api)
			}
			api.Put(eventNamed("a", 5))
			api.Put(eventNamed("b", 1))
			awaitNames(t, sink, want...)
			r()
		})
	}
}

// awaitListed waits until the streamed listing was read: the fake sends it before it looks for a
// cut, and a watch after a cut begins where the listing ended.
func awaitListed(t *testing.T, api *apitest.Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		api.Cut()
		requests := api.Requests()
		return requests[len(requests)-1] == "watch"
	}, testTimeout, 50*time.Millisecond)
}

// TestAPipelineWhoseReceiverHasEndedIsReported: a partial reload of the Collector can remove the
// receiver from one pipeline.
func TestAPipelineWhoseReceiverHasEndedIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		shutDown int
		want     int
	}{
		"one of two pipelines no longer has the receiver": {1, 1},
		"the Collector shuts down":                        {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{})
				for _, r := range p.receivers[:test.shutDown] {
					require.NoError(t, r.Shutdown(t.Context()))
				}
				time.Sleep(2 * aloneTimeout)
				assert.Len(t, p.log.FilterMessageSnippet("receives nothing").All(), test.want)
				if test.shutDown < len(p.receivers) {
					require.NoError(t, p.receivers[1].Shutdown(t.Context()))
				}
			})
		})
	}
}

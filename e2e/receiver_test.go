// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

const (
	patience = 60 * time.Second
	tick     = 50 * time.Millisecond
)

// running is a receiver in both pipelines, with what it emitted.
type running struct {
	t       *testing.T
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	host    *statusHost
	stop    func()
}

// run starts the receiver with a configuration as a user writes it, against the shared control plane unless it says
// otherwise, and stops it at the end of the test.
func run(t *testing.T, config string) *running {
	t.Helper()
	r := &running{t: t, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}, host: &statusHost{}}
	r.stop = runInto(t, config, r.host, r.logs, r.metrics)
	return r
}

// runInto starts the receiver into the given pipelines, and returns what stops it.
func runInto(t *testing.T, config string, host component.Host, logs consumer.Logs, metrics consumer.Metrics) func() {
	t.Helper()
	factory := kubeevents.NewFactory()
	cfg := parse(t, config)
	settings := receivertest.NewNopSettings(factory.Type())
	logsReceiver, err := factory.CreateLogs(t.Context(), settings, cfg, logs)
	require.NoError(t, err)
	metricsReceiver, err := factory.CreateMetrics(t.Context(), settings, cfg, metrics)
	require.NoError(t, err)
	require.NoError(t, logsReceiver.Start(t.Context(), host))
	require.NoError(t, metricsReceiver.Start(t.Context(), host))

	var once sync.Once
	stop := func() {
		once.Do(func() {
			require.NoError(t, logsReceiver.Shutdown(context.Background()))
			require.NoError(t, metricsReceiver.Shutdown(context.Background()))
		})
	}
	t.Cleanup(stop)
	return stop
}

// parse reads a configuration as the Collector does, with defaults that suit a test.
func parse(t *testing.T, config string) component.Config {
	t.Helper()
	settings := map[string]any{
		"auth_type": "kubeConfig", "kubeconfig": kube.Kubeconfig(), "collection_interval": "200ms",
	}
	given := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(config, "\t", "  ")), &given))
	for key, value := range given {
		settings[key] = value
	}
	cfg := kubeevents.NewFactory().CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// statusHost collects the component's status.
type statusHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

var _ componentstatus.Reporter = (*statusHost)(nil)

func (h *statusHost) GetExtensions() map[component.ID]component.Component {
	return componenttest.NewNopHost().GetExtensions()
}

func (h *statusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

// last is the newest status; nil means that none was reported.
func (h *statusHost) last() *componentstatus.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 0 {
		return nil
	}
	return h.events[len(h.events)-1]
}

// record is one log record with its resource, flattened for tests.
type record struct {
	resource map[string]any
	attrs    map[string]any
	log      plog.LogRecord
}

func (r record) text(key string) string {
	if value, ok := r.attrs[key]; ok {
		return value.(string)
	}
	value, _ := r.resource[key].(string)
	return value
}

func (r record) occurrences() int64 { return r.attrs["k8s.event.occurrences"].(int64) }

// records are all the records so far that the test wants, in their order.
func (r *running) records(want func(record) bool) (found []record) {
	for _, logs := range r.logs.AllLogs() {
		found = append(found, recordsOf(logs, want)...)
	}
	return found
}

func recordsOf(logs plog.Logs, want func(record) bool) (found []record) {
	for _, rl := range logs.ResourceLogs().All() {
		resource := rl.Resource().Attributes().AsRaw()
		for _, sl := range rl.ScopeLogs().All() {
			for _, log := range sl.LogRecords().All() {
				if got := (record{resource, log.Attributes().AsRaw(), log}); want(got) {
					found = append(found, got)
				}
			}
		}
	}
	return found
}

// await waits until there are n records that the test wants, and returns them.
func (r *running) await(n int, want func(record) bool) []record {
	r.t.Helper()
	var found []record
	require.Eventually(r.t, func() bool {
		found = r.records(want)
		return len(found) >= n
	}, patience, tick, "records so far: %d", len(r.records(func(record) bool { return true })))
	return found
}

// settled waits until the first listing is over: until a marker event that is made again and again is seen.
func (r *running) settled(namespace string) {
	r.t.Helper()
	before := len(r.records(about(namespace, "marker")))
	require.Eventually(r.t, func() bool {
		makeEvent(r.t, namespace, eventOf("marker", "marker"))
		return len(r.records(about(namespace, "marker"))) > before
	}, patience, 200*time.Millisecond)
}

// about picks the records of a reason whose event is in a namespace.
func about(namespace, reason string) func(record) bool {
	return func(r record) bool {
		return r.text("k8s.event.reason") == reason && (namespace == "" || r.text("k8s.namespace.name") == namespace)
	}
}

// sum is the newest value of the metric, summed over all series for which want holds.
func (r *running) sum(want func(resource, point map[string]any) bool) (total int64) {
	all := r.metrics.AllMetrics()
	if len(all) == 0 {
		return 0
	}
	eachPoint(all[len(all)-1], func(resource pcommon.Map, dp pmetric.NumberDataPoint) {
		if want(resource.AsRaw(), dp.Attributes().AsRaw()) {
			total += dp.IntValue()
		}
	})
	return total
}

func eachPoint(metrics pmetric.Metrics, do func(resource pcommon.Map, dp pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				for _, dp := range metric.Sum().DataPoints().All() {
					do(rm.Resource().Attributes(), dp)
				}
			}
		}
	}
}

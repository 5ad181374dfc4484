// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// running is a receiver in both pipelines, with what it emitted.
type running struct {
	t         *testing.T
	c         *cluster
	logs      *consumertest.LogsSink
	metrics   *consumertest.MetricsSink
	telemetry ownTelemetry
	host      *statusHost
	stop      func()

	mu   sync.Mutex // guards what follows
	read int        // how many batches of logs are in got
	got  []record
}

// run starts the receiver with a configuration as a user writes it, and stops it at the end of the
// test. What it emitted by then has to keep to the promises that hold for everything (see
// checkPromises).
func (c *cluster) run(t *testing.T, config ...string) *running {
	t.Helper()
	r := c.runInto(t, accept, config...)
	t.Cleanup(func() {
		r.stop()
		if !t.Failed() {
			checkPromises(t, r)
		}
	})
	return r
}

func accept(plog.Logs) error { return nil }

// runInto starts the receiver into a logs pipeline that accepts what answer returns nil for.
func (c *cluster) runInto(t *testing.T, answer func(plog.Logs) error, config ...string) *running {
	t.Helper()
	r := &running{
		t: t, c: c, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{},
		telemetry: ownTelemetry{componenttest.NewTelemetry()}, host: &statusHost{},
	}
	logs, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		if err := answer(logs); err != nil {
			return err
		}
		return r.logs.ConsumeLogs(ctx, logs)
	})
	require.NoError(t, err)
	settings := receivertest.NewNopSettings(kubeevents.NewFactory().Type())
	settings.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	r.stop = start(t, settings, c.parse(t, config...), r.host, logs, r.metrics)
	return r
}

// start starts the receiver into the given pipelines, as the Collector does, and returns what stops
// it. Either pipeline may be nil.
func start(t *testing.T, settings receiver.Settings, config component.Config, host component.Host, logs consumer.Logs, metrics consumer.Metrics) func() {
	t.Helper()
	var instances []component.Component
	if logs != nil {
		instance, err := kubeevents.NewFactory().CreateLogs(t.Context(), settings, config, logs)
		require.NoError(t, err)
		instances = append(instances, instance)
	}
	if metrics != nil {
		instance, err := kubeevents.NewFactory().CreateMetrics(t.Context(), settings, config, metrics)
		require.NoError(t, err)
		instances = append(instances, instance)
	}
	for _, instance := range instances {
		require.NoError(t, instance.Start(t.Context(), host))
	}
	stop := sync.OnceFunc(func() {
		for _, instance := range instances {
			require.NoError(t, instance.Shutdown(context.Background()))
		}
	})
	t.Cleanup(stop)
	return stop
}

// parse reads a valid configuration as the Collector does, over defaults that suit a test against
// the cluster: a slow machine must not cost an event its owners.
func (c *cluster) parse(t *testing.T, config ...string) component.Config {
	t.Helper()
	given := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Join(config, "\n")), &given))
	conf := confmap.NewFromStringMap(map[string]any{
		"auth_type": "kubeConfig", "kubeconfig": c.Kubeconfig(), "collection_interval": "200ms",
		"owners": map[string]any{"lookup_timeout": "30s"},
	})
	require.NoError(t, conf.Merge(confmap.NewFromStringMap(given)))
	cfg := kubeevents.NewFactory().CreateDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// in is the configuration of a receiver that sees just these namespaces, with what was there before
// it.
func in(namespaces ...string) string {
	return "start_at: beginning\nnamespaces: [" + strings.Join(namespaces, ", ") + "]"
}

// eventually polls until the condition holds.
func eventually(t *testing.T, holds func() bool, what string, args ...any) {
	t.Helper()
	harness.Eventually(t, holds, what, args...)
}

// await waits until there are n records that the test wants, and returns them.
func (r *running) await(n int, want func(record) bool) []record {
	r.t.Helper()
	var found []record
	eventually(r.t, func() bool {
		found = r.records(want)
		return len(found) >= n
	}, "%d records", n)
	return found
}

// records are all the records so far that the test wants, in their order.
func (r *running) records(want func(record) bool) (found []record) {
	for _, got := range r.all() {
		if want(got) {
			found = append(found, got)
		}
	}
	return found
}

// all are the records so far.
func (r *running) all() []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	batches := r.logs.AllLogs()
	for _, batch := range batches[r.read:] {
		r.got = append(r.got, recordsOf(batch)...)
	}
	r.read = len(batches)
	return slices.Clone(r.got)
}

// recordOf waits for the record of an event, and returns the first.
func (r *running) recordOf(t *testing.T, event string) record {
	t.Helper()
	var found []record
	eventually(t, func() bool {
		found = r.records(named(event))
		return len(found) > 0
	}, "a record of %s", event)
	return found[0]
}

// fence waits until everything that was written in the namespace before has gone through the
// receiver: until an event that is made now comes out, for one watch keeps the order. Each is about an
// object of its own, so that dedup_interval does not hold it.
func (r *running) fence(t *testing.T, namespace string) {
	t.Helper()
	r.recordOf(t, r.c.makeEvent(t, namespace, eventOf("Fence", unique("fence"))).Name)
}

// listed waits until the first listing is over: a first event may come with it, a second comes
// after it.
func (r *running) listed(t *testing.T, namespace string) {
	t.Helper()
	r.fence(t, namespace)
	r.fence(t, namespace)
}

// awaitSum waits until the metric has a value, summed over all points for which want holds.
func (r *running) awaitSum(t *testing.T, value int64, want func(point) bool) {
	t.Helper()
	eventually(t, func() bool { return r.sum(want) == value }, "a sum of %d", value)
}

// sum is the newest value of the metric, summed over all points for which want holds.
func (r *running) sum(want func(point) bool) (total int64) {
	all := r.metrics.AllMetrics()
	if len(all) == 0 {
		return 0
	}
	for _, p := range pointsOf(all[len(all)-1]) {
		if want(p) {
			total += p.value
		}
	}
	return total
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

// await waits for a status whose error, if there is one, has all these parts.
func (h *statusHost) await(t *testing.T, status componentstatus.Status, parts ...string) {
	t.Helper()
	eventually(t, func() bool { return h.last() != nil && h.last().Status() == status && h.mentions(parts...) }, "status %s that mentions %q", status, parts)
}

// mentions reports whether the newest status has all these parts.
func (h *statusHost) mentions(parts ...string) bool {
	text := fmt.Sprint(h.last().Err())
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
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
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// pollTimeout limits each wait. It is long because machines may be slow; no test waits that long
// where the receiver works.
const pollTimeout = 90 * time.Second

// running is a receiver in both pipelines, with what it emitted.
type running struct {
	t       *testing.T
	c       *cluster
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	host    *statusHost
	stop    func()

	mu   sync.Mutex // guards what follows
	read int        // how many batches of logs are in got
	got  []record
}

// run starts the receiver with a configuration as a user writes it, and stops it at the end of the
// test. What it emitted by then has to keep to the promises that hold for everything (see
// checkPromises).
func (c *cluster) run(t *testing.T, config ...string) *running {
	t.Helper()
	r := c.runLoosely(t, config...)
	t.Cleanup(func() {
		r.stop()
		if !t.Failed() {
			checkPromises(t, r)
		}
	})
	return r
}

// runLoosely is run for tests in which not every promise can hold.
func (c *cluster) runLoosely(t *testing.T, config ...string) *running {
	t.Helper()
	r := &running{t: t, c: c, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}, host: &statusHost{}}
	r.stop = start(t, c.parse(t, config...), r.host, r.logs, r.metrics)
	return r
}

// start starts the receiver into the given pipelines, and returns what stops it. Either pipeline
// may be nil.
func start(t *testing.T, config component.Config, host component.Host, logs consumer.Logs, metrics consumer.Metrics) func() {
	t.Helper()
	instances := instantiate(t, receivertest.NewNopSettings(kubeevents.NewFactory().Type()), config, logs, metrics)
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

// instantiate makes the receiver for each pipeline, as the Collector does.
func instantiate(t *testing.T, settings receiver.Settings, config component.Config, logs consumer.Logs, metrics consumer.Metrics) (instances []component.Component) {
	t.Helper()
	factory := kubeevents.NewFactory()
	if logs != nil {
		instance, err := factory.CreateLogs(t.Context(), settings, config, logs)
		require.NoError(t, err)
		instances = append(instances, instance)
	}
	if metrics != nil {
		instance, err := factory.CreateMetrics(t.Context(), settings, config, metrics)
		require.NoError(t, err)
		instances = append(instances, instance)
	}
	return instances
}

// parse reads a valid configuration as the Collector does, over defaults that suit a test against
// the cluster: a slow machine must not cost an event its owners.
func (c *cluster) parse(t *testing.T, config ...string) component.Config {
	t.Helper()
	cfg, err := unmarshal(t, map[string]any{
		"auth_type": "kubeConfig", "kubeconfig": c.Kubeconfig(), "collection_interval": "200ms",
		"owners": map[string]any{"lookup_timeout": "30s"},
	}, strings.Join(config, "\n"))
	require.NoError(t, err)
	return cfg
}

// unmarshal reads a configuration over defaults and validates it.
func unmarshal(t *testing.T, defaults map[string]any, text string) (component.Config, error) {
	t.Helper()
	given := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", "  ")), &given))
	conf := confmap.NewFromStringMap(defaults)
	require.NoError(t, conf.Merge(confmap.NewFromStringMap(given)))
	cfg := kubeevents.NewFactory().CreateDefaultConfig()
	if err := conf.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

// in is the configuration of a receiver that sees just these namespaces, with what was there before
// it.
func in(namespaces ...string) string {
	return "start_at: beginning\nnamespaces: [" + strings.Join(namespaces, ", ") + "]"
}

// eventually polls until the condition holds.
func eventually(t *testing.T, holds func() bool, what string, args ...any) {
	t.Helper()
	if !harness.Poll(pollTimeout, holds) {
		require.FailNow(t, "never happened: "+fmt.Sprintf(what, args...))
	}
}

// await waits until there are n records that the test wants, and returns them.
func (r *running) await(n int, want func(record) bool) []record {
	r.t.Helper()
	var found []record
	eventually(r.t, func() bool {
		found = r.records(want)
		return len(found) >= n
	}, "enough records")
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

// of waits for the record of an event, and returns the first.
func (r *running) of(t *testing.T, name string) record {
	t.Helper()
	var found []record
	eventually(t, func() bool {
		found = r.records(named(name))
		return len(found) > 0
	}, "a record of %s", name)
	return found[0]
}

// fence waits until everything that was written in the namespace before has gone through the
// receiver: until an event that is made now comes out, for one watch keeps the order. Each is about an
// object of its own, so that dedup_interval does not hold it.
func (r *running) fence(t *testing.T, namespace string) {
	t.Helper()
	r.of(t, r.c.makeEvent(t, namespace, eventOf("Fence", unique("fence"))).Name)
}

// listed waits until the first listing is over: a first event may come with it, a second comes
// after it.
func (r *running) listed(t *testing.T, namespace string) {
	t.Helper()
	r.fence(t, namespace)
	r.fence(t, namespace)
}

// sum is the newest value of the metric, summed over all points for which want holds.
func (r *running) sum(want func(point) bool) (total int64) {
	for _, p := range r.points(want) {
		total += p.value
	}
	return total
}

// awaitSum waits until the metric has a value.
func (r *running) awaitSum(t *testing.T, value int64, want func(point) bool) {
	t.Helper()
	eventually(t, func() bool { return r.sum(want) == value }, "a sum of %d", value)
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

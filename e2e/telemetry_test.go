// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

// ownTelemetry is the receiver's own telemetry.
type ownTelemetry struct{ *componenttest.Telemetry }

// value is that of a counter or a gauge, or how much a histogram counted, over all points with the
// attributes.
func (o ownTelemetry) value(name string, attributes ...attribute.KeyValue) int64 {
	metric, err := o.GetMetric("otelcol_kube_events_" + name)
	if err != nil {
		return 0
	}
	var value int64
	switch data := metric.Data.(type) {
	case metricdata.Sum[int64]:
		value = sumOf(data.DataPoints, attributes)
	case metricdata.Gauge[int64]:
		value = sumOf(data.DataPoints, attributes)
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			value += int64(p.Count)
		}
	}
	return value
}

func sumOf(points []metricdata.DataPoint[int64], attributes []attribute.KeyValue) (sum int64) {
	for _, p := range points {
		if has(p.Attributes, attributes) {
			sum += p.Value
		}
	}
	return sum
}

func has(set attribute.Set, attributes []attribute.KeyValue) bool {
	for _, want := range attributes {
		if got, ok := set.Value(want.Key); !ok || got != want.Value {
			return false
		}
	}
	return true
}

// runWithTelemetry runs the receiver and collects its own telemetry.
func (c *cluster) runWithTelemetry(t *testing.T, decide func(plog.Logs) error, config ...string) (*running, ownTelemetry) {
	t.Helper()
	telemetry := ownTelemetry{componenttest.NewTelemetry()}
	settings := receivertest.NewNopSettings(kubeevents.NewFactory().Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	r := &running{t: t, c: c, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}, host: &statusHost{}}
	logs, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		if err := decide(logs); err != nil {
			return err
		}
		return r.logs.ConsumeLogs(ctx, logs)
	})
	require.NoError(t, err)
	for _, instance := range instantiate(t, settings, c.parse(t, config...), logs, r.metrics) {
		require.NoError(t, instance.Start(t.Context(), r.host))
		t.Cleanup(func() { assert.NoError(t, instance.Shutdown(context.Background())) })
	}
	return r, telemetry
}

func takeAll(plog.Logs) error { return nil }

func TestEventsReceivedFilteredAndAccepted(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r, telemetry := kube.runWithTelemetry(t, takeAll, in(ns), "exclude_reasons: [Noise]")
	r.fence(t, ns) // A first listing that came late would bring but the last state.
	ev := kube.makeEvent(t, ns, eventOf("Signal", "pod"))
	for range 3 {
		kube.makeEvent(t, ns, eventOf("Noise", "pod"))
	}
	ev = kube.updateEvent(t, withCount(ev, 2))
	ev.Labels = map[string]string{"a": "label"}
	kube.updateEvent(t, ev)
	r.fence(t, ns)
	eventually(t, func() bool { return telemetry.value("accepted") == 4 }, "the records that were accepted")
	assert.EqualValues(t, 8, telemetry.value("received"), "all changes")
	assert.EqualValues(t, 3, telemetry.value("filtered"))
	assert.EqualValues(t, 4, telemetry.value("latency"), "an end-to-end latency for each record")
	assert.Zero(t, telemetry.value("refused"))
	assert.Zero(t, telemetry.value("dropped"))
	eventually(t, func() bool { return telemetry.value("waiting") == 0 }, "nothing is left waiting")
	_, err := telemetry.GetMetric("otelcol_kube_events_checkpoint_age")
	assert.NoError(t, err)
}

func TestRecordsRefusedAndDropped(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	refusals := 0
	r, telemetry := kube.runWithTelemetry(t, func(logs plog.Logs) error {
		switch {
		case hasReason(logs, "Never"):
			return consumererror.NewPermanent(errors.New("never"))
		case hasReason(logs, "Later") && refusals < 3:
			refusals++
			return errors.New("not now")
		}
		return nil
	}, in(ns), quickRetries)
	r.fence(t, ns)
	kube.makeEvent(t, ns, eventOf("Never", "pod"))
	eventually(t, func() bool { return telemetry.value("dropped") == 1 }, "a record that is dropped")
	later := kube.makeEvent(t, ns, eventOf("Later", "pod"))
	r.of(t, later.Name)
	assert.EqualValues(t, 3, telemetry.value("refused"), "counted at each attempt")
	assert.EqualValues(t, 1, telemetry.value("dropped"))
}

func TestWaitingEvents(t *testing.T) {
	t.Parallel()
	for name, fromTheStart := range map[string]bool{"from the listing on": true, "after the listing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			var refuses atomic.Bool
			refuses.Store(fromTheStart)
			r, telemetry := kube.runWithTelemetry(t, func(plog.Logs) error {
				if refuses.Load() {
					return errors.New("not now")
				}
				return nil
			}, in(ns), "retry_on_failure: {initial_interval: 1h, max_interval: 1h}")
			if !fromTheStart {
				r.fence(t, ns)
				eventually(t, func() bool { return telemetry.value("waiting") == 0 }, "nothing waits")
				refuses.Store(true)
			}
			for range 3 {
				kube.makeEvent(t, ns, eventOf("Waiting", "pod"))
			}
			eventually(t, func() bool { return telemetry.value("waiting") >= 3 }, "three events that wait")
			eventually(t, func() bool { return telemetry.value("waiting") == 3 }, "no more than three: %d", telemetry.value("waiting"))
		})
	}
}

func TestLookupsAreCounted(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r, telemetry := c.runWithTelemetry(t, takeAll, in(ns))
	result := func(value string) attribute.KeyValue { return attribute.String("result", value) }
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "one")
	pod := c.make(t, ns, "v1", "Pod", "one-a", controlledBy(rs))
	for range 2 {
		r.of(t, c.makeEvent(t, ns, eventAbout("Found", referenceTo(pod))).Name)
	}
	r.of(t, c.makeEvent(t, ns, eventOf("Missing", "missing")).Name)
	assert.EqualValues(t, 1, telemetry.value("owner_lookups", result("not_found")))
	assert.GreaterOrEqual(t, telemetry.value("owner_lookups", result("found")), int64(2))
	assert.Equal(t, telemetry.value("owner_lookups"), telemetry.value("owner_lookup_duration"), "a latency for each lookup")
	assert.EqualValues(t, 2, telemetry.value("owner_cache_hits"), "pod and owner of the second event")
	assert.GreaterOrEqual(t, telemetry.value("owner_cache_size"), int64(2))
	resolution := func(value string) attribute.KeyValue { return attribute.String("resolution", value) }
	assert.EqualValues(t, 2, telemetry.value("owner_resolutions", resolution("complete")))
	assert.EqualValues(t, 1, telemetry.value("owner_resolutions", resolution("not_found")))
}

func TestForbiddenLookupsAreCountedByResource(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	g.inject(refuse(http.StatusForbidden, isOn("replicasets")))
	r, telemetry := c.runWithTelemetry(t, takeAll, in(ns), g.config())
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "one")
	pod := c.make(t, ns, "v1", "Pod", "one-a", controlledBy(rs))
	require.Equal(t, "forbidden", r.of(t, c.makeEvent(t, ns, eventAbout("Forbidden", referenceTo(pod))).Name).resolution())
	verb, resource := attribute.String("verb", "get"), attribute.String("resource", "replicasets.apps")
	assert.Positive(t, telemetry.value("owner_lookups_forbidden", verb, resource))
	assert.Equal(t, telemetry.value("owner_lookups_forbidden"), telemetry.value("owner_lookups_forbidden", resource), "pods may be read")
}

func TestWatchRestartsByCause(t *testing.T) {
	t.Parallel()
	for cause, code := range map[string]int{
		"expired": http.StatusGone, "unauthorized": http.StatusUnauthorized, "forbidden": http.StatusForbidden, "unavailable": http.StatusInternalServerError,
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			g := newGateway(t, kube.Kubeconfig())
			r, telemetry := kube.runWithTelemetry(t, takeAll, in(ns), g.config())
			r.fence(t, ns)
			g.inject(refuse(code, isWatch))
			g.cut()
			eventually(t, func() bool { return telemetry.value("watch_restarts", attribute.String("cause", cause)) > 0 }, "a restart")
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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
next:
	for _, p := range points {
		for _, want := range attributes {
			if got, ok := p.Attributes.Value(want.Key); !ok || got != want.Value {
				continue next
			}
		}
		sum += p.Value
	}
	return sum
}

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	rejections := 0
	var closed atomic.Bool
	r := kube.runInto(t, func(logs plog.Logs) error {
		switch reason := recordsOf(logs)[0].text("k8s.event.reason"); {
		case reason == "Never":
			return consumererror.NewPermanent(errors.New("never"))
		case reason == "Later" && rejections < 3:
			rejections++
			return errors.New("not now")
		case closed.Load():
			return errors.New("not now")
		}
		return nil
	}, in(ns), "exclude_reasons: [Noise]", "retry_on_failure: {initial_interval: 5ms, max_interval: 50ms}")
	value := r.telemetry.value
	r.fence(t, ns) // A first listing that came late would bring but the last state.
	ev := kube.makeEvent(t, ns, eventOf("Signal", "pod"))
	kube.makeEvent(t, ns, eventOf("Noise", "pod"))
	ev = kube.updateEvent(t, withCount(ev, 2))
	ev.Labels = map[string]string{"a": "label"}
	kube.updateEvent(t, ev)
	r.fence(t, ns)
	// The latency is measured after a record is counted as accepted.
	eventually(t, func() bool { return value("accepted") == 4 && value("latency") == 4 }, "the records that were accepted, and an end-to-end latency for each")
	assert.EqualValues(t, 6, value("received"), "all changes")
	assert.EqualValues(t, 1, value("filtered"))

	kube.makeEvent(t, ns, eventOf("Never", "pod"))
	eventually(t, func() bool { return value("dropped") == 1 }, "a record that is dropped")
	r.recordOf(t, kube.makeEvent(t, ns, eventOf("Later", "pod")).Name)
	assert.EqualValues(t, 3, value("refused"), "counted at each attempt")
	eventually(t, func() bool { return value("waiting") == 0 }, "nothing is left waiting")
	closed.Store(true)
	for range 3 {
		kube.makeEvent(t, ns, eventOf("Waiting", "pod"))
	}
	eventually(t, func() bool { return value("waiting") == 3 }, "three events that wait")
}

func TestLookupsAreCounted(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	g.inject(refuse(http.StatusForbidden, isOn("deployments")))
	r := c.run(t, in(ns), g.config())
	value := func(name string, attributes ...string) int64 {
		var all []attribute.KeyValue
		for i := 0; i < len(attributes); i += 2 {
			all = append(all, attribute.String(attributes[i], attributes[i+1]))
		}
		return r.telemetry.value(name, all...)
	}
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "one")
	pod := c.make(t, ns, "v1", "Pod", "one-a", controlledBy(rs))
	for range 2 {
		r.recordOf(t, c.makeEvent(t, ns, eventAbout("Found", referenceTo(pod))).Name)
	}
	r.recordOf(t, c.makeEvent(t, ns, eventOf("Missing", "missing")).Name)
	assert.EqualValues(t, 1, value("owner_lookups", "result", "not_found"))
	assert.GreaterOrEqual(t, value("owner_lookups", "result", "found"), int64(2))
	assert.Equal(t, value("owner_lookups"), value("owner_lookup_duration"), "a latency for each lookup")
	assert.EqualValues(t, 2, value("owner_cache_hits"), "pod and owner of the second event")
	assert.GreaterOrEqual(t, value("owner_cache_size"), int64(2))
	assert.EqualValues(t, 2, value("owner_resolutions", "resolution", "complete"))
	assert.EqualValues(t, 1, value("owner_resolutions", "resolution", "not_found"))

	forbidden := c.make(t, ns, "apps/v1", "Deployment", "forbidden")
	r.recordOf(t, c.makeEvent(t, ns, eventAbout("Forbidden", referenceTo(forbidden))).Name)
	assert.Positive(t, value("owner_lookups_forbidden", "verb", "get", "resource", "deployments.apps"))
	assert.Equal(t, value("owner_lookups_forbidden"), value("owner_lookups_forbidden", "resource", "deployments.apps"), "pods may be read")
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
			r := kube.run(t, in(ns), g.config())
			r.fence(t, ns)
			g.inject(refuse(code, isWatch))
			g.cut()
			eventually(t, func() bool { return r.telemetry.value("watch_restarts", attribute.String("cause", cause)) > 0 }, "a restart")
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Every metric that metadata.yaml describes: alerts on one receiver must not see another one.
func TestTheReceiversOfOneCollectorHaveTheirOwnSeries(t *testing.T) {
	collector := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, collector.Shutdown(context.Background())) })
	owners, err := resolver.New(&rest.Config{Host: "http://cluster"}, resolver.Settings{})
	require.NoError(t, err)
	t.Cleanup(owners.Close)
	ids := []string{"kube_events", "kube_events/2"}
	for _, id := range ids {
		measureEverything(t, id, collector, owners)
	}

	var all metricdata.ResourceMetrics
	require.NoError(t, collector.Reader.Collect(t.Context(), &all))
	measured := map[string][]string{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if name, ours := strings.CutPrefix(m.Name, "otelcol_"); ours && strings.HasPrefix(name, "kube_events_") {
				measured[name] = receiversOf(m.Data)
			}
		}
	}
	assert.ElementsMatch(t, described(t), slices.Collect(maps.Keys(measured)))
	for name, receivers := range measured {
		assert.Equal(t, ids, receivers, name)
	}
}

func measureEverything(t *testing.T, id string, collector *componenttest.Telemetry, owners *resolver.Resolver) {
	t.Helper()
	settings := receivertest.NewNopSettings(metadata.Type)
	require.NoError(t, settings.ID.UnmarshalText([]byte(id)))
	settings.TelemetrySettings = collector.NewTelemetrySettings()
	telemetry, err := New(settings)
	require.NoError(t, err)
	t.Cleanup(telemetry.Shutdown)
	require.NoError(t, telemetry.Measure(func() bool { return true }, 1, owners))
	records := []observation.Observation{{Event: &corev1.Event{}, Chain: resolver.Chain{Resolution: resolver.ResolutionComplete}}}
	telemetry.Waited(WaitCauseLookups, time.Second)
	telemetry.Accounted(1, 1)
	telemetry.Resolved(records)
	telemetry.Counted(1, 1)
	telemetry.Accepted(1)
	telemetry.Delivered(records, time.Now())
	telemetry.Rejected(1)
	telemetry.Dropped(1)
	telemetry.NotSaved()
	telemetry.Restarting("", watch.CauseExpired, nil)
	telemetry.LookupDone(nil, time.Second)
	telemetry.Forbidden("get", schema.GroupResource{Resource: "pods"}, "")
}

// receiversOf returns the values of the attribute receiver, in order, one for each point; empty for
// a point without it.
func receiversOf(data metricdata.Aggregation) (receivers []string) {
	add := func(attributes attribute.Set) {
		value, _ := attributes.Value("receiver")
		receivers = append(receivers, value.AsString())
	}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	}
	slices.Sort(receivers)
	return receivers
}

// described returns the receiver's own metrics in metadata.yaml.
func described(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../metadata.yaml")
	require.NoError(t, err)
	var metadata struct {
		Telemetry struct{ Metrics map[string]any }
	}
	require.NoError(t, yaml.Unmarshal(content, &metadata))
	return slices.Collect(maps.Keys(metadata.Telemetry.Metrics))
}

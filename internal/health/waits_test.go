// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// waited returns the sum of the waits for a cause so far, and how many there were.
func waited(t *testing.T, telemetry *componenttest.Telemetry, cause string) (sum time.Duration, count uint64) {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_kube_events_batch_wait")
	require.NoError(t, err)
	for _, p := range metric.Data.(metricdata.Histogram[float64]).DataPoints {
		if value, _ := p.Attributes.Value("cause"); value == attribute.StringValue(cause) {
			sum += time.Duration(p.Sum * float64(time.Second))
			count += p.Count
		}
	}
	return sum, count
}

func TestAWatchThatIsReadWithPausesIsPaced(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry := componenttest.NewTelemetry()
		p := harness.Launch(t, api, harness.Options{Telemetry: telemetry})
		harness.Settle()
		before, _ := waited(t, telemetry, "pacing")
		api.Put(harness.Event("a", 1)) // The receiver waits for it.
		time.Sleep(time.Millisecond)
		api.Put(harness.Event("b", 1)) // It comes during the pause.
		p.AwaitRecords(t, "a+1", "b+1")
		after, _ := waited(t, telemetry, "pacing")
		assert.Positive(t, after-before)
	})
}

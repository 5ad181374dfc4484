// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
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
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		telemetry := componenttest.NewTelemetry()
		p := launch(t, api, options{telemetry: telemetry})
		settle()
		before, _ := waited(t, telemetry, "pacing")
		api.Put(eventNamed("a", 1)) // The receiver waits for it.
		time.Sleep(time.Millisecond)
		api.Put(eventNamed("b", 1)) // It comes during the pause.
		p.awaitRecords(t, "a+1", "b+1")
		after, _ := waited(t, telemetry, "pacing")
		assert.Positive(t, after-before)
	})
}

// TestAnIdleReceiverDoesNothing: it neither writes nor reads the storage. Its only requests resume
// the watch, and check that the cluster's versions have not gone back.
func TestAnIdleReceiverDoesNothing(t *testing.T) {
	for _, config := range []string{"{}", "dedup_interval: 1m", "namespaces: [ns, other]"} {
		t.Run(config, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				p := launch(t, api, options{config: config, disk: on, interval: 30 * time.Second})
				settle()
				api.Put(eventNamed("a", 1))
				api.Put(eventNamed("a", 2))
				time.Sleep(2 * time.Minute) // The window ends, and the metric has its first points.
				synctest.Wait()
				calls, requests := on.calls, len(api.Requests())
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				assert.Equal(t, calls, on.calls, "calls of the storage")
				assert.Subset(t, []string{"version", "watch"}, api.Requests()[requests:])
				assert.EqualValues(t, 2, occurrences(p.logs.records()...))
			})
		})
	}
}

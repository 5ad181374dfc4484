// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// seriesOfAWorkload is how many series docs/sizing.md assumes for each workload.
const seriesOfAWorkload = 10

// BenchmarkMemory reports how many bytes a counted takes for each series, together with the metrics
// that a collection has just emitted.
func BenchmarkMemory(b *testing.B) {
	for _, series := range []int{3_000, 30_000, 150_000} {
		b.Run(fmt.Sprint(series), func(b *testing.B) {
			memorytest.Report(b, "B/series", series, func() any {
				t := New(Settings{Max: series, TTL: time.Hour, InitialZero: true}, start)
				for i := range series / seriesOfAWorkload {
					fill(t, strconv.Itoa(i))
				}
				return []any{t, slices.Collect(t.Metrics(Scope{}, semconv.Cluster{}, at(1)))}
			})
		})
	}
}

// fill adds the series of one workload.
func fill(t *Series, number string) {
	workload := deployment("checkout-service-" + number)
	for reason := range seriesOfAWorkload {
		o := seen("Reason"+strconv.Itoa(reason), 1, resolver.ResolutionComplete, pod("checkout-service-"+number+"-6f5c9d7b4-xk2lp"), workload)
		t.Add([]observation.Observation{o}, at(0))
	}
}

// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
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
					fill(t, strconv.Itoa(i), 0)
				}
				return []any{t, slices.Collect(t.Metrics(Scope{}, semconv.Cluster{}, at(1)))}
			})
		})
	}
}

// BenchmarkMemoryOfLongTexts reports the same of series whose reason, type and kind are as long as a
// value may be.
func BenchmarkMemoryOfLongTexts(b *testing.B) {
	const series = 15_000
	memorytest.Report(b, "B/series", series, func() any {
		t := New(Settings{Max: 2 * series, TTL: time.Hour, InitialZero: true}, start)
		for i := range series / seriesOfAWorkload {
			fill(t, strconv.Itoa(i), text.MaxValue)
		}
		return []any{t, slices.Collect(t.Metrics(Scope{}, semconv.Cluster{}, at(1)))}
	})
}

// fill adds the series of one workload. Reasons, types and kinds have at least this length.
func fill(t *Series, number string, length int) {
	long := func(s string) string { return s + strings.Repeat("x", max(0, length-len(s))) }
	workload := deployment("checkout-service-" + number)
	for reason := range seriesOfAWorkload {
		o := seen("Reason"+strconv.Itoa(reason), 1, resolver.ResolutionComplete, pod("checkout-service-"+number+"-6f5c9d7b4-xk2lp"), workload)
		o.Event.Reason, o.Event.Type, o.Event.InvolvedObject.Kind = long(o.Event.Reason), long(o.Event.Type), long(o.Event.InvolvedObject.Kind)
		t.Add([]observation.Observation{o}, at(0))
	}
}

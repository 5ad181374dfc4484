// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Compression finds what neighbours have in common.
func TestSeriesAreWrittenByWorkload(t *testing.T) {
	counted := New(Config{Max: 100, TTL: time.Hour}, start)
	var all []observation.Observation
	for i := range 20 {
		for _, reason := range []string{"A", "B"} {
			all = append(all, seen(reason, 1, resolver.Complete, deployment(fmt.Sprint("d", i))))
		}
	}
	emit := func(cluster string, now time.Time) (workloads []string) {
		add(counted, now, all...)
		for request := range counted.Metrics(Scope{}, semconv.Cluster{UID: cluster}, now) {
			assert.Equal(t, semconv.SchemaURL, request.ResourceMetrics().At(0).SchemaUrl())
			each(slices.Values([]pmetric.Metrics{request}), func(dp pmetric.NumberDataPoint) {
				workloads = append(workloads, attribute(dp, "k8s.workload.name"))
			})
		}
		counted.Accepted()
		return workloads
	}
	workloads := emit("b", at(1))
	assert.Len(t, workloads, 40)
	assert.Len(t, slices.Compact(workloads), 20, "both series of a workload follow each other")
}

// SPDX-License-Identifier: Apache-2.0

package series

import (
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// BenchmarkEmission measures one emission of 10,000 series, a third of the default of series.max: its
// time and allocations, and its size as OTLP and with gzip.
// Of the workloads, 1,000 have 10 reasons each, and names, UIDs and a tag as usual.
func BenchmarkEmission(b *testing.B) {
	t := New(Config{Max: 10_000, TTL: 1000 * time.Hour, Disabled: semconv.Disabled{"k8s.workload.uid": true}}, start)
	for i := range 1000 {
		for reason := range 10 {
			add(t, at(1), typical(i, reason))
		}
	}
	cluster := semconv.Cluster{UID: "8f3c1f0e-9a53-4a0e-8c43-5d4a1f3b7c21", Name: "production-eu-west-1"}
	var requests []pmetric.Metrics
	b.ReportAllocs()
	now := at(2)
	for b.Loop() {
		now = now.Add(30 * time.Second)
		t.Expire(now)
		requests = slices.Collect(t.Metrics(Scope{Name: "github.com/kubeevents/kubeeventsreceiver", Version: "0.1.0"}, cluster, now))
		t.Accepted()
	}
	points, sent, zipped := 0, 0, 0
	for _, request := range requests {
		otlp, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(request)
		require.NoError(b, err)
		points, sent, zipped = points+request.DataPointCount(), sent+len(otlp), zipped+compressed(b, otlp)
	}
	require.Equal(b, 10_000, points)
	b.ReportMetric(float64(sent), "OTLP-B")
	b.ReportMetric(float64(zipped), "gzip-B")
	b.ReportMetric(float64(len(requests)), "requests")
}

// typical is an event of a pod of a Deployment.
func typical(workload, reason int) observation.Observation {
	name := fmt.Sprintf("checkout-service-%04d", workload)
	owner := deployment(name)
	owner.Namespace, owner.UID = fmt.Sprintf("team-%02d", workload%50), types.UID(fmt.Sprintf("5b0e0c5a-0d5e-4a3c-9f00-%012x", workload*7919))
	first := pod(name + "-6f5c9d7b4-xk2lp")
	first.Namespace = owner.Namespace
	o := seen(fmt.Sprint("FailedToDoThing", reason), int64(1+workload+reason), resolver.Complete, first, owner)
	o.Tags.Metric = []extract.Tag{{Name: "tilt.manifest", Value: name}}
	o.SeenAt = at(1)
	return o
}

// compressed returns how many bytes gzip writes.
func compressed(tb testing.TB, data []byte) int {
	var size counter
	w := gzip.NewWriter(&size)
	_, err := w.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return int(size)
}

type counter int

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

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

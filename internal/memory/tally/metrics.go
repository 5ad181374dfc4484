// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// MetricName is the name of the metric.
const MetricName = "k8s.event.occurrences"

// Scope names who writes the metric.
type Scope struct{ Name, Version string }

// Metrics writes every sum as one cumulative, monotonic point at the given time, but at least 1 ms
// after the last points: OTLP requires that the times of a series increase. An empty clusterUID is
// left out.
func (t *Tally) Metrics(scope Scope, clusterUID string, now time.Time) pmetric.Metrics {
	sums, now := t.sums(now)
	metrics := pmetric.NewMetrics()
	var of *resource
	var points pmetric.NumberDataPointSlice
	for i := range sums {
		s := &sums[i]
		if i == 0 || s.resource != of {
			rm := metrics.ResourceMetrics().AppendEmpty()
			s.resource.write(rm.Resource().Attributes(), clusterUID)
			of, points = s.resource, newSum(rm, scope)
		}
		s.write(points.AppendEmpty(), now)
	}
	return metrics
}

// sum is what Metrics writes of a point.
type sum struct {
	resource *resource // nil: the overflow series
	key      pointKey
	start    time.Time
	value    int64
}

// sums returns what Metrics writes, resource by resource, and the time at which it does. The loop
// waits meanwhile, so that nothing is written here.
func (t *Tally) sums(now time.Time) ([]sum, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if soonest := t.emitted.Add(time.Millisecond); now.Before(soonest) {
		now = soonest
	}
	t.emitted = now
	all := make([]sum, 0, t.series+1)
	for _, r := range t.resources {
		for key, p := range r.points {
			if value := t.valueLocked(p); value > 0 {
				p.written = value
				all = append(all, sum{r, key, p.start, value})
			}
		}
	}
	if t.overflow != nil {
		if value := t.valueLocked(t.overflow); value > 0 {
			all = append(all, sum{nil, pointKey{}, t.overflow.start, value})
		}
	}
	return all, now
}

// valueLocked returns what the metric reports of a sum. Where sums are saved, it is the saved part:
// a sum that was reported, but lost in a crash, would fall at the next start.
func (t *Tally) valueLocked(p *point) int64 {
	if t.saved != nil {
		return p.durable
	}
	return p.occurrences
}

// Emitted notes that the metrics pipeline accepted what Metrics returned last.
func (t *Tally) Emitted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.resources {
		for _, p := range r.points {
			p.emitted = p.written
		}
	}
}

func newSum(rm pmetric.ResourceMetrics, scope Scope) pmetric.NumberDataPointSlice {
	rm.SetSchemaUrl(semconv.SchemaURL)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(scope.Name)
	sm.Scope().SetVersion(scope.Version)
	metric := sm.Metrics().AppendEmpty()
	metric.SetName(MetricName)
	metric.SetUnit("{occurrence}")
	metric.SetDescription("Occurrences of Kubernetes Events since the start time.")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return sum.DataPoints()
}

// write writes the attributes of a resource. That of the overflow series is nil.
func (r *resource) write(attributes pcommon.Map, clusterUID string) {
	put := semconv.Writer(attributes)
	put.String("k8s.cluster.uid", clusterUID)
	if r == nil {
		return
	}
	put.String("k8s.namespace.name", r.namespace)
	if r.workload != nil {
		put.Identity(semconv.Workload, r.workload)
		put.Object(r.workload)
	}
	for _, tag := range r.tags {
		put.StringIfNew(tag.Name, tag.Value)
	}
}

func (k pointKey) write(attributes pcommon.Map) {
	put := semconv.Writer(attributes)
	put.String("k8s.event.reason", k.reason)
	put.String("k8s.event.type", k.eventType)
	put.String("k8s.object.kind", k.objectKind)
}

// write writes the point of the sum.
func (s *sum) write(dp pmetric.NumberDataPoint, now time.Time) {
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
	dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
	dp.SetIntValue(s.value)
	if s.resource == nil {
		dp.Attributes().PutBool("otel.metric.overflow", true)
		return
	}
	s.key.write(dp.Attributes())
}

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
	t.mu.Lock()
	defer t.mu.Unlock()
	if soonest := t.emitted.Add(time.Millisecond); now.Before(soonest) {
		now = soonest
	}
	t.emitted = now
	metrics := pmetric.NewMetrics()
	metrics.ResourceMetrics().EnsureCapacity(len(t.resources) + 1)
	for _, r := range t.resources {
		rm := metrics.ResourceMetrics().AppendEmpty()
		r.write(rm.Resource().Attributes(), clusterUID)
		points := newSum(rm, scope)
		for key, p := range r.points {
			if value := t.valueLocked(p); value > 0 {
				p.written = value
				key.write(p.write(points, value, now))
			}
		}
	}
	if t.overflow != nil && t.valueLocked(t.overflow) > 0 {
		rm := metrics.ResourceMetrics().AppendEmpty()
		semconv.Writer(rm.Resource().Attributes()).String("k8s.cluster.uid", clusterUID)
		t.overflow.write(newSum(rm, scope), t.valueLocked(t.overflow), now).PutBool("otel.metric.overflow", true)
	}
	metrics.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		return rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().Len() == 0
	})
	return metrics
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

func (r *resource) write(attributes pcommon.Map, clusterUID string) {
	put := semconv.Writer(attributes)
	put.String("k8s.cluster.uid", clusterUID)
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

// write appends the sum and returns the attributes of its point.
func (p *point) write(points pmetric.NumberDataPointSlice, value int64, now time.Time) pcommon.Map {
	dp := points.AppendEmpty()
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
	dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
	dp.SetIntValue(value)
	return dp.Attributes()
}

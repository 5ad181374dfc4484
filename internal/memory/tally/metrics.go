// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"iter"
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
// after the last points: OTLP requires that the times of a series increase. With InitialZero, it
// writes 0 at its start time for a new series; the next call writes its value.
func (t *Tally) Metrics(scope Scope, cluster semconv.Cluster, now time.Time) pmetric.Metrics {
	sums := t.sums(now)
	metrics := pmetric.NewMetrics()
	var of *resource
	var points pmetric.NumberDataPointSlice
	for i := range sums {
		s := &sums[i]
		if i == 0 || s.resource != of {
			rm := metrics.ResourceMetrics().AppendEmpty()
			s.resource.write(rm.Resource().Attributes(), cluster)
			t.config.Disabled.RemoveFrom(rm.Resource().Attributes())
			of, points = s.resource, newSum(rm, scope)
		}
		s.write(points.AppendEmpty())
	}
	return metrics
}

// sum is one point that Metrics writes.
type sum struct {
	resource *resource // nil: the overflow series
	key      pointKey
	start    time.Time
	at       time.Time
	value    int64
}

// sums returns what Metrics writes, resource by resource. The loop waits meanwhile, so that nothing
// is written here.
func (t *Tally) sums(now time.Time) []sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	now = now.Round(0)
	if soonest := t.emitted.Add(time.Millisecond); now.Before(soonest) {
		now = soonest
	}
	t.emitted = now
	all := make([]sum, 0, t.series+1)
	for _, r := range t.resources {
		for key, p := range r.points {
			all = t.appendLocked(all, sum{resource: r, key: key, start: p.start, at: now}, p)
		}
	}
	if t.overflow != nil {
		all = t.appendLocked(all, sum{start: t.overflow.start, at: now}, t.overflow)
	}
	return all
}

// appendLocked appends the points of one series: its value, or the 0 before it, or both.
func (t *Tally) appendLocked(all []sum, s sum, p *point) []sum {
	value, zero := t.valueLocked(p), s
	zero.at = p.start
	switch {
	case value == 0:
		return all // It is not saved yet.
	case !p.zero.written:
		p.zero.written, p.last = true, zero.at
		t.begun = true
		t.saved.note(p)
		return append(all, zero)
	case t.saved != nil && !p.zero.saved:
		return all // After a crash now, the 0 would come after the value.
	case p.zero.owed:
		p.zero.owed, p.last = false, zero.at
		all = append(all, zero)
	}
	if soonest := p.last.Add(time.Millisecond); s.at.Before(soonest) {
		s.at = soonest
	}
	p.written, p.last, s.value = value, s.at, value
	return append(all, s)
}

// valueLocked returns what the metric reports of a sum. Where sums are saved, it is the saved part:
// a sum that was reported, but lost in a crash, would fall at the next start.
func (t *Tally) valueLocked(p *point) int64 {
	if t.saved != nil {
		return p.durable
	}
	return p.occurrences
}

// TakeBegun reports whether Metrics has begun a series since it was last called. If sums are saved,
// this must be saved before Metrics writes the values of these series.
func (t *Tally) TakeBegun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := t.begun
	t.begun = false
	return begun && t.saved != nil
}

// Emitted notes that the metrics pipeline accepted what Metrics returned last.
func (t *Tally) Emitted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.pointsLocked() {
		p.emitted = p.written
	}
}

// End lets the next Metrics write the 0 of a new series together with its value. If the sums are
// saved, it must be saved before that.
func (t *Tally) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.pointsLocked() {
		if !p.zero.written {
			p.zero.written, p.zero.owed = true, true
			t.saved.note(p)
		}
	}
}

func (t *Tally) pointsLocked() iter.Seq[*point] {
	return func(yield func(*point) bool) {
		for _, r := range t.resources {
			for _, p := range r.points {
				if !yield(p) {
					return
				}
			}
		}
		if t.overflow != nil {
			yield(t.overflow)
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
func (r *resource) write(attributes pcommon.Map, cluster semconv.Cluster) {
	put := semconv.Writer(attributes)
	put.Cluster(cluster)
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

// attributes returns the attributes of a point, by name.
func (k *pointKey) attributes() iter.Seq2[string, *string] {
	return func(yield func(string, *string) bool) {
		_ = yield("k8s.event.reason", &k.reason) && yield("k8s.event.type", &k.eventType) && yield("k8s.object.kind", &k.objectKind)
	}
}

func (k pointKey) write(attributes pcommon.Map) {
	put := semconv.Writer(attributes)
	for name, value := range k.attributes() {
		put.String(name, *value)
	}
}

// write writes the point of the sum.
func (s *sum) write(dp pmetric.NumberDataPoint) {
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
	dp.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
	dp.SetIntValue(s.value)
	if s.resource == nil {
		dp.Attributes().PutBool("otel.metric.overflow", true)
		return
	}
	s.key.write(dp.Attributes())
}

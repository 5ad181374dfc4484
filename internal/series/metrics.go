// SPDX-License-Identifier: Apache-2.0

package series

import (
	"iter"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// MetricName is the name of the metric.
const MetricName = "k8s.event.occurrences"

// requestBytes bounds a request, in bytes of OTLP. Several hosted backends refuse a larger one.
const requestBytes = 1_000_000

// Scope names who writes the metric.
type Scope struct{ Name, Version string }

// Metrics writes every sum as one cumulative, monotonic point at the given time, but at least 1 ms
// after its last one: OTLP requires that the times of a series increase. The clock may be set back. With InitialZero, it
// writes 0 at its start time for a new series; the next call writes its value. The points are cut
// into requests, which are made one at a time.
func (s *Series) Metrics(scope Scope, cluster semconv.Cluster, now time.Time) iter.Seq[pmetric.Metrics] {
	sums := s.sums(now)
	slices.SortFunc(sums, sum.compare)
	return func(yield func(pmetric.Metrics) bool) {
		for rest := sums; len(rest) > 0; {
			var request pmetric.Metrics
			if request, rest = s.request(scope, cluster, rest); !yield(request) {
				return
			}
		}
	}
}

// request writes the first sums, as many as fit into a request. It returns the rest.
func (s *Series) request(scope Scope, cluster semconv.Cluster, sums []sum) (pmetric.Metrics, []sum) {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	semconv.Writer(rm.Resource().Attributes()).Cluster(cluster)
	points := newSum(rm, scope)
	shown := s.shown(cluster)
	var marshaler pmetric.ProtoMarshaler
	size := marshaler.MetricsSize(metrics) + 16 // The lengths around the points grow with them.
	for i := range sums {
		dp := points.AppendEmpty()
		sums[i].write(dp, shown)
		if size += marshaler.NumberDataPointSize(dp) + 4; size > requestBytes && i > 0 {
			n := 0
			points.RemoveIf(func(pmetric.NumberDataPoint) bool { n++; return n > i })
			return metrics, sums[i:]
		}
	}
	return metrics, nil
}

// shown returns what points name of a cluster.
func (s *Series) shown(cluster semconv.Cluster) semconv.Cluster {
	if s.settings.Disabled[clusterUID] {
		cluster.UID = ""
	}
	if s.settings.Disabled[clusterName] {
		cluster.Name = ""
	}
	return cluster
}

// sum is one point that Metrics writes.
type sum struct {
	series *series // Only its identity is read without a lock.
	start  time.Time
	at     time.Time
	value  int64
}

// compare orders sums so that the series of a workload follow each other: compression finds what they
// have in common. The points of a series are in the order of time.
func (s sum) compare(other sum) int {
	if order := slices.Compare(s.series.values[:], other.series.values[:]); order != 0 {
		return order
	}
	return s.at.Compare(other.at)
}

// sums returns what Metrics writes. The loop waits meanwhile, so that nothing is written here.
func (s *Series) sums(now time.Time) []sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]sum, 0, len(s.byKey))
	for _, one := range s.byKey {
		all = s.appendLocked(all, one, now.Round(0))
	}
	for i := range all {
		s.emitted = later(s.emitted, all[i].at)
	}
	return all
}

// appendLocked appends the points of one series: its value, or the 0 before it, or both. If the
// metrics pipeline rejects the 0, it is lost: one of several exporters may have got it, and another
// one may reject everything.
func (s *Series) appendLocked(all []sum, one *series, now time.Time) []sum {
	if one.needsZero {
		one.needsZero = false
		all = append(all, sum{series: one, start: one.start, at: one.start})
		if !s.ends {
			return all
		}
	}
	one.written, one.last = one.occurrences, later(now, one.last.Add(time.Millisecond))
	return append(all, sum{series: one, start: one.start, at: one.last, value: one.written})
}

// Accepted notes that the metrics pipeline accepted what Metrics returned last.
func (s *Series) Accepted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byKey {
		one.accepted = one.written
	}
}

// LastPoint returns the time of the last points, or that at which the sums began.
func (s *Series) LastPoint() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emitted
}

// End lets the next Metrics write the 0 of a new series together with its value.
func (s *Series) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = true
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

// write writes the point of the sum, with all its attributes: many backends do not keep those of a
// resource as labels.
func (s *sum) write(dp pmetric.NumberDataPoint, cluster semconv.Cluster) {
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
	dp.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
	dp.SetIntValue(s.value)
	attributes := dp.Attributes()
	attributes.EnsureCapacity(2 + len(names) + len(s.series.tags))
	put := semconv.Writer(attributes)
	put.Cluster(cluster)
	if s.series.key == overflow {
		attributes.PutBool("otel.metric.overflow", true)
		return
	}
	for i, name := range names {
		put.String(name, s.series.values[i])
	}
	for _, tag := range s.series.tags {
		put.StringIfNew(tag.Name, tag.Value)
	}
}

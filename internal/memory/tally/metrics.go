// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// MetricName is the name of the metric.
const MetricName = "k8s.event.occurrences"

// requestBytes bounds a request, in bytes of OTLP. Several hosted backends refuse a larger one.
const requestBytes = 1_000_000

// Scope names who writes the metric.
type Scope struct{ Name, Version string }

// Metrics writes every sum as one cumulative, monotonic point at the given time, but at least 1 ms
// after the last points: OTLP requires that the times of a series increase. With InitialZero, it
// writes 0 at its start time for a new series; the next call writes its value. If the cluster has
// another name than before, each series ends with a last point under the old name. The points are
// cut into requests, which are made one at a time.
func (t *Tally) Metrics(scope Scope, cluster semconv.Cluster, now time.Time) iter.Seq[pmetric.Metrics] {
	sums := t.sums(cluster, now)
	slices.SortFunc(sums, sum.compare)
	return func(yield func(pmetric.Metrics) bool) {
		for rest := sums; len(rest) > 0; {
			var request pmetric.Metrics
			if request, rest = t.request(scope, rest); !yield(request) {
				return
			}
		}
	}
}

// request writes the first sums that are of one cluster and fit into a request. It returns the rest.
func (t *Tally) request(scope Scope, sums []sum) (pmetric.Metrics, []sum) {
	metrics, cluster := pmetric.NewMetrics(), *sums[0].cluster
	rm := metrics.ResourceMetrics().AppendEmpty()
	semconv.Writer(rm.Resource().Attributes()).Cluster(cluster)
	points := newSum(rm, scope)
	shown := t.shown(cluster)
	var marshaler pmetric.ProtoMarshaler
	size := marshaler.MetricsSize(metrics) + 16 // The lengths around the points grow with them.
	for i := range sums {
		if *sums[i].cluster != cluster {
			return metrics, sums[i:]
		}
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
func (t *Tally) shown(cluster semconv.Cluster) semconv.Cluster {
	if t.config.Disabled[clusterUID] {
		cluster.UID = ""
	}
	if t.config.Disabled[clusterName] {
		cluster.Name = ""
	}
	return cluster
}

// sum is one point that Metrics writes.
type sum struct {
	of      *series // Only its identity is read without a lock.
	cluster *semconv.Cluster
	start   time.Time
	at      time.Time
	value   int64
}

// compare orders sums by cluster, since each has its own requests. The series of a workload follow
// each other, so that compression finds what they have in common, and the points of a series are in
// the order of time.
func (s sum) compare(other sum) int {
	if s.cluster != other.cluster && *s.cluster != *other.cluster {
		return cmp.Or(cmp.Compare(s.cluster.UID, other.cluster.UID), cmp.Compare(s.cluster.Name, other.cluster.Name))
	}
	if order := slices.Compare(s.of.values[:], other.of.values[:]); order != 0 {
		return order
	}
	return s.at.Compare(other.at)
}

// sums returns what Metrics writes. The loop waits meanwhile, so that nothing is written here.
func (t *Tally) sums(cluster semconv.Cluster, now time.Time) []sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cluster == nil || *t.cluster != cluster {
		t.cluster = &cluster
	}
	// The clock may have been set back since the sums began, and since an earlier process ended.
	now = later(now.Round(0), t.begin)
	if !t.ends.IsZero() {
		now = t.ends
	}
	now = later(now, t.emitted.Add(time.Millisecond))
	all := make([]sum, 0, len(t.series))
	for _, s := range t.series {
		all = t.appendLocked(all, s, now)
	}
	for i := range all {
		t.emitted = later(t.emitted, all[i].at) // It may start later than now.
	}
	return all
}

// appendLocked appends the points of one series: its value, or the 0 before it, or both.
func (t *Tally) appendLocked(all []sum, s *series, now time.Time) []sum {
	value := t.valueLocked(s)
	if value == 0 {
		return all // It is not saved yet.
	}
	if s.cluster == nil { // So its 0 is not written yet either.
		s.cluster = t.cluster
		t.changed.Note(s.key)
	}
	zero := sum{of: s, cluster: s.cluster, start: s.start, at: s.start}
	switch {
	case !s.zero.written:
		s.zero.written, s.last = true, zero.at
		return append(all, zero)
	case t.changed.Tracked() && !s.zero.saved:
		reached.State("a value waits until its series' zero is saved")
		return all // After a crash now, the 0 would come after the value.
	case s.zero.owed:
		s.zero.owed, s.last = false, zero.at
		all = append(all, zero)
	}
	s.written, s.last = value, later(now, s.last.Add(time.Millisecond))
	return append(all, sum{of: s, cluster: s.cluster, start: s.start, at: s.last, value: value})
}

// valueLocked returns what the metric reports of a sum. Where sums are saved, it is the saved part:
// a sum that was reported, but lost in a crash, would fall at the next start.
func (t *Tally) valueLocked(s *series) int64 {
	if t.changed.Tracked() {
		return s.durable
	}
	return s.occurrences
}

// IsUnsaved reports whether something has changed that has to be saved, such as which series have
// begun: this comes before Metrics writes their values.
func (t *Tally) IsUnsaved() bool { return t.Changed() > 0 }

// Emitted notes that the metrics pipeline accepted what Metrics returned last. Series whose cluster
// has another name since begin under it, with what was not accepted: the sum of both stays exact.
func (t *Tally) Emitted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.series {
		s.emitted = s.written
		if s.cluster == nil || *s.cluster == *t.cluster {
			continue
		}
		left := s.occurrences - s.emitted
		if left == 0 {
			t.dropLocked(s)
			continue
		}
		reached.State("a series goes on under another cluster")
		moved := s.moved
		s.point = t.newPoint(t.emitted.Add(time.Millisecond))
		s.moved, s.occurrences = moved, left
		t.changed.Note(s.key)
	}
}

// End lets the next Metrics write the 0 of a new series together with its value, at this time. If
// the sums are saved, this must be saved before that.
func (t *Tally) End(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = later(now.Round(0), t.begin)
	for _, s := range t.series {
		if !s.zero.written {
			s.zero.written, s.zero.owed = true, true
			t.changed.Note(s.key)
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

// write writes the point of the sum, with all its attributes: many backends do not keep those of a
// resource as labels.
func (s *sum) write(dp pmetric.NumberDataPoint, cluster semconv.Cluster) {
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
	dp.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
	dp.SetIntValue(s.value)
	attributes := dp.Attributes()
	attributes.EnsureCapacity(2 + len(names) + len(s.of.tags))
	put := semconv.Writer(attributes)
	put.Cluster(cluster)
	if s.of.key == overflow {
		attributes.PutBool("otel.metric.overflow", true)
		return
	}
	for i, name := range names {
		put.String(name, s.of.values[i])
	}
	for _, tag := range s.of.tags {
		put.StringIfNew(tag.Name, tag.Value)
	}
}

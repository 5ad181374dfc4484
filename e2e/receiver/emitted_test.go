// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// record is one log record with its resource.
type record struct{ harness.Record }

func recordsOf(logs plog.Logs) (records []record) {
	for _, one := range harness.RecordsOf(logs) {
		records = append(records, record{one})
	}
	return records
}

// text is an attribute of the record or else of its resource; empty if neither has it.
func (r record) text(key string) string {
	value, _ := r.Get(key).(string)
	return value
}

func (r record) count() int64       { return r.Attributes["k8s.event.count"].(int64) }
func (r record) occurrences() int64 { return r.Attributes["k8s.event.occurrences"].(int64) }
func (r record) resolution() string { return r.text("k8s.owner.resolution") }
func (r record) body() string       { return r.Log.Body().Str() }
func (r record) time() time.Time    { return r.Log.Timestamp().AsTime() }

// observation is what a record contains of counts.
type observation struct{ count, occurrences int64 }

func observationsOf(records []record) (all []observation) {
	for _, r := range records {
		all = append(all, observation{r.count(), r.occurrences()})
	}
	return all
}

// about picks the records of a reason whose involved object is in a namespace.
func about(namespace, reason string) func(record) bool {
	return func(r record) bool {
		return r.text("k8s.event.reason") == reason && r.text("k8s.namespace.name") == namespace
	}
}

// named picks the records of one event.
func named(event string) func(record) bool {
	return func(r record) bool { return r.text("k8s.event.name") == event }
}

// total is the sum of the records' occurrences.
func total(records []record) (sum int64) {
	for _, r := range records {
		sum += r.occurrences()
	}
	return sum
}

// point is one point of the metric.
type point struct {
	attrs     map[string]any
	value     int64
	start, at time.Time
}

func pointsOf(metrics pmetric.Metrics) (points []point) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				for _, dp := range metric.Sum().DataPoints().All() {
					points = append(points, point{dp.Attributes().AsRaw(), dp.IntValue(), dp.StartTimestamp().AsTime(), dp.Timestamp().AsTime()})
				}
			}
		}
	}
	return points
}

// withReason picks the points of one reason.
func withReason(reason string) func(point) bool {
	return func(p point) bool { return p.attrs["k8s.event.reason"] == reason }
}

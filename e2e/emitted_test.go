// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// record is one log record with its resource, flattened for tests.
type record struct {
	resource map[string]any
	attrs    map[string]any
	log      plog.LogRecord
}

func recordsOf(logs plog.Logs) (records []record) {
	for _, rl := range logs.ResourceLogs().All() {
		resource := rl.Resource().Attributes().AsRaw()
		for _, sl := range rl.ScopeLogs().All() {
			for _, log := range sl.LogRecords().All() {
				records = append(records, record{resource, log.Attributes().AsRaw(), log})
			}
		}
	}
	return records
}

// text is an attribute of the record or else of its resource; empty if neither has it.
func (r record) text(key string) string {
	value, ok := r.attrs[key].(string)
	if !ok {
		value, _ = r.resource[key].(string)
	}
	return value
}

func (r record) count() int64       { return r.attrs["k8s.event.count"].(int64) }
func (r record) occurrences() int64 { return r.attrs["k8s.event.occurrences"].(int64) }
func (r record) resolution() string { return r.text("k8s.owner.resolution") }
func (r record) body() string       { return r.log.Body().Str() }
func (r record) time() time.Time    { return r.log.Timestamp().AsTime() }

// chain is the owner chain in one line.
func (r record) chain() string {
	owners, _ := r.resource["k8s.owner.chain"].([]any)
	names := make([]string, len(owners))
	for i, owner := range owners {
		names[i] = owner.(string)
	}
	return strings.Join(names, " ")
}

// about picks the records of a reason whose involved object is in a namespace; any will do if it is
// empty.
func about(namespace, reason string) func(record) bool {
	return func(r record) bool {
		return r.text("k8s.event.reason") == reason && (namespace == "" || r.text("k8s.namespace.name") == namespace)
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

// point is one point of the metric, flattened for tests. All that tells series apart is an attribute
// of the point.
type point struct {
	attrs map[string]any
	value int64
	start time.Time
	at    time.Time
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

func anyPoint(point) bool { return true }

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// checkPromises checks what holds for everything that a receiver emits, whatever the test is about.
func checkPromises(t *testing.T, r *running) {
	t.Helper()
	records := r.all()
	checkScopes(t, r)
	checkRecords(t, records)
	checkSums(t, r)
	assert.Equal(t, countOf(records), metricOf(r), "the metric is the sum of k8s.event.occurrences over all records")
}

// checkScopes: the receiver identifies itself.
func checkScopes(t *testing.T, r *running) {
	t.Helper()
	for _, batch := range r.logs.AllLogs() {
		for _, rl := range batch.ResourceLogs().All() {
			assert.Equal(t, 1, rl.ScopeLogs().Len())
			assert.Equal(t, "github.com/kubeevents/kubeeventsreceiver", rl.ScopeLogs().At(0).Scope().Name())
		}
	}
}

// recordAttributes are all that a record may have.
var recordAttributes = set(
	"k8s.event.name", "k8s.event.uid", "k8s.event.reason", "k8s.event.type", "k8s.event.action", "k8s.event.count",
	"k8s.event.occurrences", "k8s.event.start_time", "k8s.event.reporting_controller", "k8s.event.reporting_instance",
	"k8s.event.related.api_version", "k8s.event.related.kind", "k8s.event.related.namespace", "k8s.event.related.name",
	"k8s.event.related.uid", "k8s.object.fieldpath", "k8s.object.resource_version", "k8s.owner.resolution", "log.record.uid",
)

// isEventTag reports whether an attribute of a record is a tag of the Event, as tests name them.
func isEventTag(key string) bool {
	return strings.HasPrefix(key, "k8s.event.label.") || strings.HasPrefix(key, "k8s.event.annotation.") || strings.HasPrefix(key, "event.")
}

var resolutions = set("complete", "ambiguous", "not_found", "forbidden", "timeout", "unavailable", "cycle", "depth", "")

func set(values ...string) map[string]bool {
	all := map[string]bool{}
	for _, value := range values {
		all[value] = true
	}
	return all
}

func checkRecords(t *testing.T, records []record) {
	t.Helper()
	delivered := map[string]bool{}
	for _, r := range records {
		assert.Equal(t, "k8s.event", r.log.EventName())
		assert.GreaterOrEqual(t, r.count(), int64(1))
		assert.GreaterOrEqual(t, r.occurrences(), int64(1))
		assert.GreaterOrEqual(t, r.count(), r.occurrences(), "no more new occurrences than there were so far")
		assert.WithinDuration(t, time.Now(), r.log.ObservedTimestamp().AsTime(), 10*time.Minute)
		assert.True(t, resolutions[r.resolution()], r.resolution())
		assert.Equal(t, r.text("k8s.event.type"), r.log.SeverityText())

		uid := r.text("log.record.uid")
		assert.NotEmpty(t, uid)
		assert.False(t, delivered[uid], "%s was delivered twice", uid)
		delivered[uid] = true

		for key := range r.attrs {
			assert.True(t, recordAttributes[key] || isEventTag(key), "unknown attribute %s", key)
		}
		assert.True(t, utf8.ValidString(r.body()) && utf8.ValidString(r.log.SeverityText()))
		checkValues(t, r.attrs)
		checkValues(t, r.resource)
		checkWorkload(t, r)
	}
}

// checkValues: an absent value is left out, never an empty string; and a backend can read what is
// there.
func checkValues(t *testing.T, attributes map[string]any) {
	t.Helper()
	for key, value := range attributes {
		assert.NotEmpty(t, value, key)
		assert.True(t, utf8.ValidString(key))
		if text, ok := value.(string); ok {
			assert.True(t, utf8.ValidString(text), key)
		}
	}
}

// checkWorkload: the workload is set only where the end is known, or may not be read, and is the last of
// the chain.
func checkWorkload(t *testing.T, r record) {
	t.Helper()
	known := slices.Contains([]string{"complete", "ambiguous", "forbidden"}, r.resolution())
	assert.Equal(t, known, r.resource["k8s.workload.name"] != nil, "%s: %v", r.resolution(), r.resource)
	assert.Equal(t, r.resource["k8s.owner.name"] != nil, r.resource["k8s.owner.chain"] != nil, r.resource)
	if known && r.chain() != "" {
		assert.True(t, strings.HasSuffix(r.chain(), "/"+r.text("k8s.workload.name")), r.resource)
	}
}

// checkSums: one cumulative, monotonic sum, whose points never fall nor change their start. A series
// begins with 0 at its start. If it is new at the end, its value comes in the same request.
func checkSums(t *testing.T, r *running) {
	t.Helper()
	before := map[string]point{}
	for _, metrics := range r.metrics.AllMetrics() {
		checkMetric(t, metrics)
		now := map[string]point{}
		for _, p := range pointsOf(metrics) {
			// Without the cluster's UID, which may become known later.
			key := fmt.Sprint(without(p.attrs, "k8s.cluster.uid"))
			last, ok := now[key]
			if ok {
				assert.Zero(t, last.value, "%s has two points in one request", key)
			} else {
				last, ok = before[key]
			}
			now[key] = p
			checkValues(t, p.attrs)
			assert.False(t, p.start.After(p.at))
			if !ok {
				assert.Zero(t, p.value, "%s begins with 0", key)
				assert.Equal(t, p.start, p.at, key)
				continue
			}
			assert.GreaterOrEqual(t, p.value, last.value, key)
			assert.Equal(t, last.start, p.start, key)
			assert.True(t, p.at.After(last.at), key)
		}
		before = now
	}
}

func checkMetric(t *testing.T, metrics pmetric.Metrics) {
	t.Helper()
	for _, rm := range metrics.ResourceMetrics().All() {
		for key := range rm.Resource().Attributes().All() {
			assert.Contains(t, []string{"k8s.cluster.uid", "k8s.cluster.name"}, key, "the resource is the cluster")
		}
		assert.Equal(t, 1, rm.ScopeMetrics().Len())
		assert.Equal(t, 1, rm.ScopeMetrics().At(0).Metrics().Len())
		metric := rm.ScopeMetrics().At(0).Metrics().At(0)
		assert.Equal(t, "k8s.event.occurrences", metric.Name())
		assert.Equal(t, "{occurrence}", metric.Unit())
		assert.True(t, metric.Sum().IsMonotonic())
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
	}
}

// countOf is what the metric has to be, computed from the records.
func countOf(records []record) map[string]int64 {
	sums := map[string]int64{}
	for _, r := range records {
		sums[seriesOf(pointAttributesOf(r))] += r.occurrences()
	}
	return sums
}

// pointAttributesOf are the attributes that a record's occurrences count under. They have no tags of
// the Node, which tests name node.…, and name no service.
func pointAttributesOf(r record) map[string]any {
	attributes := maps.Clone(r.resource)
	maps.DeleteFunc(attributes, func(key string, _ any) bool {
		return strings.HasPrefix(key, "node.") || strings.HasPrefix(key, "service.") || key == "k8s.workload.uid" ||
			strings.HasPrefix(key, "k8s.") && !strings.HasPrefix(key, "k8s.namespace.") && !strings.HasPrefix(key, "k8s.workload.")
	})
	kind, _ := attributes["k8s.workload.kind"].(string)
	if kind == "" && isPod(r.text("k8s.object.kind"), r.text("k8s.object.api_version")) || isPod(kind, r.text("k8s.workload.api_version")) {
		// A bare pod, or one whose end is not known.
		delete(attributes, "k8s.workload.name")
		attributes["k8s.workload.kind"], attributes["k8s.workload.api_version"] = "Pod", "v1"
	}
	for _, key := range []string{"k8s.event.reason", "k8s.event.type", "k8s.object.kind"} {
		if value := r.text(key); value != "" {
			attributes[key] = value
		}
	}
	return attributes
}

func isPod(kind, apiVersion string) bool {
	return kind == "Pod" && (apiVersion == "v1" || apiVersion == "")
}

// metricOf is what the metric came to at last.
func metricOf(r *running) map[string]int64 {
	sums := map[string]int64{}
	all := r.metrics.AllMetrics()
	if len(all) == 0 {
		return sums
	}
	for _, p := range pointsOf(all[len(all)-1]) {
		sums[seriesOf(without(p.attrs, "k8s.cluster.uid"))] = p.value
	}
	return sums
}

// seriesOf is a comparable and readable form of a series.
func seriesOf(attributes map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, attributes[key]))
	}
	return strings.Join(parts, " ")
}

func without(attributes map[string]any, keys ...string) map[string]any {
	left := maps.Clone(attributes)
	for _, key := range keys {
		delete(left, key)
	}
	return left
}

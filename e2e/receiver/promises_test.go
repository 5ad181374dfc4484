// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// checkPromises checks what holds for everything that a receiver emits, whatever the test is about.
func checkPromises(t *testing.T, r *running) {
	t.Helper()
	records := r.all()
	checkRecords(t, records)
	checkSums(t, r)
	assert.Equal(t, countOf(records), metricOf(r), "the metric is the sum of k8s.event.occurrences over all records")
}

func checkRecords(t *testing.T, records []record) {
	t.Helper()
	delivered := map[string]bool{}
	for _, r := range records {
		assert.GreaterOrEqual(t, r.count(), int64(1))
		assert.GreaterOrEqual(t, r.occurrences(), int64(1))
		assert.GreaterOrEqual(t, r.count(), r.occurrences(), "no more new occurrences than there were so far")

		uid := r.text("log.record.uid")
		assert.NotEmpty(t, uid)
		assert.False(t, delivered[uid], "%s was delivered twice", uid)
		delivered[uid] = true

		assert.True(t, utf8.ValidString(r.body()) && utf8.ValidString(r.Log.SeverityText()))
		checkValues(t, r.Attributes)
		checkValues(t, r.Resource)
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
	assert.Equal(t, known, r.Resource["k8s.workload.name"] != nil, "%s: %v", r.resolution(), r.Resource)
	assert.Equal(t, r.Resource["k8s.owner.name"] != nil, r.Resource["k8s.owner.chain"] != nil, r.Resource)
	if chain, _ := r.Resource["k8s.owner.chain"].([]any); known && len(chain) > 0 {
		assert.True(t, strings.HasSuffix(chain[len(chain)-1].(string), "/"+r.text("k8s.workload.name")), r.Resource)
	}
}

// checkSums: one cumulative, monotonic sum, whose points never fall nor change their start. A series
// begins with 0 at its start. If it is new at the end, its value comes in the same request.
func checkSums(t *testing.T, r *running) {
	t.Helper()
	before := map[string]point{}
	for _, metrics := range r.metrics.AllMetrics() {
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

// countOf is what the metric has to be, computed from the records.
func countOf(records []record) map[string]int64 {
	sums := map[string]int64{}
	for _, r := range records {
		sums[seriesOf(pointAttributesOf(r))] += r.occurrences()
	}
	return sums
}

// pointAttributesOf are the attributes that a record's occurrences count under.
func pointAttributesOf(r record) map[string]any {
	attributes := maps.Clone(r.Resource)
	maps.DeleteFunc(attributes, func(key string, _ any) bool {
		return strings.HasPrefix(key, "service.") || key == "k8s.workload.uid" ||
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

// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// Backend takes OTLP over HTTP.
type Backend struct {
	URL string

	mu      sync.Mutex
	records []Record
	sums    map[string]sum // by series
}

// Record is a log record with its resource.
type Record struct {
	Resource, Attributes map[string]any
	Log                  plog.LogRecord
}

// Get is an attribute of the record or its resource; nil if neither has it.
func (r Record) Get(key string) any {
	if value, ok := r.Attributes[key]; ok {
		return value
	}
	return r.Resource[key]
}

// sum is a series with its last value.
type sum struct {
	name       string
	attributes map[string]any // with those of the resource
	value      int64
}

// NewBackend starts a backend that ends with the test.
func NewBackend(t testing.TB) *Backend {
	b := &Backend{sums: map[string]sum{}}
	server := httptest.NewServer(b)
	b.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// ServeHTTP implements http.Handler.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(unzipped)
	if err != nil {
		return // The Collector was stopped in the middle of it.
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if strings.HasSuffix(r.URL.Path, "/v1/metrics") {
		_, _ = w.Write(b.takeMetrics(body))
	} else {
		_, _ = w.Write(b.takeLogs(body))
	}
}

func (b *Backend) takeLogs(body []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	request := plogotlp.NewExportRequest()
	_ = request.UnmarshalProto(body)
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				b.records = append(b.records, Record{resource.Resource().Attributes().AsRaw(), log.Attributes().AsRaw(), log})
			}
		}
	}
	reply, _ := plogotlp.NewExportResponse().MarshalProto()
	return reply
}

func (b *Backend) takeMetrics(body []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	request := pmetricotlp.NewExportRequest()
	_ = request.UnmarshalProto(body)
	for _, resource := range request.Metrics().ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				b.takeMetric(resource.Resource().Attributes(), metric)
			}
		}
	}
	reply, _ := pmetricotlp.NewExportResponse().MarshalProto()
	return reply
}

func (b *Backend) takeMetric(resource pcommon.Map, metric pmetric.Metric) {
	if metric.Type() != pmetric.MetricTypeSum {
		return
	}
	for _, point := range metric.Sum().DataPoints().All() {
		attributes := resource.AsRaw()
		for key, value := range point.Attributes().All() {
			attributes[key] = value.AsRaw()
		}
		b.sums[fmt.Sprint(metric.Name(), attributes)] = sum{metric.Name(), attributes, point.IntValue()}
	}
}

// Records are those that have these attributes, or whose resource has: key, value, key, value. The value nil stands for an
// absent attribute.
func (b *Backend) Records(attributes ...any) (found []Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, record := range b.records {
		if matches(record.Get, attributes) {
			found = append(found, record)
		}
	}
	return found
}

// Await waits for a record with these attributes, and returns the first.
func (b *Backend) Await(t testing.TB, attributes ...any) Record {
	t.Helper()
	var found []Record
	Eventually(t, func() bool {
		found = b.Records(attributes...)
		return len(found) > 0
	}, "a record with %v", attributes)
	return found[0]
}

// Occurrences is the sum of the last values of all series of k8s.event.occurrences that have these attributes.
func (b *Backend) Occurrences(attributes ...any) (total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sums {
		if s.name == "k8s.event.occurrences" && matches(func(key string) any { return s.attributes[key] }, attributes) {
			total += s.value
		}
	}
	return total
}

func matches(get func(string) any, attributes []any) bool {
	for pair := range slices.Chunk(attributes, 2) {
		if get(pair[0].(string)) != pair[1] {
			return false
		}
	}
	return true
}

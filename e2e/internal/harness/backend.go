// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// Backend stores the OTLP that it receives.
type Backend struct {
	URL  string
	GRPC string // the URL for gRPC

	mu      sync.Mutex
	records []Record
	sums    map[string]sum              // by series and start time
	answer  func(context.Context) error // nil: the backend accepts everything
}

// Record is a log record with its resource.
type Record struct {
	Resource, Attributes map[string]any
	Log                  plog.LogRecord
	Received             time.Time
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

// NewBackend starts a backend that ends with the test. What it receives it also passes to other
// backends.
func NewBackend(t testing.TB, others ...*Backend) *Backend {
	t.Helper()
	b := &Backend{sums: map[string]sum{}}
	all := append([]*Backend{b}, others...)
	sink, err := otlpsink.Start(otlpsink.Callbacks{
		Logs: func(ctx context.Context, logs plog.Logs) error {
			if err := b.answerTo(ctx); err != nil {
				return err
			}
			for _, one := range all {
				one.addLogs(logs)
			}
			return nil
		},
		Metrics: func(ctx context.Context, metrics pmetric.Metrics) error {
			if err := b.answerTo(ctx); err != nil {
				return err
			}
			for _, one := range all {
				one.addMetrics(metrics)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.URL, b.GRPC = sink.URL, sink.GRPC
	t.Cleanup(func() {
		if err := sink.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Answer sets what the backend answers from now on, as callbacks of otlpsink do. It stores a request
// if the function returns nil. Without a function, it stores every request.
func (b *Backend) Answer(answer func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

func (b *Backend) answerTo(ctx context.Context) error {
	b.mu.Lock()
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

func (b *Backend) addLogs(received plog.Logs) {
	logs := plog.NewLogs() // The receiver may use its own again.
	received.CopyTo(logs)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, RecordsOf(logs)...)
}

// RecordsOf returns the records, each with its resource, as received now.
func RecordsOf(logs plog.Logs) (records []Record) {
	now := time.Now()
	for _, resource := range logs.ResourceLogs().All() {
		attributes := resource.Resource().Attributes().AsRaw()
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				records = append(records, Record{attributes, log.Attributes().AsRaw(), log, now})
			}
		}
	}
	return records
}

func (b *Backend) addMetrics(metrics pmetric.Metrics) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				b.addMetric(resource.Resource().Attributes(), metric)
			}
		}
	}
}

func (b *Backend) addMetric(resource pcommon.Map, metric pmetric.Metric) {
	if metric.Type() != pmetric.MetricTypeSum {
		return
	}
	for _, point := range metric.Sum().DataPoints().All() {
		attributes := resource.AsRaw()
		for key, value := range point.Attributes().All() {
			attributes[key] = value.AsRaw()
		}
		b.sums[fmt.Sprint(metric.Name(), point.StartTimestamp(), attributes)] = sum{metric.Name(), attributes, point.IntValue()}
	}
}

// Records are those that have these attributes, or whose resource has: key, value, key, value. The
// value nil means an absent attribute.
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

// Occurrences is the sum of the last values of all series of k8s.event.occurrences that have these
// attributes, of all processes: each begins with 0 and a new start time.
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

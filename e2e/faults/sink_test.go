// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// probeReason is the reason of the events that only find out whether a Collector watches. They
// count nowhere.
const probeReason = "Probe"

// answer is what the sink does with a request.
type answer int

const (
	accept              answer = iota
	rejectRetryable            // with a retryable error
	rejectPermanently          // with a permanent error
	withoutAnswer              // the Collector gives up waiting
	acceptWithoutAnswer        // the worst: the data is kept, and the Collector cannot know
)

// sink is the backend. It keeps in order what it received.
type sink struct {
	url string

	mu      sync.Mutex
	answer  answer
	records []record // also those that were refused permanently
	points  []point
	probes  map[string]string // names of probes, and the replica that delivered them
}

// record is a log record, and the replica that delivered it.
type record struct {
	account.Record

	replica, namespace           string
	object, workload, resolution string // what the record is about; its owner, as KIND/NAME
}

// point is a point of the metric.
type point struct {
	replica, namespace, series string
	value                      int64
	start                      pcommon.Timestamp
	after                      int // records that had come before
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{probes: map[string]string{}}
	server, err := otlpsink.Start(otlpsink.Callbacks{Logs: s.receiveLogs, Metrics: s.receiveMetrics})
	require.NoError(t, err)
	s.url = server.URL
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	return s
}

// replicaHeader is the header that has the name of the replica.
const replicaHeader = "replica"

// answers changes what the sink does from now on.
func (s *sink) answers(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

func (s *sink) receiveLogs(ctx context.Context, logs plog.Logs) error {
	return s.receive(ctx, func(replica string) {
		if s.keeps() || s.answer == rejectPermanently {
			s.takeLogs(replica, logs)
		}
	})
}

func (s *sink) receiveMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	return s.receive(ctx, func(replica string) {
		if s.keeps() {
			s.takeMetrics(replica, metrics)
		}
	})
}

// keeps reports whether the sink keeps what it receives.
func (s *sink) keeps() bool { return s.answer == accept || s.answer == acceptWithoutAnswer }

// receive takes a request, and returns what makes the receiver give the answer.
func (s *sink) receive(ctx context.Context, take func(replica string)) error {
	switch s.take(otlpsink.Header(ctx, replicaHeader), take) {
	case rejectRetryable:
		return errors.New("the test rejects this temporarily")
	case rejectPermanently:
		return otlpsink.Rejected
	case withoutAnswer, acceptWithoutAnswer:
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}

// take takes a request, and returns what the sink answers.
func (s *sink) take(replica string, take func(replica string)) answer {
	s.mu.Lock()
	defer s.mu.Unlock() // The server recovers from a panic.
	take(replica)
	return s.answer
}

func (s *sink) takeLogs(replica string, logs plog.Logs) {
	for _, resource := range logs.ResourceLogs().All() {
		about := func(key string) string { return otlpsink.Text(resource.Resource().Attributes(), key) }
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				text := func(key string) string { return otlpsink.Text(log.Attributes(), key) }
				if text("k8s.event.reason") == probeReason {
					s.probes[text("k8s.event.name")] = replica
					continue
				}
				s.records = append(s.records, record{
					Record: account.Record{
						Event: text("k8s.event.name"), UID: text("log.record.uid"),
						Count: otlpsink.Number(log.Attributes(), "k8s.event.count"), Occurrences: otlpsink.Number(log.Attributes(), "k8s.event.occurrences"),
						Rejected: s.answer == rejectPermanently,
					},
					replica: replica, namespace: about("k8s.namespace.name"), object: about("k8s.object.name"),
					workload:   strings.Trim(about("k8s.workload.kind")+"/"+about("k8s.workload.name"), "/"),
					resolution: text("k8s.owner.resolution"),
				})
			}
		}
	}
}

func (s *sink) takeMetrics(replica string, metrics pmetric.Metrics) {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				for _, p := range metric.Sum().DataPoints().All() {
					if otlpsink.Text(p.Attributes(), "k8s.event.reason") == probeReason {
						continue
					}
					s.points = append(s.points, point{
						replica: replica, namespace: otlpsink.Text(p.Attributes(), "k8s.namespace.name"),
						series: nameOf(p.Attributes()),
						value:  p.IntValue(), start: p.StartTimestamp(), after: len(s.records),
					})
				}
			}
		}
	}
}

// nameOf is the same for equal attributes, in whatever order they come.
func nameOf(attributes pcommon.Map) string {
	return fmt.Sprint(attributes.AsRaw()) // fmt sorts maps by key
}

// allRecords are the records so far.
func (s *sink) allRecords() []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[:len(s.records):len(s.records)]
}

// allPoints are the points so far.
func (s *sink) allPoints() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.points[:len(s.points):len(s.points)]
}

// proberOf is the replica that delivered a probe; empty if none has.
func (s *sink) proberOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes[name]
}

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// probeReason is the reason of the events that only find out whether a Collector watches. They count nowhere.
const probeReason = "Probe"

// answer is what the sink does with a request.
type answer int

const (
	takeIt         answer = iota
	refuseForNow          // with an error that is worth another try
	refuseForGood         // with one that is not
	sayNothing            // until the Collector gives up
	takeSayNothing        // the worst: it is taken, and the Collector cannot know
)

// sink is the backend: it takes OTLP over HTTP from replicas, which it tells apart by the path, and keeps in order what
// it took.
type sink struct {
	server *httptest.Server

	mu      sync.Mutex
	answer  answer
	records []record // also those that were refused permanently
	points  []point
	probes  map[string]string // names of probes, and the replica that delivered them
}

// record is what counts in a log record.
type record struct {
	replica, namespace, event, uid string // uid is log.record.uid
	count, occurrences             int64
	refused                        bool
	bytes                          digest // of the record with its resource and scope, in OTLP
}

type digest = [sha256.Size]byte

// point is a point of the metric.
type point struct {
	replica, namespace, series string
	value                      int64
	start                      pcommon.Timestamp
	after                      int // records that had come before
}

func newSink(t *testing.T) *sink {
	s := &sink{probes: map[string]string{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

func (s *sink) url() string { return s.server.URL }

// answers changes what the sink does from now on.
func (s *sink) answers(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The Collector was killed in the middle of it.
	}
	replica, signal, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	reply, answer := s.take(replica, signal, body)
	switch answer {
	case refuseForNow:
		w.WriteHeader(http.StatusServiceUnavailable)
	case refuseForGood:
		w.WriteHeader(http.StatusBadRequest)
	case sayNothing, takeSayNothing:
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(reply)
	}
}

// take keeps what a request brings, unless the answer is not to.
func (s *sink) take(replica, signal string, body []byte) ([]byte, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.answer == takeIt || s.answer == takeSayNothing
	if signal == "v1/metrics" {
		request := pmetricotlp.NewExportRequest()
		if request.UnmarshalProto(body) == nil && kept {
			s.takeMetrics(replica, request.Metrics())
		}
		reply, _ := pmetricotlp.NewExportResponse().MarshalProto()
		return reply, s.answer
	}
	request := plogotlp.NewExportRequest()
	if request.UnmarshalProto(body) == nil && (kept || s.answer == refuseForGood) {
		s.takeLogs(replica, request)
	}
	reply, _ := plogotlp.NewExportResponse().MarshalProto()
	return reply, s.answer
}

func (s *sink) takeLogs(replica string, request plogotlp.ExportRequest) {
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				text := func(key string) string { return textOf(log.Attributes(), key) }
				if text("k8s.event.reason") == probeReason {
					s.probes[text("k8s.event.name")] = replica
					continue
				}
				s.records = append(s.records, record{
					replica: replica, namespace: textOf(resource.Resource().Attributes(), "k8s.namespace.name"),
					event: text("k8s.event.name"), uid: text("log.record.uid"),
					count: numberOf(log.Attributes(), "k8s.event.count"), occurrences: numberOf(log.Attributes(), "k8s.event.occurrences"),
					refused: s.answer == refuseForGood, bytes: digestOf(resource, scope, log),
				})
			}
		}
	}
}

// digestOf is the same for records that are the same, byte for byte.
func digestOf(resource plog.ResourceLogs, scope plog.ScopeLogs, log plog.LogRecord) digest {
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty()
	resource.Resource().CopyTo(r.Resource())
	r.SetSchemaUrl(resource.SchemaUrl())
	s := r.ScopeLogs().AppendEmpty()
	scope.Scope().CopyTo(s.Scope())
	s.SetSchemaUrl(scope.SchemaUrl())
	log.CopyTo(s.LogRecords().AppendEmpty())
	bytes, _ := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	return sha256.Sum256(bytes)
}

func (s *sink) takeMetrics(replica string, metrics pmetric.Metrics) {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				for _, p := range metric.Sum().DataPoints().All() {
					if textOf(p.Attributes(), "k8s.event.reason") == probeReason {
						continue
					}
					s.points = append(s.points, point{
						replica: replica, namespace: textOf(resource.Resource().Attributes(), "k8s.namespace.name"),
						series: nameOf(resource.Resource().Attributes()) + " " + nameOf(p.Attributes()),
						value:  p.IntValue(), start: p.StartTimestamp(), after: len(s.records),
					})
				}
			}
		}
	}
}

func textOf(attributes pcommon.Map, key string) string {
	value, _ := attributes.Get(key)
	return value.AsString()
}

func numberOf(attributes pcommon.Map, key string) int64 {
	if value, ok := attributes.Get(key); ok {
		return value.Int()
	}
	return 0
}

// nameOf is the same for equal attributes, in whatever order they come.
func nameOf(attributes pcommon.Map) string {
	return fmt.Sprint(attributes.AsRaw()) // fmt sorts maps by key
}

// took are the records so far.
func (s *sink) took() []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[:len(s.records):len(s.records)]
}

// metered are the points so far.
func (s *sink) metered() []point {
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

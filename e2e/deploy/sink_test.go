// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sink is the backend: it takes OTLP over HTTP.
type sink struct {
	url string

	mu      sync.Mutex
	records []map[string]any // a record's attributes with those of its resource
	metrics int              // requests that brought metrics
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		_, _ = w.Write(s.takeMetrics(body))
	} else {
		_, _ = w.Write(s.takeLogs(body))
	}
}

func (s *sink) takeMetrics(body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request := pmetricotlp.NewExportRequest(); request.UnmarshalProto(body) == nil {
		s.metrics++
	}
	reply, _ := pmetricotlp.NewExportResponse().MarshalProto()
	return reply
}

func (s *sink) takeLogs(body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := plogotlp.NewExportRequest()
	_ = request.UnmarshalProto(body)
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				record := resource.Resource().Attributes().AsRaw()
				for key, value := range log.Attributes().All() {
					record[key] = value.AsRaw()
				}
				s.records = append(s.records, record)
			}
		}
	}
	reply, _ := plogotlp.NewExportResponse().MarshalProto()
	return reply
}

// all are the records that have these attributes.
func (s *sink) all(attributes ...string) (found []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.records {
		matches := true
		for pair := range slices.Chunk(attributes, 2) {
			matches = matches && record[pair[0]] == pair[1]
		}
		if matches {
			found = append(found, record)
		}
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

const (
	// requestBytes bounds a request, in bytes of OTLP. 4 MiB is a usual limit of servers, and
	// exporters treat a larger request as a permanent error. A larger record is its own request.
	requestBytes = 1 << 20
	// firstRecordBytes is the size of a record in OTLP before any was measured.
	firstRecordBytes = 1000
)

// request is what is delivered at once, and with storage a part of the outbox.
type request struct {
	records []observation.Observation // nil: it comes from the outbox
	count   int                       // of its records
	encoded []byte                    // as OTLP; nil without storage
	logs    func() plog.Logs          // returns a fresh copy
}

// requests converts records. Without a logs pipeline, there are none.
func (s *session) requests(records []observation.Observation) (requests []*request) {
	if s.Logs == nil {
		return nil
	}
	for len(records) > 0 {
		part := records[:min(len(records), max(1, requestBytes/s.recordBytes))]
		requests = append(requests, s.requestsWithin(part)...)
		records = records[len(part):]
	}
	return requests
}

// requestsWithin halves records until each request is small enough.
func (s *session) requestsWithin(records []observation.Observation) []*request {
	uid := s.memory.Cluster() // It may become known between two attempts, which must be the same.
	convert := func() plog.Logs { return s.Converter.Convert(uid, records) }
	logs := convert()
	made := &request{records: records, count: len(records)}
	var size int
	if s.persist.saves() {
		made.encoded, _ = (&plog.ProtoMarshaler{}).MarshalLogs(logs) // It knows no error.
		size = len(made.encoded)
	} else {
		size = (&plog.ProtoMarshaler{}).LogsSize(logs)
	}
	if half := len(records) / 2; size > requestBytes && half > 0 {
		return append(s.requestsWithin(records[:half]), s.requestsWithin(records[half:])...)
	}
	s.recordBytes = max(1, size/len(records))
	again := convert
	if made.encoded != nil {
		again = decoded(made.encoded)
	}
	made.logs = onceThen(logs, again)
	return []*request{made}
}

// onceThen returns the logs at the first call, and what again returns at any other.
func onceThen(logs plog.Logs, again func() plog.Logs) func() plog.Logs {
	used := false
	return func() plog.Logs {
		if used {
			return again()
		}
		used = true
		return logs
	}
}

// decoded returns a function that decodes a request of the outbox. One that cannot be decoded is empty.
func decoded(encoded []byte) func() plog.Logs {
	return func() plog.Logs {
		logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(encoded)
		if err != nil {
			return plog.NewLogs()
		}
		return logs
	}
}

// stored returns the requests of an outbox that was loaded.
func stored(outbox [][]byte) (requests []*request) {
	for _, encoded := range outbox {
		logs := decoded(encoded)
		requests = append(requests, &request{count: logs().LogRecordCount(), encoded: encoded, logs: logs})
	}
	return requests
}

// one returns a request for each record.
func one(requests []*request) (single []*request) {
	for _, r := range requests {
		logs := r.logs()
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					single = append(single, &request{count: 1, logs: alone(rl, sl, lr)})
				}
			}
		}
	}
	return single
}

// alone returns a function that returns a record with its resource and scope.
func alone(rl plog.ResourceLogs, sl plog.ScopeLogs, lr plog.LogRecord) func() plog.Logs {
	return func() plog.Logs {
		logs := plog.NewLogs()
		resource := logs.ResourceLogs().AppendEmpty()
		rl.Resource().CopyTo(resource.Resource())
		resource.SetSchemaUrl(rl.SchemaUrl())
		scope := resource.ScopeLogs().AppendEmpty()
		sl.Scope().CopyTo(scope.Scope())
		scope.SetSchemaUrl(sl.SchemaUrl())
		lr.CopyTo(scope.LogRecords().AppendEmpty())
		return logs
	}
}

// describe names the record of a request of one.
func (r *request) describe() zap.Field {
	for _, rl := range r.logs().ResourceLogs().All() {
		lr := rl.ScopeLogs().At(0).LogRecords().At(0)
		return zap.Any("record", map[string]any{
			"body": lr.Body().AsString(), "attributes": lr.Attributes().AsRaw(),
			"resource": rl.Resource().Attributes().AsRaw(),
		})
	}
	return zap.Skip()
}

// recordsIn returns the records of the requests.
func recordsIn(requests []*request) []observation.Observation {
	var records []observation.Observation
	for _, r := range requests {
		records = append(records, r.records...)
	}
	return records
}

// deliver delivers the requests one after the other, and returns those that could not be delivered
// before the term ended.
func (s *session) deliver(t election.Term, requests []*request) (undelivered []*request) {
	for i, r := range requests {
		switch s.delivery.Deliver(t.Stop, t.Work, delivery.Request{Records: r.count, Logs: r.logs}) {
		case delivery.Stopped:
			return slices.Clone(requests[i:])
		case delivery.Accepted:
			s.Health.Delivered(r.records, time.Now())
		}
	}
	return nil
}

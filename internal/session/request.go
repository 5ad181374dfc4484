// SPDX-License-Identifier: Apache-2.0

package session

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// request is what is delivered at once, and with storage a part of the outbox.
type request struct {
	records []observation.Observation // nil: it comes from the outbox
	count   int                       // of its records
	encoded []byte                    // as OTLP; nil without storage
	logs    func() plog.Logs          // returns a fresh copy
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

// decoded returns a function that decodes a request of the outbox. One that cannot be decoded is
// empty.
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

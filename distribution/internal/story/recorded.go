// SPDX-License-Identifier: Apache-2.0

package story

import (
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Recorded returns the records of a file in OTLP's JSON one by one, the first seen first.
func Recorded(file string) (all []plog.Logs, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(content)
	if err != nil {
		return nil, err
	}
	return single(logs), nil
}

func single(logs plog.Logs) (all []plog.Logs) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				one := plog.NewLogs()
				rl := one.ResourceLogs().AppendEmpty()
				resource.Resource().CopyTo(rl.Resource())
				sl := rl.ScopeLogs().AppendEmpty()
				scope.Scope().CopyTo(sl.Scope())
				record.CopyTo(sl.LogRecords().AppendEmpty())
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b plog.Logs) int { return Seen(a).Compare(Seen(b)) })
	return all
}

// Seen returns when the receiver saw the last of some records.
func Seen(logs plog.Logs) time.Time {
	last := pcommon.Timestamp(0)
	each(logs, func(r plog.LogRecord) { last = max(last, r.ObservedTimestamp(), r.Timestamp()) })
	return last.AsTime()
}

// Move moves all times of records.
func Move(logs plog.Logs, by time.Duration) {
	moved := func(at pcommon.Timestamp) pcommon.Timestamp { return pcommon.NewTimestampFromTime(at.AsTime().Add(by)) }
	each(logs, func(r plog.LogRecord) {
		r.SetTimestamp(moved(r.Timestamp()))
		r.SetObservedTimestamp(moved(r.ObservedTimestamp()))
		if start, ok := r.Attributes().Get("k8s.event.start_time"); ok {
			if at, err := time.Parse(time.RFC3339Nano, start.Str()); err == nil {
				start.SetStr(at.Add(by).Format(time.RFC3339Nano))
			}
		}
	})
}

func each(logs plog.Logs, do func(plog.LogRecord)) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				do(record)
			}
		}
	}
}

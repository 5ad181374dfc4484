// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/plog"
)

// Stamp writes the ids of their spans into records that have no trace context: those of the pod, or
// those of the rollout. The model must already have the records.
func (m *Model) Stamp(logs plog.Logs) {
	histories := map[*Workload]history{}
	for _, resource := range logs.ResourceLogs().All() {
		s, ok := subjectOf(resource.Resource().Attributes())
		if !ok {
			continue
		}
		w := m.Workloads[s.key()]
		if w == nil {
			continue
		}
		if histories[w] == nil {
			histories[w] = w.history()
		}
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() == eventName && record.TraceID().IsEmpty() {
					s.stamp(w, histories[w], record)
				}
			}
		}
	}
}

func (s *subject) stamp(w *Workload, h history, record plog.LogRecord) {
	revision := s.revision
	if scaling, ok := ScalingOf(record.Body().AsString()); ok && revision == "" {
		revision = scaling.Revision
	}
	r := w.Revisions[revision]
	if r == nil {
		return
	}
	began := int64(record.Timestamp())
	pod := r.Pods[s.pod]
	if pod != nil {
		began = cmp.Or(r.began(pod), began)
	}
	trace, span := w.rootID(h.at(revision, began))
	if pod != nil {
		span = spanID(trace, s.pod, phasePod, "")
	}
	record.SetTraceID(trace)
	record.SetSpanID(span)
}

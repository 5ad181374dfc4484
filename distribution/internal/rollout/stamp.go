// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// Stamp writes the ids of their spans into records that have no trace context: those of the pod, or
// those of the rollout. The model must already have the records.
func (m *Model) Stamp(logs plog.Logs) {
	histories := map[*Workload]history{}
	for _, resource := range logs.ResourceLogs().All() {
		s := record.SubjectOf(resource.Resource().Attributes())
		w := m.Workloads[KeyOf(s).Workload]
		if w == nil {
			continue
		}
		if _, ok := histories[w]; !ok {
			histories[w] = w.history()
		}
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				if record.IsEvent(log) && log.TraceID().IsEmpty() {
					w.stamp(histories[w], s, log)
				}
			}
		}
	}
}

func (w *Workload) stamp(h history, s *record.Subject, log plog.LogRecord) {
	revision := s.Revision
	if scaling, ok := record.ScalingOf(log.Body().AsString()); ok && revision == "" {
		revision = scaling.Revision
	}
	r := w.Revisions[revision]
	if r == nil {
		return
	}
	began := int64(log.Timestamp())
	pod := r.Pods[s.Pod]
	if pod != nil {
		began = cmp.Or(r.began(pod), began)
	}
	trace, span := w.rootID(h.at(revision, began))
	if pod != nil {
		span = spanID(trace, s.Pod, phasePod, "")
	}
	log.SetTraceID(trace)
	log.SetSpanID(span)
}

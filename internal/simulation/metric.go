// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seriesKey is what the contract distinguishes occurrences by, as far as records say it too.
type seriesKey struct{ namespace, workloadKind, workload, manifest, reason, eventType, kind string }

// series is one identity with one start time.
type series struct {
	key   seriesKey
	value int64
	time  pcommon.Timestamp
}

// checkMetric checks the points of the metric, and compares the last ones with the records.
func (e *environment) checkMetric() {
	all, starts := map[string]*series{}, map[string]pcommon.Timestamp{}
	for _, d := range e.metrics {
		eachPoint(d.metrics, func(resource pcommon.Map, p pmetric.NumberDataPoint) {
			identity := identityOf(resource) + "|" + identityOf(p.Attributes())
			if start, known := starts[identity]; known && start != p.StartTimestamp() && e.plan.Storage && e.plan.SeriesTTL > e.plan.Active {
				e.violate(monotonic, "", "%s starts %v from scratch at %v", d.process.name, keyOfPoint(resource, p.Attributes()), p.Timestamp().AsTime().Sub(e.began))
			}
			starts[identity] = p.StartTimestamp()
			identity += "|" + p.StartTimestamp().String()
			if !e.plan.Storage {
				identity += "|" + d.process.name
			}
			s := all[identity]
			if s == nil {
				s = &series{key: keyOfPoint(resource, p.Attributes())}
				all[identity] = s
			}
			e.checkPoint(s, p, d.process)
			s.value, s.time = p.IntValue(), p.Timestamp()
		})
	}
	if e.plan.has(BackupRestored, ClusterNew) {
		return
	}
	e.compareSums(all)
}

func (e *environment) checkPoint(s *series, p pmetric.NumberDataPoint, by *process) {
	at := p.Timestamp().AsTime().Sub(e.began)
	switch {
	case p.IntValue() < s.value:
		e.violate(monotonic, "", "at %v, %s emits %d for %v after %d", at, by.name, p.IntValue(), s.key, s.value)
	case p.Timestamp() <= s.time:
		e.violate(monotonic, "", "%s emits two points of %v at %v", by.name, s.key, at)
	case p.StartTimestamp() > p.Timestamp():
		e.violate(monotonic, "", "%s emits a point of %v that starts after its time %v", by.name, s.key, at)
	case !e.plan.Storage && p.StartTimestamp().AsTime().Before(by.started.Truncate(time.Millisecond)):
		e.violate(monotonic, "", "%s emits a point of %v that starts before the process did", by.name, s.key)
	}
}

// compareSums compares the last values with the records. Without storage, sums end with the process,
// and only the last one's are complete.
func (e *environment) compareSums(all map[string]*series) {
	got, want := map[seriesKey]int64{}, map[seriesKey]int64{}
	last := e.firstObserver()
	records := e.lastRecords()
	if e.plan.Mode == (Mode{Elector: true}) && (emitters(records) > 1 || len(e.allProcesses()) > e.plan.Replicas) {
		return // Each leader has sums of its own, and a kill loses what was counted after the last collection.
	}
	for identity, s := range all {
		if e.plan.Mode != (Mode{}) || strings.HasSuffix(identity, "|"+last.name) {
			got[e.comparable(s.key)] += s.value
		}
	}
	for _, r := range records {
		if e.plan.Mode != (Mode{}) || r.process == last {
			want[e.comparable(keyOfRecord(r))] += r.occurrences
		}
	}
	for key := range want {
		if got[key] != want[key] {
			e.violate(metricIsSum, "", "%+v: the metric is %d, the records have %d", key, got[key], want[key])
		}
	}
	for key := range got {
		if want[key] == 0 {
			e.violate(metricIsSum, "", "%+v: the metric is %d, there are no records", key, got[key])
		}
	}
}

// comparable leaves the workload out where a record sums what was counted before with other owners,
// and everything where series overflow.
func (e *environment) comparable(key seriesKey) seriesKey {
	if e.plan.Dedup > 0 {
		key.workloadKind, key.workload, key.manifest = "", "", ""
	}
	if e.plan.MaxSeries < 100 {
		return seriesKey{}
	}
	return key
}

// emitters counts the processes that delivered records.
func emitters(records map[string]*record) int {
	processes := map[*process]bool{}
	for _, r := range records {
		processes[r.process] = true
	}
	return len(processes)
}

// lastRecords returns, for each log.record.uid that any exporter got, the last delivery.
func (e *environment) lastRecords() map[string]*record {
	last := map[string]*record{}
	for _, x := range e.exporters {
		for _, r := range records(x.all()) {
			if known := last[r.uid]; known == nil || known.at.Before(r.at) {
				last[r.uid] = r
			}
		}
	}
	return last
}

func eachPoint(metrics pmetric.Metrics, do func(resource pcommon.Map, point pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if sum := m.Sum(); m.Name() != "k8s.event.occurrences" || !sum.IsMonotonic() || sum.AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
					panic("the receiver emits another metric than a cumulative, monotonic k8s.event.occurrences: " + m.Name())
				}
				for _, p := range m.Sum().DataPoints().All() {
					do(rm.Resource().Attributes(), p)
				}
			}
		}
	}
}

// identityOf writes attributes in a fixed order.
func identityOf(attributes pcommon.Map) string {
	parts := make([]string, 0, attributes.Len())
	for key, value := range attributes.All() {
		if key == "k8s.cluster.uid" {
			continue // It is left out until it is known.
		}
		parts = append(parts, fmt.Sprintf("%s=%q", key, value.AsString()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func keyOfPoint(resource, point pcommon.Map) seriesKey {
	return seriesKey{
		text(resource, "k8s.namespace.name"), text(resource, "k8s.workload.kind"), text(resource, "k8s.workload.name"), text(resource, "tilt.manifest"),
		text(point, "k8s.event.reason"), text(point, "k8s.event.type"), text(point, "k8s.object.kind"),
	}
}

// keyOfRecord says under which series a record counts: a pod's without a known owner under its kind.
func keyOfRecord(r *record) seriesKey {
	key := seriesKey{
		text(r.resource, "k8s.namespace.name"), text(r.resource, "k8s.workload.kind"), text(r.resource, "k8s.workload.name"), text(r.resource, "tilt.manifest"),
		text(r.log.Attributes(), "k8s.event.reason"), text(r.log.Attributes(), "k8s.event.type"), text(r.resource, "k8s.object.kind"),
	}
	if isPod := key.kind == "Pod"; key.workloadKind == "Pod" || key.workloadKind == "" && isPod {
		key.workloadKind, key.workload = "Pod", ""
	}
	return key
}

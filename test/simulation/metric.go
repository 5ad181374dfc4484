// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seriesKey is what the contract distinguishes occurrences by, as far as records have it too.
type seriesKey struct{ namespace, workloadKind, workload, manifest, reason, eventType, kind string }

// series is one identity with one start time.
type series struct {
	key     seriesKey
	process *process
	value   int64
	time    pcommon.Timestamp
}

// checkMetric checks the points of the metric, and compares the last ones with the records.
func (e *environment) checkMetric() {
	all := map[string]*series{}
	newest := map[string]pmetric.NumberDataPoint{}
	for _, d := range e.metrics {
		// At the end of a term, a new series has two points.
		if n := d.metrics.DataPointCount(); n > 2*(e.plan.MaxSeries+1) {
			e.violate(boundedMemory, "", "%s emits %d points", d.process.name, n)
		}
		eachPoint(d.metrics, func(p pmetric.NumberDataPoint) {
			identity := identityOf(p.Attributes()) + "|" + d.process.name
			e.checkStart(newest, p, d.process, identity)
			identity += "|" + p.StartTimestamp().String()
			s := all[identity]
			if s == nil {
				s = &series{key: keyOfPoint(p.Attributes()), process: d.process}
				all[identity] = s
			}
			e.checkPoint(s, p, d.process)
			s.value, s.time = p.IntValue(), p.Timestamp()
		})
	}
	if !e.plan.has(BackupRestored, ClusterNew) && e.plan.Signals == BothSignals {
		e.compareSums(all)
	}
}

// checkStart checks that a series does not start again before its newest point so far.
func (e *environment) checkStart(
	newest map[string]pmetric.NumberDataPoint, p pmetric.NumberDataPoint, by *process, identity string,
) {
	last, known := newest[identity]
	newest[identity] = p
	if known && p.StartTimestamp() != last.StartTimestamp() && p.StartTimestamp() < last.Timestamp() {
		e.violate(monotonic, "", "%s restarts %s at %v, before its point of %v", by.name, identity,
			e.sinceStart(p.StartTimestamp().AsTime()), e.sinceStart(last.Timestamp().AsTime()))
	}
}

func (e *environment) checkPoint(s *series, p pmetric.NumberDataPoint, by *process) {
	var problem string
	// The contract: "Rejected metrics delay nothing (the next point carries the value)". So a 0 that is
	// rejected is lost, also one whose emission the end of its term cuts short.
	isFirst := s.time == 0 && !e.plan.has(MetricsRejected, MetricsHangs)
	if p.IntValue() == 0 && s.value == 0 && p.Timestamp() == s.time && p.Timestamp() == p.StartTimestamp() {
		return // The last process may not have known that it was accepted.
	}
	// A point of the last term may have the time at which the next one begins.
	term := by.termAt(p.Timestamp().AsTime().Add(-1))
	switch start := p.StartTimestamp(); {
	case !e.plan.NoZero && isFirst && (p.IntValue() != 0 || p.Timestamp() != p.StartTimestamp()):
		problem = "that is the first one, and not 0 at its start time"
	case p.IntValue() < s.value:
		problem = fmt.Sprintf("of %d after %d", p.IntValue(), s.value)
	case s.time > 0 && p.Timestamp() < s.time+pcommon.Timestamp(time.Millisecond):
		problem = "that is not 1 ms after the one before"
	case start > p.Timestamp():
		problem = "that starts after its time"
	case start.AsTime().Before(by.started.Truncate(time.Millisecond)):
		problem = "that starts before the process did"
	case e.plan.Elector && start.AsTime().Before(term):
		// The contract: "Sums belong to one process and one term", and "A series
		// never starts before the term in which the process counts it."
		problem = "that starts before the term did"
	default:
		return
	}
	at := e.sinceStart(p.Timestamp().AsTime())
	e.violate(monotonic, "", "at %v, %s emits a point of %v %s", at, by.name, s.key, problem)
}

// compareSums compares the last values with the records. Sums end with the process, and with the term,
// and only the last one's are complete.
func (e *environment) compareSums(all map[string]*series) {
	processes, terms := e.allProcesses(), 0
	for _, p := range processes {
		terms += len(p.allTerms())
	}
	if e.plan.Elector && (len(processes) > e.plan.Replicas || e.emitters() > 1) {
		return // Each leader has its own sums, and a kill loses those after the last collection.
	}
	last, got, want := processes[len(processes)-1], map[seriesKey]int64{}, map[seriesKey]int64{}
	counts := func(p *process) bool { return e.plan.Elector || p == last }
	for _, s := range all {
		if counts(s.process) {
			got[e.comparable(s.key)] += s.value
		}
	}
	delivered := slices.Collect(maps.Values(e.lastRecords()))
	if terms > 1 {
		delivered = e.records() // Each term counts what it repeats.
	}
	for _, r := range delivered {
		if counts(r.process) {
			want[e.comparable(keyOfRecord(r))] += r.occurrences
		}
	}
	// A term that another process may end loses what was counted after the last collection.
	mayLack := terms > 1 || e.fault(everyone, MetricsHangs) != nil // Or the last points do not arrive.
	for key := range want {
		if got[key] > want[key] || got[key] < want[key] && !mayLack {
			e.violate(metricIsSum, "", "%+v: the metric is %d, the records have %d",
				key, got[key], want[key])
		}
	}
	for key := range got {
		if want[key] == 0 {
			e.violate(metricIsSum, "", "%+v: the metric is %d, there are no records", key, got[key])
		}
	}
}

// leadsAt reports whether the process leads at a time, or needs no elector for it. A term that has
// ended before emits its last sums only if no other process can lead yet.
func (p *process) leadsAt(at time.Time) bool {
	return !p.replica.env.plan.Elector || slices.ContainsFunc(p.allTerms(), func(t term) bool {
		return !t.began.After(at) && (t.ended.IsZero() || !t.ended.Before(at))
	})
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
func (e *environment) emitters() int {
	processes := map[*process]bool{}
	for _, x := range e.exporters {
		for _, d := range x.all() {
			processes[d.process] = true
		}
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

func eachPoint(metrics pmetric.Metrics, do func(p pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				mustBeOccurrences(m)
				for _, p := range m.Sum().DataPoints().All() {
					do(p)
				}
			}
		}
	}
}

func mustBeOccurrences(m pmetric.Metric) {
	cumulative := m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
	if m.Name() != "k8s.event.occurrences" || !m.Sum().IsMonotonic() || !cumulative {
		panic("the metric is no cumulative, monotonic k8s.event.occurrences: " + m.Name())
	}
}

// identityOf writes attributes in a fixed order.
func identityOf(attributes pcommon.Map) string {
	parts := make([]string, 0, attributes.Len())
	for key, value := range attributes.All() {
		parts = append(parts, fmt.Sprintf("%s=%q", key, value.AsString()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func keyOfPoint(point pcommon.Map) seriesKey {
	return keyOf(point, point, text(point, "k8s.object.kind"))
}

func keyOf(resource, attributes pcommon.Map, kind string) seriesKey {
	return seriesKey{
		text(resource, "k8s.namespace.name"), text(resource, "k8s.workload.kind"),
		text(resource, "k8s.workload.name"), text(resource, "tilt.manifest"),
		text(attributes, "k8s.event.reason"), text(attributes, "k8s.event.type"), kind,
	}
}

// keyOfRecord returns the series of a record. A pod's without a known owner is that of its kind.
func keyOfRecord(r *record) seriesKey {
	key := keyOf(r.resource, r.log.Attributes(), text(r.resource, "k8s.object.kind"))
	isPod := func(kind, of string) bool { // Another group may have a kind of this name.
		version := text(r.resource, of+".api_version")
		return kind == "Pod" && (version == "" || version == "v1")
	}
	if isPod(key.workloadKind, "k8s.workload") || key.workloadKind == "" && isPod(key.kind, "k8s.object") {
		key.workloadKind, key.workload = "Pod", ""
	}
	return key
}

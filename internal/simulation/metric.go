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

// seriesKey is what the contract distinguishes occurrences by, as far as records have it too.
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
	renewed := map[string]bool{}
	keepsStarts := e.plan.Storage && e.plan.SeriesTTL > e.plan.Active
	for _, d := range e.metrics {
		// At the end of a term, a new series has two points.
		if n := d.metrics.DataPointCount(); n > 2*(e.plan.MaxSeries+1) {
			e.violate(boundedMemory, "", "%s emits %d points", d.process.name, n)
		}
		eachPoint(d.metrics, func(resource pcommon.Map, p pmetric.NumberDataPoint) {
			identity := identityOf(resource) + "|" + identityOf(p.Attributes())
			start, known := starts[identity]
			changed := known && start != p.StartTimestamp()
			// In another cluster, the contract lets the receiver begin "with new sums".
			if changed && !renewed[identity] && e.isNewClusterAt(p.StartTimestamp().AsTime()) {
				renewed[identity], changed = true, false
			}
			if keepsStarts && changed && !e.haveTwoLed() {
				e.violate(monotonic, "", "%s restarts %v at %v", d.process.name,
					keyOfPoint(resource, p.Attributes()), e.sinceStart(p.Timestamp().AsTime()))
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
			if problem := e.wrongTags(resource, p.Attributes()); problem != "" {
				e.violate(ownersRight, "", "%s emits a point of %v %s", d.process.name, s.key, problem)
			}
			s.value, s.time = p.IntValue(), p.Timestamp()
		})
	}
	if e.plan.has(BackupRestored, ClusterNew) {
		return
	}
	e.compareSums(all)
}

// isNewClusterAt reports whether another cluster was at the address by then.
func (e *environment) isNewClusterAt(t time.Time) bool {
	r := e.lastRestore()
	return r != nil && r.isNew && !t.Before(r.at.Truncate(time.Millisecond))
}

func (e *environment) checkPoint(s *series, p pmetric.NumberDataPoint, by *process) {
	var problem string
	// The contract: "Rejected metrics delay nothing (the next point carries the value)". So a 0 that is
	// rejected is lost.
	isFirst := s.time == 0 && !e.plan.has(MetricsRejected)
	if p.IntValue() == 0 && s.value == 0 && p.Timestamp() == s.time && p.Timestamp() == p.StartTimestamp() {
		return // The last process may not have known that it was accepted.
	}
	// A point of the last term may have the time at which the next one begins.
	term := by.termAt(p.Timestamp().AsTime().Add(-1))
	switch start := p.StartTimestamp(); {
	case p.IntValue() < s.value && e.plan.Storage && e.haveTwoLed():
		return // Each continued from what it had read.
	case !e.plan.NoZero && isFirst && !e.haveTwoLed() && (p.IntValue() != 0 || p.Timestamp() != p.StartTimestamp()):
		problem = "that is the first one, and not 0 at its start time"
	case p.IntValue() < s.value:
		problem = fmt.Sprintf("of %d after %d", p.IntValue(), s.value)
	case p.Timestamp() <= s.time:
		problem = "that is not after the one before"
	case start > p.Timestamp():
		problem = "that starts after its time"
	case !e.plan.Storage && start.AsTime().Before(by.started.Truncate(time.Millisecond)):
		problem = "that starts before the process did"
	case e.plan.alone() && start.AsTime().Before(term):
		// The contract: "Without storage, sums belong to one process and one term", and "A series
		// never starts before the term in which the process counts it."
		problem = "that starts before the term did"
	default:
		return
	}
	at := e.sinceStart(p.Timestamp().AsTime())
	e.violate(monotonic, "", "at %v, %s emits a point of %v %s", at, by.name, s.key, problem)
}

// compareSums compares the last values with the records. Without storage, sums end with the
// process, and only the last one's are complete.
func (e *environment) compareSums(all map[string]*series) {
	records, got, want := e.lastRecords(), map[seriesKey]int64{}, map[seriesKey]int64{}
	restarted := len(e.allProcesses()) > e.plan.Replicas
	if e.plan.Mode == electorAlone && (restarted || e.emitters() > 1) {
		return // Each leader has its own sums, and a kill loses those after the last collection.
	}
	terms := 0
	for _, p := range e.allProcesses() {
		terms += len(p.allTerms())
	}
	if e.plan.alone() && e.plan.Dedup > 0 && terms > 1 {
		// The contract: "Without storage, sums belong to one process and one term", and "The metric
		// does not wait" for dedup_interval: each term counts what the first one did not deliver.
		return
	}
	last, outlives := e.firstObserver(), e.plan.Mode != neither
	atLeast := e.leastSums(terms)
	for identity, s := range all {
		if outlives || strings.HasSuffix(identity, "|"+last.name) {
			got[e.comparable(s.key)] += s.value
		}
	}
	for _, r := range records {
		if outlives || r.process == last {
			want[e.comparable(keyOfRecord(r))] += r.occurrences
		}
	}
	for key := range want {
		if got[key] > want[key] || got[key] < atLeast(key, want[key]) {
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

// leastSums returns a function that returns the least that the metric may be at the end, if it
// should be want.
func (e *environment) leastSums(terms int) func(key seriesKey, want int64) int64 {
	unsaved, truth := map[seriesKey]int64{}, newTruth(e)
	for _, x := range e.exporters {
		for _, r := range newAccount(e, truth, x).unsavedRecords() {
			unsaved[e.comparable(keyOfRecord(r))] += r.occurrences
		}
	}
	return func(key seriesKey, want int64) int64 {
		if e.plan.alone() && terms > 1 {
			// The contract: "Without storage, sums belong to one process and one term". A term that
			// another process may end loses what was counted after the last collection.
			return 0
		}
		// The contract: "The metric reports only saved sums: it stands still until storage works
		// again". A crash repeats what was delivered since, and other records may count it then.
		return want - unsaved[key]
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

func eachPoint(metrics pmetric.Metrics, do func(resource pcommon.Map, p pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				mustBeOccurrences(m)
				for _, p := range m.Sum().DataPoints().All() {
					do(rm.Resource().Attributes(), p)
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
		if key == "k8s.cluster.uid" {
			continue // The receiver leaves it out until it is known.
		}
		parts = append(parts, fmt.Sprintf("%s=%q", key, value.AsString()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func keyOfPoint(resource, point pcommon.Map) seriesKey {
	return keyOf(resource, point, text(point, "k8s.object.kind"))
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
	if isPod := key.kind == "Pod"; key.workloadKind == "Pod" || key.workloadKind == "" && isPod {
		key.workloadKind, key.workload = "Pod", ""
	}
	return key
}

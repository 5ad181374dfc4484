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
	all, origins := map[string]*series{}, map[string]origin{}
	renewed, newest := map[string]bool{}, map[string]pmetric.NumberDataPoint{}
	keepsStarts := e.plan.Storage && e.plan.SeriesTTL > e.plan.Active
	for _, d := range e.metrics {
		// At the end of a term, a new series has two points.
		if n := d.metrics.DataPointCount(); n > 2*(e.mostSeries()+1) {
			e.violate(boundedMemory, "", "%s emits %d points", d.process.name, n)
		}
		eachPoint(d.metrics, func(p pmetric.NumberDataPoint) {
			identity := identityOf(p.Attributes())
			before, known := origins[identity]
			changed := known && before.start != p.StartTimestamp()
			// In another cluster, the contract lets the receiver begin "with new sums".
			if changed && !renewed[identity] && e.isNewClusterAt(p.StartTimestamp().AsTime()) {
				renewed[identity], changed = true, false
			}
			if keepsStarts && changed && !e.haveTwoLed() && !e.seriesChange(before, d) {
				e.violate(monotonic, "", "%s restarts %v at %v", d.process.name,
					keyOfPoint(p.Attributes()), e.sinceStart(p.Timestamp().AsTime()))
			}
			continues := known && before.start == p.StartTimestamp()
			if e.plan.Storage && continues && before.by.configured().series() != d.process.configured().series() {
				e.violate(monotonic, "", "%s continues %v of %s, which had other settings", d.process.name,
					keyOfPoint(p.Attributes()), before.by.name)
			}
			first := p.StartTimestamp()
			if known {
				first = min(first, before.first)
			}
			origins[identity] = origin{keyOfPoint(p.Attributes()), first, p.StartTimestamp(), d.at, d.process}
			e.checkStart(newest, p, d.process, identity)
			identity += "|" + p.StartTimestamp().String()
			if !e.plan.Storage || e.overlap() {
				identity += "|" + d.process.name
			}
			s := all[identity]
			if s == nil {
				s = &series{key: keyOfPoint(p.Attributes())}
				all[identity] = s
			}
			e.checkPoint(s, p, d.process)
			if problem := e.wrongTags(p.Attributes(), d.process.configured()); problem != "" {
				e.violate(ownersRight, "", "%s emits a point of %v %s", d.process.name, s.key, problem)
			}
			s.value, s.time = p.IntValue(), p.Timestamp()
		})
	}
	if e.plan.has(BackupRestored, ClusterNew, Replaced) || e.plan.Signals == OnlyLogs {
		return
	}
	e.compareSums(all)
	e.checkStarts(origins)
}

// checkStarts checks when series start that begin once in a run. The contract: a start time "is not
// later than the moment at which the receiver saw the first occurrence, and not earlier than the
// preceding collection".
func (e *environment) checkStarts(origins map[string]origin) {
	if e.plan.Elector || e.plan.Mode == neither && len(e.allProcesses()) > 1 || e.plan.seriesChange() ||
		e.plan.Signals != BothSignals || e.plan.SeriesTTL <= e.plan.Active ||
		e.plan.any(func(c *Configured) bool { return c.MaxSeries < 100 }) {
		return // Series begin again, or are not those of the records.
	}
	if slices.ContainsFunc(e.plan.Faults, func(f Fault) bool { return f.mayLoseCheckpoints() }) {
		return // What was counted but not saved is counted again, later.
	}
	starts, seen := map[seriesKey]time.Time{}, map[seriesKey]time.Time{}
	for _, o := range origins {
		key, start := e.comparable(o.key), o.first.AsTime()
		if starts[key].IsZero() || start.Before(starts[key]) {
			starts[key] = start
		}
	}
	for _, r := range e.lastRecords() {
		if key := e.comparable(keyOfRecord(r)); seen[key].IsZero() || r.observed().Before(seen[key]) {
			seen[key] = r.observed()
		}
	}
	for key, start := range starts {
		first := seen[key]
		if first.IsZero() {
			continue
		}
		if start.After(first) {
			e.violate(monotonic, "", "a series of %v starts at %v, after its first occurrence was seen at %v",
				key, e.sinceStart(start), e.sinceStart(first))
		}
		for _, d := range e.metrics {
			if d.at.Before(first) && d.at.After(start) {
				e.violate(monotonic, "", "a series of %v starts at %v, before the collection of %v, and its first occurrence was seen at %v",
					key, e.sinceStart(start), e.sinceStart(d.at), e.sinceStart(first))
			}
		}
	}
}

// origin is what the last point of a series shows about where it comes from.
type origin struct {
	key   seriesKey
	first pcommon.Timestamp // the first start time of its attributes
	start pcommon.Timestamp
	at    time.Time
	by    *process
}

// seriesChange reports whether a process with other settings may have counted since a point, or
// does now. The contract: "The checkpoint names the settings that form a series' identity. If they
// changed, sums start at 0 with new start times."
func (e *environment) seriesChange(since origin, now metricsDelivery) bool {
	return slices.ContainsFunc(e.allProcesses(), func(p *process) bool {
		p.mu.Lock()
		died := p.died
		p.mu.Unlock()
		ran := !p.started.After(now.at) && (died.IsZero() || died.After(since.at))
		return ran && p.configured().series() != since.by.configured().series()
	})
}

// mostSeries is the highest max_series that any process has. Series of a process before, which had
// more of them, go on.
func (e *environment) mostSeries() (most int) {
	for _, c := range e.plan.allConfigured() {
		most = max(most, c.MaxSeries)
	}
	return most
}

// checkStart checks that a series does not start again before its newest point so far.
func (e *environment) checkStart(
	newest map[string]pmetric.NumberDataPoint, p pmetric.NumberDataPoint, by *process, identity string,
) {
	if !e.plan.Storage {
		identity += "|" + by.name
	}
	last, known := newest[identity]
	newest[identity] = p
	if known && p.StartTimestamp() != last.StartTimestamp() && p.StartTimestamp() < last.Timestamp() && !e.haveTwoLed() {
		e.violate(monotonic, "", "%s restarts %s at %v, before its point of %v", by.name, identity,
			e.sinceStart(p.StartTimestamp().AsTime()), e.sinceStart(last.Timestamp().AsTime()))
	}
}

// isNewClusterAt reports whether another cluster was at the address by then.
func (e *environment) isNewClusterAt(t time.Time) bool {
	r := e.lastRestore()
	return r != nil && r.isNew && !t.Before(r.at.Truncate(time.Millisecond))
}

// mayDieAtItsLastWrite reports whether the process, in its orderly end, may have been killed right
// after a write.
func (p *process) mayDieAtItsLastWrite() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped.IsZero() && p.kill != nil && p.kill.Seam == AtStorage && p.kill.Acted
}

func (e *environment) checkPoint(s *series, p pmetric.NumberDataPoint, by *process) {
	var problem string
	// The contract: "Rejected metrics delay nothing (the next point carries the value)". So a 0 that is
	// rejected is lost. So is one that the last write before the end of a process has saved as emitted,
	// if the storage did not acknowledge that write, or a kill came right after it: nothing is emitted
	// then.
	isFirst := s.time == 0 && !e.plan.has(MetricsRejected, MetricsHangs, Paused) && !e.plan.has(StorageTorn, StorageAnswerLost, StorageLate) &&
		!slices.ContainsFunc(e.allProcesses(), (*process).mayDieAtItsLastWrite)
	if p.IntValue() == 0 && s.value == 0 && p.Timestamp() == s.time && p.Timestamp() == p.StartTimestamp() {
		return // The last process may not have known that it was accepted.
	}
	// A point of the last term may have the time at which the next one begins.
	term := by.termAt(p.Timestamp().AsTime().Add(-1))
	switch start := p.StartTimestamp(); {
	case p.IntValue() < s.value && e.plan.Storage && e.haveTwoLed():
		return // Each continued from what it had read.
	case !e.plan.any(func(c *Configured) bool { return c.NoZero }) && isFirst && !e.haveTwoLed() && (p.IntValue() != 0 || p.Timestamp() != p.StartTimestamp()):
		problem = "that is the first one, and not 0 at its start time"
	case p.IntValue() < s.value:
		problem = fmt.Sprintf("of %d after %d", p.IntValue(), s.value)
	case s.time > 0 && p.Timestamp() < s.time+pcommon.Timestamp(time.Millisecond):
		problem = "that is not 1 ms after the one before"
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
	if e.plan.alone() && (e.plan.longestDedup() > 0 || e.plan.Signals == OnlyMetrics) && terms > 1 {
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
	if e.plan.Signals == OnlyMetrics {
		want, atLeast = e.idealSums()
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
	unreported := e.unreportedRecords()
	return func(key seriesKey, want int64) int64 {
		if e.plan.alone() && terms > 1 || e.metricsNeverEnd() {
			// The contract: "Without storage, sums belong to one process and one term". A term that
			// another process may end loses what was counted after the last collection.
			return 0
		}
		// The contract: "The metric reports only saved sums: it stands still until storage works
		// again". A crash repeats what was delivered since, and other records may count it then.
		return want - unsaved[key] - unreported[key]
	}
}

// unreportedRecords returns the occurrences of records that were counted in series which a process
// with other settings may have dropped before the metric reported them.
func (e *environment) unreportedRecords() map[seriesKey]int64 {
	unreported := map[seriesKey]int64{}
	if !e.plan.seriesChange() {
		return unreported
	}
	for _, r := range e.lastRecords() {
		if r.isOfOutbox() || !e.isReported(r) {
			unreported[e.comparable(keyOfRecord(r))] += r.occurrences
		}
	}
	return unreported
}

// isReported reports whether the metric surely has the occurrences of a record: the second emission
// has them, since the first one of a series is its 0, and the last one of an orderly end.
func (e *environment) isReported(r *record) bool {
	p := r.process
	p.mu.Lock()
	died, stopped := p.died, p.stopped
	p.mu.Unlock()
	keeps := func(f *Fault) bool { return f.is(MetricsRejected, MetricsHangs) || f.mayLoseCheckpoints() }
	if e.disturbed(r.at.Add(-lookBack), later(died, r.at).Add(lookBack), keeps) {
		return false
	}
	emissions, term := 0, p.termAt(r.at)
	for _, d := range e.metrics {
		if d.process == p && d.at.After(r.at) && p.termAt(d.at).Equal(term) {
			emissions++
		}
	}
	return emissions > 1 || !stopped.IsZero() && emissions > 0 && p.termAt(stopped).Equal(term) && p.leadsAt(stopped)
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
	if e.plan.longestDedup() > 0 || e.plan.Signals == OnlyMetrics {
		key.workloadKind, key.workload, key.manifest = "", "", ""
	}
	if e.plan.any(func(c *Configured) bool { return c.MaxSeries < 100 }) {
		return seriesKey{}
	}
	for _, c := range e.plan.allConfigured() {
		key = key.without(c.Without)
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

// attributes are those of points that are switched on.
func (c *Configured) attributes() []string {
	all := []string{
		"k8s.cluster.name", "k8s.cluster.uid", "k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind",
		"k8s.workload.name", "k8s.event.reason", "k8s.event.type", "k8s.object.kind", "otel.metric.overflow",
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(c.Without, name) })
}

// without returns the key of a series that lacks attributes.
func (k seriesKey) without(names []string) seriesKey {
	for _, name := range names {
		switch name {
		case "k8s.workload.name":
			k.workload = ""
		case "k8s.event.reason":
			k.reason = ""
		case "k8s.event.type":
			k.eventType = ""
		case "k8s.object.kind":
			k.kind = ""
		}
	}
	return k
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
	// Another group may have a kind of this name.
	version := text(r.resource, "k8s.object.api_version")
	if isPod := key.kind == "Pod" && (version == "" || version == "v1"); key.workloadKind == "Pod" || key.workloadKind == "" && isPod {
		key.workloadKind, key.workload = "Pod", ""
	}
	return key
}

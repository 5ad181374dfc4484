// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Promise is something that the contract promises, in some modes or in all.
type Promise struct {
	Name    string
	Meaning string
	Modes   []Mode // nil: all
}

// Violation is a promise that a run broke.
type Violation struct {
	Promise *Promise
	Event   string // namespace/name of the event that it is about; empty: none in particular
	Text    string
}

var (
	continuous = []Mode{{Storage: true}, {Elector: true}, {Storage: true, Elector: true}}
	stored     = []Mode{{Storage: true}, {Storage: true, Elector: true}}

	nothingLost     = &Promise{"nothing lost", "Every occurrence since the first start (without storage and elector: since the last one) is in a record that every exporter accepted, or rejected with a permanent error.", nil}
	nothingInvented = &Promise{"nothing invented", "Every record tells of a state that the API server held, of an event that the filters let through and that start_at lets count.", nil}
	duplicates      = &Promise{"duplicates recognisable", "Records of one event with different log.record.uid never tell of the same occurrence.", nil}
	sameBytes       = &Promise{"duplicates byte for byte", "A record that is delivered again is the same as the first, byte for byte.", stored}
	inFlightOnly    = &Promise{"only in-flight records repeated", "After a crash, only records are delivered again after which the process had delivered no other.", stored}
	faithful        = &Promise{"records faithful", "Body, reason, type, times and involved object are those of the state that the record tells of.", nil}
	inOrder         = &Promise{"in order", "The first deliveries of one event's records are in the order of its counts.", nil}
	metricIsSum     = &Promise{"metric = sum of records", "At the end, the metric of each workload, reason, type and kind is the sum of the occurrences in the records (without storage: of the last process; with an elector and no storage: if only one led).", nil}
	monotonic       = &Promise{"metric monotonic", "The points of one series never fall, their times increase, and with storage its start time stays.", nil}
	oneLeader       = &Promise{"one leader emits", "Only the process that holds the lease emits.", []Mode{{Elector: true}, {Storage: true, Elector: true}}}
	ownersRight     = &Promise{"owners right", "No record names an owner, a workload or a tag that is not the involved object's.", nil}
	ownersComplete  = &Promise{"owners complete", "The chain is complete if, while the event was resolved, no kind of the chain was slow, failing or limited.", nil}
	neverSilent     = &Promise{"never silent", "If something has not been deliverable for 90 s, the component's status is an error, and when all is well again it is not.", nil}
	inTime          = &Promise{"in time", "Where nothing is wrong, an occurrence is with every exporter within 12 s and dedup_interval.", nil}
	oneInInterval   = &Promise{"one record in an interval", "Where nothing is wrong, an event has at most one record in dedup_interval.", nil}
	boundedMemory   = &Promise{"bounded memory", "A process holds at most 12 MiB of events that no pipeline has been offered; a standby, and one that lists by pages, 64 MiB.", nil}
	boundedRequests = &Promise{"bounded requests", "A stream makes at most 40 requests in a minute, and 120 if watches break or the API server wants to be asked again soon; lookups are bounded by the number of objects.", nil}
	shutsDown       = &Promise{"shuts down", "Shutdown takes at most 15 s and returns no error, whatever hangs.", nil}
	noGoroutine     = &Promise{"no goroutine left", "After shutdown, no goroutine of the receiver is left.", nil}
)

// Promises are all of them, in the order of tables.
var Promises = []*Promise{
	nothingLost, nothingInvented, duplicates, sameBytes, inFlightOnly, faithful, inOrder, metricIsSum, monotonic, oneLeader,
	ownersRight, ownersComplete, neverSilent, inTime, oneInInterval, boundedMemory, boundedRequests, shutsDown, noGoroutine,
}

// In reports whether the contract makes the promise in the mode.
func (p *Promise) In(m Mode) bool { return p.Modes == nil || slices.Contains(p.Modes, m) }

func promisesOf(m Mode) (made []*Promise) {
	for _, p := range Promises {
		if p.In(m) {
			made = append(made, p)
		}
	}
	return made
}

// maxViolations bounds what a run reports of one promise: one violation mostly brings others.
const maxViolations = 5

// violate notes that the run broke a promise, if the contract makes it in the plan's mode.
func (e *environment) violate(promise *Promise, event, format string, args ...any) {
	if !promise.In(e.plan.Mode) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known := 0
	for _, v := range e.violations {
		if v.Promise == promise {
			known++
		}
	}
	if known < maxViolations {
		e.violations = append(e.violations, Violation{promise, event, fmt.Sprintf(format, args...)})
	}
}

// check evaluates every promise that is not evaluated while the run goes on.
func (e *environment) check() {
	truth := newTruth(e)
	truth.tell()
	for _, x := range e.exporters {
		a := newAccount(e, truth, x)
		a.checkRecords()
		a.checkRepeats()
		a.checkTotals()
		a.checkTimes()
	}
	truth.checkOwners()
	e.checkMetric()
	e.checkMemory()
}

// truth is what the API server held.
type truth struct {
	env      *environment
	names    map[types.UID]types.NamespacedName
	states   map[string][]*corev1.Event // by log.record.uid
	subjects map[subjectKey]*object
}

// subjectKey names an involved object. A Node's UID says nothing: kubelets write the name there.
type subjectKey struct{ kind, namespace, name, uid string }

func subjectOf(o *object) subjectKey {
	if o.kind == "Node" {
		return subjectKey{kind: o.kind, name: o.name}
	}
	return subjectKey{o.kind, o.namespace, o.name, string(cmp.Or(o.manifest, o.uid))}
}

func subjectOfRecord(r *record) subjectKey {
	key := subjectKey{text(r.resource, "k8s.object.kind"), text(r.resource, "k8s.namespace.name"), text(r.resource, "k8s.object.name"), text(r.resource, "k8s.object.uid")}
	if key.kind == "Node" {
		key.uid = ""
	}
	return key
}

func newTruth(e *environment) *truth {
	t := &truth{env: e, names: map[types.UID]types.NamespacedName{}, states: map[string][]*corev1.Event{}, subjects: map[subjectKey]*object{}}
	for _, w := range e.server.History() {
		if w.Type != watch.Deleted {
			t.names[w.Event.UID] = types.NamespacedName{Namespace: w.Event.Namespace, Name: w.Event.Name}
			uid := recordUID(w.Event)
			t.states[uid] = append(t.states[uid], w.Event)
		}
	}
	for _, a := range e.apps {
		for _, o := range slices.Concat(a.objects, a.existing()) {
			t.subjects[subjectOf(o)] = o
		}
	}
	return t
}

// tell adds what was written to the story.
func (t *truth) tell() {
	for _, w := range t.env.server.History() {
		verb, ev := map[watch.EventType]string{watch.Added: "is created", watch.Modified: "is changed", watch.Deleted: "is deleted"}[w.Type], w.Event
		name := ev.Namespace + "/" + ev.Name
		t.env.story.mu.Lock()
		t.env.story.lines = append(t.env.story.lines, line{w.At, "API server", name, "event %s %s: version %d, uid %s, count %d, %s", []any{name, verb, w.Version, ev.UID, countOf(ev), ev.Reason}})
		t.env.story.mu.Unlock()
	}
}

// account is what one exporter got.
type account struct {
	env      *environment
	truth    *truth
	exporter *exporter
	all      []*record            // in the order of delivery
	first    map[string]*record   // by log.record.uid
	byEvent  map[string][]*record // of first, by the event's namespace/name
}

func newAccount(e *environment, t *truth, x *exporter) *account {
	a := &account{env: e, truth: t, exporter: x, first: map[string]*record{}, byEvent: map[string][]*record{}}
	observer := e.firstObserver()
	for _, r := range records(x.all()) {
		if e.plan.Mode == (Mode{}) && r.process != observer {
			continue // Without storage and elector, every start is a first start.
		}
		a.all = append(a.all, r)
		if a.first[r.uid] == nil {
			a.first[r.uid] = r
			name := t.names[r.eventUID].String()
			a.byEvent[name] = append(a.byEvent[name], r)
		}
	}
	return a
}

// checkRecords compares each record with the states that the API server held.
func (a *account) checkRecords() {
	for _, r := range a.all {
		event := a.truth.names[r.eventUID].String()
		a.env.story.lines = append(a.env.story.lines, line{r.at, r.process.name, event, "exporter %d got %s: %d new of %d, %s", []any{a.exporter.number, r.uid, r.occurrences, r.count, text(r.log.Attributes(), "k8s.owner.resolution")}})
		states := a.truth.states[r.uid]
		switch {
		case len(states) == 0:
			a.env.violate(nothingInvented, event, "exporter %d got a record of %s, which the API server never held", a.exporter.number, r.uid)
		case r.occurrences < 1 || r.occurrences > r.count && a.env.plan.Dedup == 0: // A window may sum several objects of one name.
			a.env.violate(nothingInvented, event, "exporter %d got a record of %d new occurrences of %d", a.exporter.number, r.occurrences, r.count)
		case !a.env.plan.wants(states[0]):
			a.env.violate(nothingInvented, event, "exporter %d got a record that the filters exclude", a.exporter.number)
		default:
			again := a.env.plan.Storage && r.process != a.env.firstObserver()
			if problem := a.unfaithful(r, states); problem != "" && !(again && a.env.exempt("r")) {
				a.env.violate(faithful, event, "exporter %d got %s, but %s", a.exporter.number, r.uid, problem)
			}
		}
		if first := a.first[r.uid]; first != r && !sameContent(first, r) && !a.env.exempt("r") {
			a.env.violate(sameBytes, event, "exporter %d got %s twice, and not the same", a.exporter.number, r.uid)
		}
	}
	for event, of := range a.byEvent {
		for i := 1; i < len(of); i++ {
			if of[i].eventUID == of[i-1].eventUID && of[i].count < of[i-1].count {
				a.env.violate(inOrder, event, "exporter %d got count %d after %d", a.exporter.number, of[i].count, of[i-1].count)
			}
		}
	}
}

// checkRepeats checks that a process delivers nothing again that one before it had dealt with: it
// had delivered other records since.
func (a *account) checkRepeats() {
	lastOf, newest := map[string]time.Time{}, map[*process]time.Time{}
	for _, r := range a.all {
		if first := a.first[r.uid]; first.process == r.process {
			lastOf[r.uid] = r.at
			if first == r {
				newest[r.process] = r.at
			}
		}
	}
	for _, r := range a.all {
		first := a.first[r.uid]
		if first.process == r.process || !newest[first.process].After(lastOf[r.uid]) {
			continue
		}
		saved := !a.env.plan.disturbed(first.at.Sub(a.env.began)-lookBack, r.at.Sub(a.env.began), func(f *Fault) bool {
			return f.Kind == StorageUnwritable || f.Kind == StorageUnreadable || f.Kind == StorageSlow || f.Kind == StorageTorn || f.Kind == StorageAnswerLost
		})
		if saved {
			a.env.violate(inFlightOnly, a.truth.names[r.eventUID].String(), "exporter %d got %s again at %v, after %s had delivered it at %v and more at %v", a.exporter.number,
				r.uid, r.at.Sub(a.env.began), first.process.name, lastOf[r.uid].Sub(a.env.began), newest[first.process].Sub(a.env.began))
		}
	}
}

// unfaithful says what a record has that none of the states has; it is empty if one has all of it.
func (a *account) unfaithful(r *record, states []*corev1.Event) (problem string) {
	for _, ev := range states {
		if problem = difference(r, ev); problem == "" {
			break
		}
	}
	observed, created := r.log.ObservedTimestamp().AsTime(), states[0].CreationTimestamp.Time
	// A window of dedup_interval may hold occurrences of an earlier object of the name.
	if problem == "" && text(r.resource, "k8s.cluster.uid") == "" && !a.env.plan.has(lookupFaults...) {
		return "it does not name the cluster"
	}
	if problem == "" && (observed.After(r.at) || observed.Before(created) && a.env.plan.Dedup == 0) {
		return fmt.Sprintf("it was observed at %v, before its creation at %v or after it was delivered", observed, created)
	}
	return problem
}

func difference(r *record, ev *corev1.Event) string {
	attributes := r.log.Attributes()
	container, node := "", ""
	if ev.InvolvedObject.FieldPath == fieldPath {
		container = fieldPathContainer
	}
	if ev.Source.Component == "kubelet" && ev.InvolvedObject.Kind == "Pod" {
		node = ev.Source.Host
	}
	for _, field := range []struct{ name, got, want string }{
		{"the body", r.log.Body().AsString(), ev.Message},
		{"the reason", text(attributes, "k8s.event.reason"), ev.Reason},
		{"the type", r.log.SeverityText(), ev.Type},
		{"the name", text(attributes, "k8s.event.name"), ev.Name},
		{"the action", text(attributes, "k8s.event.action"), ev.Action},
		{"the severity", r.log.SeverityNumber().String(), severities[ev.Type].String()},
		{"the event name", r.log.EventName(), "k8s.event"},
		{"the container", text(r.resource, "k8s.container.name"), container},
		{"the node", cmp.Or(node, text(r.resource, "k8s.node.name")), text(r.resource, "k8s.node.name")},
		{"the involved kind", text(r.resource, "k8s.object.kind"), ev.InvolvedObject.Kind},
		{"the involved name", text(r.resource, "k8s.object.name"), ev.InvolvedObject.Name},
		{"the involved namespace", text(r.resource, "k8s.namespace.name"), ev.InvolvedObject.Namespace},
		{"the involved UID", text(r.resource, "k8s.object.uid"), string(ev.InvolvedObject.UID)},
		{"the field path", text(attributes, "k8s.object.fieldpath"), ev.InvolvedObject.FieldPath},
		{"the controller", text(attributes, "k8s.event.reporting_controller"), cmp.Or(ev.ReportingController, ev.Source.Component)},
		{"the instance", text(attributes, "k8s.event.reporting_instance"), cmp.Or(ev.ReportingInstance, ev.Source.Host)},
		{"the cluster", cmp.Or(text(r.resource, "k8s.cluster.uid"), clusterUID), clusterUID},
		{"the start", text(attributes, "k8s.event.start_time"), oldest(ev).UTC().Format(time.RFC3339Nano)},
		{"the time", r.log.Timestamp().AsTime().Format(time.RFC3339Nano), newest(ev).UTC().Format(time.RFC3339Nano)},
	} {
		if field.got != strings.ToValidUTF8(field.want, "\uFFFD") {
			return fmt.Sprintf("%s is %.80q, not %.80q", field.name, field.got, field.want)
		}
	}
	return ""
}

var severities = map[string]plog.SeverityNumber{"Normal": plog.SeverityNumberInfo, "Warning": plog.SeverityNumberWarn}

// newest is the time of an event's newest occurrence.
func newest(ev *corev1.Event) time.Time {
	switch {
	case ev.Series != nil && !ev.Series.LastObservedTime.IsZero():
		return ev.Series.LastObservedTime.Time
	case !ev.LastTimestamp.IsZero():
		return ev.LastTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	default:
		return ev.CreationTimestamp.Time
	}
}

// oldest is the time of an event's first occurrence.
func oldest(ev *corev1.Event) time.Time {
	switch {
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	default:
		return ev.CreationTimestamp.Time
	}
}

func sameContent(a, b *record) bool {
	return a.resource.Equal(b.resource) && a.log.Attributes().Equal(b.log.Attributes()) && a.log.Body().Equal(b.log.Body()) &&
		a.log.Timestamp() == b.log.Timestamp() && a.log.ObservedTimestamp() == b.log.ObservedTimestamp()
}

// checkTotals compares the occurrences in the records of each event with what an ideal observer counts.
func (a *account) checkTotals() {
	if a.env.plan.has(BackupRestored, ClusterNew) {
		a.checkAfterRestore() // What is new is then decided by lists whose versions only the receiver knows.
		return
	}
	requiredFrom, allowedFrom := a.env.baselines()
	required, allowed := a.env.ideal(requiredFrom), a.env.ideal(allowedFrom)
	for name, want := range required {
		if got := a.total(name.String()); got < want.total {
			a.env.violate(nothingLost, name.String(), "exporter %d has %d of the %d occurrences of %s", a.exporter.number, got, want.total, name)
		}
	}
	for name := range a.byEvent {
		var most int64
		for _, want := range []*expected{required[nameOf(name)], allowed[nameOf(name)]} {
			if want != nil {
				most = max(most, want.total)
			}
		}
		switch got := a.total(name); {
		case most == 0 && a.truth.states[a.byEvent[name][0].uid] != nil:
			a.env.violate(nothingInvented, name, "exporter %d got a record of %s, which existed before the first start", a.exporter.number, name)
		case got > most:
			a.env.violate(duplicates, name, "exporter %d has %d occurrences of %s in records with different log.record.uid, but there were %d", a.exporter.number, got, name, most)
		}
	}
}

// checkAfterRestore checks that what was written when the restored, or the new, cluster had been
// watched for a while is delivered: the newest state of each event.
func (a *account) checkAfterRestore() {
	newest := map[string]step{}
	for _, w := range a.env.server.History() {
		if restored := a.env.restored; w.Type != watch.Deleted && a.env.plan.wants(w.Event) && !restored.IsZero() && w.At.Sub(restored) > lookBack {
			name := w.Event.Namespace + "/" + w.Event.Name
			if s := (step{w.At, w.Event.UID, countOf(w.Event), 0}); newest[name].uid != s.uid || newest[name].count < s.count {
				newest[name] = s
			}
		}
	}
	for event, s := range newest {
		if !slices.ContainsFunc(a.byEvent[event], func(r *record) bool { return r.eventUID == s.uid && r.count >= s.count }) {
			a.env.violate(nothingLost, event, "exporter %d lacks count %d of %s, which was written after the restore", a.exporter.number, s.count, event)
		}
	}
}

func (a *account) total(event string) (sum int64) {
	for _, r := range a.byEvent[event] {
		sum += r.occurrences
	}
	return sum
}

func nameOf(event string) types.NamespacedName {
	namespace, name, _ := strings.Cut(event, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

const (
	// promptly is how long a record may take where nothing is wrong: lookup_timeout and the batch.
	promptly = 12 * time.Second
	// lookBack is how long a fault may have an effect after its end: back-off and remembered failures.
	lookBack = 75 * time.Second
)

// checkTimes checks the promises about time, where no fault is near.
func (a *account) checkTimes() {
	if a.env.plan.has(BackupRestored, ClusterNew) {
		return
	}
	from, _ := a.env.baselines()
	any := func(f *Fault) bool { return !f.keepsOwnersOnly() }
	for name, want := range a.env.ideal(from) {
		event := name.String()
		for _, s := range want.steps {
			late := s.at.Add(promptly + a.env.plan.Dedup)
			if s.at.Sub(a.env.firstObserver().started) > firstWrite/2 && !a.env.plan.disturbed(s.at.Sub(a.env.began)-lookBack, late.Sub(a.env.began), any) && !a.hasBy(event, s, late) {
				a.env.violate(inTime, event, "exporter %d did not get count %d of %s in time", a.exporter.number, s.count, name)
			}
		}
		of := a.byEvent[event]
		for i := 1; i < len(of) && a.env.plan.Dedup > 0; i++ {
			began, end := of[i-1].at.Sub(a.env.began), of[i].at.Sub(a.env.began)
			ending := of[i].process.died.Sub(of[i].at) < promptly
			if end-began < a.env.plan.Dedup-time.Second && !ending && !a.env.plan.disturbed(began-lookBack, end, any) {
				a.env.violate(oneInInterval, event, "exporter %d got two records of %s within %v", a.exporter.number, name, end-began)
			}
		}
	}
}

// hasBy reports whether the exporter had the step's occurrences by then.
func (a *account) hasBy(event string, s step, late time.Time) bool {
	return slices.ContainsFunc(a.byEvent[event], func(r *record) bool {
		return !r.at.After(late) && (r.eventUID != s.uid || r.count >= s.count)
	})
}

// checkOwners compares what the records say of owners with what the objects are.
func (t *truth) checkOwners() {
	e := t.env
	complete := map[*process]map[*object]time.Time{}
	stale := e.plan.CacheTTL
	if e.plan.has(lookupFaults...) {
		stale = time.Hour // What cannot be refreshed is used as it was.
	}
	for _, r := range records(e.exporters[0].all()) {
		o := t.subjects[subjectOfRecord(r)]
		if o == nil {
			continue
		}
		event := t.names[r.eventUID].String()
		chain, want := o.chain(e.plan.MaxDepth)
		got := text(r.log.Attributes(), "k8s.owner.resolution")
		if problem := wrongOwners(r, chain, got, stale); problem != "" {
			e.violate(ownersRight, event, "%s of %s: %s", r.uid, o.name, problem)
		}
		if e.plan.NoOwners || got == want {
			if complete[r.process] == nil {
				complete[r.process] = map[*object]time.Time{}
			}
			complete[r.process][o] = r.log.ObservedTimestamp().AsTime()
			continue
		}
		known := !complete[r.process][o].IsZero() && r.at.Sub(complete[r.process][o]) < e.plan.CacheTTL && e.plan.CacheSize > len(e.plan.Producers)*10
		if (o.aliveAt(r.at) || known) && !t.failing(chain, r) {
			e.violate(ownersComplete, event, "%s of %s has resolution %s, not %s", r.uid, o.name, got, want)
		}
	}
}

// failing reports whether a fault may have kept one of the kinds from being found for the record.
func (t *truth) failing(chain []*object, r *record) bool {
	began := t.env.began
	return t.env.plan.disturbed(r.log.ObservedTimestamp().AsTime().Sub(began)-lookBack, r.at.Sub(began), func(f *Fault) bool {
		if f.Kind == BackupRestored || f.Kind == ClusterNew {
			return true
		}
		return f.Kind.isOfAPI() && f.Verb == "" && f.concerns(r.process.replica.index) && (f.Resource == "" || f.Kind == APIHangs && t.env.exempt("i") ||
			slices.ContainsFunc(chain, func(o *object) bool { return o.resource.Resource == f.Resource }))
	})
}

// wrongOwners says what in a record is not the involved object's.
func wrongOwners(r *record, chain []*object, resolution string, stale time.Duration) string {
	var names []string
	for _, o := range chain[1:] {
		names = append(names, qualifiedName(o))
	}
	if got, ok := r.resource.Get("k8s.owner.chain"); ok {
		for i, name := range got.Slice().All() {
			if i >= len(names) || names[i] != name.Str() {
				return fmt.Sprintf("the chain is %v, not %v", got.AsString(), names)
			}
		}
	}
	complete := resolution == "complete" || resolution == "ambiguous"
	if got := text(r.resource, "k8s.workload.name"); complete != (got != "") {
		return fmt.Sprintf("the workload is %q with resolution %q", got, resolution)
	}
	if problem := wrongRoles(r, chain, complete); problem != "" {
		return problem
	}
	labels := []string{""}
	for _, o := range chain {
		if o.label != "" {
			labels = o.labels(r.log.ObservedTimestamp().AsTime(), stale)
			break
		}
	}
	if got := text(r.resource, "tilt.manifest"); !slices.Contains(labels, got) && (complete || got != "") {
		return fmt.Sprintf("tilt.manifest is %q, not %q", got, labels)
	}
	return ""
}

// wrongRoles says which attribute of the owner, the workload, or a kind on the chain is not its.
func wrongRoles(r *record, chain []*object, complete bool) string {
	want := map[string]string{}
	if _, ok := r.resource.Get("k8s.owner.chain"); ok {
		owner := chain[1]
		want["k8s.owner.kind"], want["k8s.owner.name"], want["k8s.owner.uid"] = owner.kind, owner.name, string(owner.uid)
	}
	if complete {
		end := chain[len(chain)-1]
		want["k8s.workload.kind"], want["k8s.workload.name"], want["k8s.workload.uid"] = end.kind, end.name, string(end.uid)
		for _, o := range slices.Backward(chain) {
			if o.resource.Group != links.Group && o.resource.Group != rollouts.Group { // The conventions name no custom kind.
				want["k8s."+strings.ToLower(o.kind)+".name"] = o.name
			}
		}
	}
	for name, value := range want {
		if got := text(r.resource, name); got != value {
			return fmt.Sprintf("%s is %q, not %q", name, got, value)
		}
	}
	return ""
}

// qualifiedName is kind.group/name as kubectl writes it.
func qualifiedName(o *object) string {
	return strings.ToLower(schema.GroupResource{Group: o.resource.Group, Resource: o.kind}.String()) + "/" + o.name
}

// checkLeads checks that the process holds the lease while it emits.
func (p *process) checkLeads(what string) {
	e := p.replica.env
	if !e.plan.Elector || p.isDead() {
		return
	}
	if holder := e.leaseHolder(); holder != p.name {
		e.violate(oneLeader, "", "%s %s at %v, but %q holds the lease", p.name, what, time.Since(e.began), holder)
	}
}

// overdue is how long something may stay undelivered before the status has to say so.
const overdue = 90 * time.Second

// checkSilence looks, while the run goes on, whether something is stuck and no status says so.
func (e *environment) checkSilence() {
	all := e.allProcesses()
	if e.plan.Mode == (Mode{}) && len(all) > 1 || len(e.plan.Faults) == 0 || e.plan.has(ConnectionsDie, Stalled) {
		return // Without HTTP/2's pings, a dead connection is noticed when the server should have ended the watch.
	}
	for _, p := range all {
		if !p.isDead() && (p.host.failedLately() || time.Since(p.started) < overdue) {
			return
		}
	}
	truth := newTruth(e)
	for _, x := range e.exporters {
		newAccount(e, truth, x).checkSilence()
	}
}

// checkSilence checks that the exporter lacks nothing that is overdue.
func (a *account) checkSilence() {
	from, _ := a.env.baselines()
	for name, want := range a.env.ideal(from) {
		for _, s := range want.steps {
			if time.Since(s.at) > overdue+a.env.plan.Dedup && !a.hasBy(name.String(), s, time.Now()) {
				a.env.violate(neverSilent, name.String(), "at %v, exporter %d lacks count %d of %s for %v, and the status is no error",
					time.Since(a.env.began), a.exporter.number, s.count, name, time.Since(s.at))
				return
			}
		}
	}
}

// checkRecovered checks, when all has settled, that no status is an error any more.
func (e *environment) checkRecovered() {
	for _, r := range e.replicas {
		if p := r.running(); p == nil {
			e.violate(neverSilent, "", "replica %d does not run", r.index)
		} else if p.host.failing() {
			e.violate(neverSilent, "", "the status of %s is an error, and nothing is wrong any more", p.name)
		}
	}
}

// mostRequests is how many requests a stream may make in a minute.
func (e *environment) mostRequests() int {
	if e.plan.has(WatchBreaks) || slices.ContainsFunc(e.plan.Faults, func(f Fault) bool { return f.Status == http.StatusTooManyRequests }) {
		return 120
	}
	return 40
}

// lookupFaults let lookups be repeated.
var lookupFaults = []FaultKind{APIDown, APIRefuses, APIHangs, APISlow, AnswersLost, ConnectionsCut, Stalled, SlowNetwork, KindMissing, BackupRestored, ClusterNew}

const (
	mostHeld = 12 << 20
	// mostHeldAtOnce is what a standby may hold, and what a page of a list has: 500 events of any size.
	mostHeldAtOnce = 64 << 20
)

// checkMemory checks what the processes held and asked for.
func (e *environment) checkMemory() {
	limit := mostHeld
	if e.plan.Elector || e.plan.OldServer {
		limit = mostHeldAtOnce
	}
	for _, p := range e.allProcesses() {
		if p.most > limit && e.plan.Dedup == 0 {
			e.violate(boundedMemory, "", "%s held %d bytes of events", p.name, p.most)
		}
		if n := int(p.lookups.Load()); !e.plan.has(lookupFaults...) && n > 400+40*len(e.plan.Producers) {
			e.violate(boundedRequests, "", "%s made %d requests for owners", p.name, n)
		}
		for minute, n := range p.requests {
			if n > e.mostRequests()*max(1, len(e.plan.Watched)) {
				e.violate(boundedRequests, "", "%s made %d requests for events in minute %d", p.name, n, minute)
			}
		}
	}
}

// checkGoroutines looks for goroutines of this bubble that the end of all processes has left.
func (e *environment) checkGoroutines() {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := strings.Split(string(stacks), "\n\n")
	_, bubble, inBubble := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	if !inBubble {
		return
	}
	for _, stack := range all[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest bubble "+bubble) && !strings.Contains(stack, "testing/synctest.Test") {
			e.violate(noGoroutine, "", "a goroutine is left: %s", stack)
		}
	}
}

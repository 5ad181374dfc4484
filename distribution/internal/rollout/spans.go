// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Span is a span before it is written as OTLP.
type Span struct {
	Trace      pcommon.TraceID
	ID         pcommon.SpanID
	Parent     pcommon.SpanID // empty: a rollout
	Name       string
	Start, End int64
	Attributes map[string]any // string, int64, or []string
	Warnings   []Warning
	Error      string // why the span failed; empty: it did not
	GoesOn     bool   // it is of a rollout that is neither complete nor over: its end is the last event
}

// Warning is an Event on a span.
type Warning struct {
	At         int64
	Reason     string
	Attributes map[string]any
}

// The phases in the ids of spans.
const (
	phaseRollout = "rollout"
	phasePod     = "pod"
	phaseStop    = "stop"
)

func (w *Workload) rootID(e episode) (pcommon.TraceID, pcommon.SpanID) {
	trace := w.traceID(e)
	return trace, spanID(trace, w.UID, phaseRollout, "")
}

// Part is a tree of spans that is delivered once, as a whole: the span of a rollout, a pod, or the
// end of a pod.
type Part struct {
	Key   string // what Revision.Sent has it by
	Spans []Span
	// Outcome is that of a rollout; empty: this is a pod, or the end of one.
	Outcome string
	News    int64         // when the process last had news of it
	Wait    time.Duration // it is final if no news come for this long
}

// Spans returns the spans of a revision that are due for delivery.
func (w *Workload) Spans(revision string, o Options) (parts []Part) {
	r, h := w.Revisions[revision], w.history()
	runs, views := w.runs(h, revision, o)
	for _, x := range runs {
		part := Part{Key: "r/" + x.activation, Spans: []Span{w.rollout(h, x)}, Outcome: x.outcome(), News: r.News, Wait: x.wait(o)}
		if part.Outcome == Complete && len(x.initial) > 0 { // News of a later scale-up do not matter.
			part.News = 0
			for _, v := range x.initial {
				part.News = max(part.News, v.pod.News)
			}
		}
		part.Wait = max(part.Wait, time.Duration(x.decided-part.News))
		parts = append(parts, part)
	}
	for _, v := range views {
		own := episode{revision: revision}
		if v.start != 0 {
			own = h.at(revision, v.began)
			parts = append(parts, Part{Key: "p/" + v.uid, Spans: w.podSpans(own, v), News: v.pod.News, Wait: max(v.wait(o), time.Duration(v.decided-v.pod.News))})
		}
		if v.stop != nil { // The rollout that ended it can begin a bit later.
			wait := max(o.Settle, min(StopWindow, o.Idle))
			parts = append(parts, Part{Key: "s/" + v.uid, Spans: []Span{w.stopSpan(h, own, v)}, News: v.pod.News, Wait: wait})
		}
	}
	return parts
}

// rollout returns the span of a rollout.
func (w *Workload) rollout(h history, x *run) Span {
	trace, id := w.rootID(x.episode)
	summary, planned := w.summary(h, x), int64(x.planned)
	s := Span{
		Trace: trace, ID: id, Start: x.start, End: max(x.end, x.last),
		Name: "rollout " + strings.ToLower(w.Kind) + "/" + w.Name,
		Attributes: map[string]any{
			"k8s.rollout.revision":     x.revision,
			"k8s.rollout.outcome":      summary.Outcome,
			"k8s.rollout.pods.planned": planned,
			"k8s.rollout.pods.started": min(planned, int64(x.count((*view).hasStarted))),
			"k8s.rollout.pods.failed":  min(planned, int64(x.count((*view).hasFailed))),
		},
		Warnings: warningsOf(x.events.warnings()),
	}
	if len(x.initial) > 0 && summary.Outcome == Complete {
		s.End = x.end
	}
	if len(x.initial) > 0 { // A workload that creates pods itself does not name the revision of these records.
		s.Start = min(x.start, x.initial[0].start)
	}
	for _, v := range x.initial {
		if v.hasFailed() {
			s.End = max(s.End, v.active)
		}
	}
	s.GoesOn = summary.Outcome != Complete && !summary.IsOver && !x.jobEnded()
	if summary.Outcome == Failed {
		s.Error = x.failure()
	}
	if summary.Reason != "" {
		s.Attributes["k8s.rollout.reason"] = summary.Reason
	}
	if images := summary.imageChanges(); len(images) > 0 {
		s.Attributes["k8s.rollout.images"] = images
	}
	summary.Template.put(s.Attributes)
	if missing := x.missing(); len(missing) > 0 && summary.Outcome != Complete {
		s.Attributes["k8s.rollout.missing"] = missing
	}
	return s
}

func (t *Template) put(attributes map[string]any) {
	if len(t.Changes) > 0 {
		attributes["k8s.rollout.changes"] = t.Changes
	}
	if t.Tool != "" {
		attributes["k8s.workload.deployed_by"] = t.Tool
	}
	if t.ChangedBy != "" {
		attributes["k8s.workload.changed_by"] = t.ChangedBy
	}
}

func (w *Workload) podSpans(own episode, v *view) []Span {
	trace, root := w.rootID(own)
	s := Span{
		Trace: trace, ID: spanID(trace, v.uid, phasePod, ""), Parent: root, Name: "pod " + v.pod.Name,
		Start: v.start, End: max(v.start, v.end), Attributes: v.attributes(),
		Warnings: warningsOf(v.others), Error: v.failure(),
	}
	if v.hasFailed() {
		s.End = max(s.End, v.active)
	}
	spans := []Span{s}
	for i := range v.phases {
		spans = append(spans, v.phaseSpan(&s, &v.phases[i]))
	}
	return spans
}

func (v *view) attributes() map[string]any {
	attributes := map[string]any{"k8s.pod.name": v.pod.Name, "k8s.pod.uid": v.uid}
	if v.pod.Node != "" {
		attributes["k8s.node.name"] = v.pod.Node
	}
	return attributes
}

func (v *view) phaseSpan(parent *Span, p *phase) Span {
	s := Span{
		Trace: parent.Trace, ID: spanID(parent.Trace, v.uid, p.name, p.container), Parent: parent.ID,
		Name: strings.TrimSpace(p.name + " " + p.container), Start: p.start, End: p.end,
		Attributes: v.attributes(), Warnings: warningsOf(p.warnings), Error: p.failure(),
	}
	p.putAttributes(s.Attributes)
	return s
}

func (p *phase) putAttributes(attributes map[string]any) {
	if p.container != "" {
		attributes["k8s.container.name"] = p.container
	}
	if p.image != "" {
		attributes["container.image.name"] = p.image
	}
	if p.restarts > 0 {
		attributes["k8s.container.restart_count"] = p.restarts
	}
	if p.ended != nil {
		attributes["k8s.container.status.last_terminated_reason"] = p.ended.Reason
		attributes["process.exit.code"] = p.ended.ExitCode
	}
	if p.missing != "" {
		attributes["k8s.rollout.missing"] = []string{p.missing}
	}
}

// stopSpan is the end of a pod, in the trace of the rollout that replaced the pod. If there is
// none, it is in the trace of the pod's own rollout.
func (w *Workload) stopSpan(h history, own episode, v *view) Span {
	since := own
	if v.start == 0 {
		since.start = 0 // The pod is older than what is known of its revision.
	}
	by, ok := w.replaced(h, since, v.stopped)
	if !ok {
		by = own
	}
	trace, root := w.rootID(by)
	s := Span{
		Trace: trace, ID: spanID(trace, v.uid, phaseStop, ""), Parent: root, Name: "stop " + v.pod.Name,
		Start: v.stop.start, End: v.stop.end, Attributes: v.attributes(), Warnings: warningsOf(v.stop.warnings),
	}
	s.Attributes["k8s.rollout.revision"] = own.revision
	return s
}

// warningsOf returns an event of a span for each Event, at its first time.
func warningsOf(all occurrences) []Warning {
	warnings := make([]Warning, 0, len(all))
	for _, e := range all {
		attributes := map[string]any{
			"k8s.event.reason": e.Reason,
			"k8s.event.count":  e.Count,
			"message":          e.Message,
			"log.record.uid":   e.uid + "-" + strconv.FormatInt(e.Count, 10),
		}
		if e.Last > e.First {
			attributes["k8s.event.last_time"] = time.Unix(0, e.Last).UTC().Format(time.RFC3339Nano)
		}
		warnings = append(warnings, Warning{e.First, e.Reason, attributes})
	}
	return warnings
}

// Write writes the spans as OTLP. All have the resource of the revision.
func (r *Revision) Write(parts []Part, scope, version string) ptrace.Traces {
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.43.0")
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		rs.Resource().Attributes().PutStr(name, r.Attributes[name])
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(scope)
	ss.Scope().SetVersion(version)
	for _, part := range parts {
		for i := range part.Spans {
			part.Spans[i].write(ss.Spans().AppendEmpty())
		}
	}
	return traces
}

func (s *Span) write(to ptrace.Span) {
	to.SetTraceID(s.Trace)
	to.SetSpanID(s.ID)
	to.SetParentSpanID(s.Parent)
	to.SetName(s.Name)
	to.SetKind(ptrace.SpanKindInternal)
	to.SetStartTimestamp(pcommon.Timestamp(s.Start))
	to.SetEndTimestamp(pcommon.Timestamp(s.End))
	putAll(to.Attributes(), s.Attributes)
	for _, warning := range s.Warnings {
		event := to.Events().AppendEmpty()
		event.SetTimestamp(pcommon.Timestamp(warning.At))
		event.SetName(warning.Reason)
		putAll(event.Attributes(), warning.Attributes)
	}
	if s.Error != "" {
		to.Status().SetCode(ptrace.StatusCodeError)
		to.Status().SetMessage(s.Error)
	}
}

// putAll writes attributes in the order of their names, so that the bytes are always the same.
func putAll(to pcommon.Map, attributes map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		switch value := attributes[name].(type) {
		case string:
			to.PutStr(name, value)
		case int64:
			to.PutInt(name, value)
		case []string:
			list := to.PutEmptySlice(name)
			for _, item := range value {
				list.AppendEmpty().SetStr(item)
			}
		}
	}
}

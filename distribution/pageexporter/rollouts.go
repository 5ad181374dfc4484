// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The page shows at most this many rollouts of a workload, the newest, and pods of a rollout, those
// that failed first.
const (
	rolloutsShown = 20
	podsShown     = 50
)

// rolloutIdle is the default of idle_timeout of the connector kube_rollouts.
const rolloutIdle = 5 * time.Minute

// span is a span of the trace of a rollout, with those below it.
type span struct {
	Name       string         `json:"name"`
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	Start      time.Time      `json:"start"`
	End        time.Time      `json:"end"`
	Error      string         `json:"error,omitempty"`
	Attributes map[string]any `json:"attributes"`
	Warnings   []spanWarning  `json:"warnings,omitempty"`
	Spans      []*span        `json:"spans,omitempty"`
}

// spanWarning is an event of a span.
type spanWarning struct {
	Time       time.Time      `json:"time"`
	Reason     string         `json:"reason"`
	Attributes map[string]any `json:"attributes"`
}

// spansOf returns the traces of a workload's rollouts as trees, the newest first.
func spansOf(w *rollout.Workload, now time.Time) (tops []*span) {
	if w == nil {
		return nil
	}
	var all []rollout.Span
	for revision := range w.Revisions {
		for _, part := range w.Spans(revision, rollout.Options{Idle: rolloutIdle, Now: now}) {
			all = append(all, part.Spans...)
		}
	}
	slices.SortFunc(all, func(a, b rollout.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name), slices.Compare(a.ID[:], b.ID[:]))
	})
	known := map[pcommon.SpanID]*span{}
	for i := range all {
		known[all[i].ID] = newSpan(&all[i])
	}
	for i := range all {
		s := known[all[i].ID]
		if parent := known[all[i].Parent]; parent != nil {
			parent.Spans = append(parent.Spans, s)
		} else {
			tops = append(tops, s)
		}
	}
	slices.Reverse(tops)
	return tops
}

func newSpan(of *rollout.Span) *span {
	s := &span{
		Name: of.Name, TraceID: hex.EncodeToString(of.Trace[:]), SpanID: hex.EncodeToString(of.ID[:]),
		Start: timeAt(of.Start), End: timeAt(of.End), Error: of.Error, Attributes: of.Attributes,
	}
	for _, w := range of.Warnings {
		s.Warnings = append(s.Warnings, spanWarning{timeAt(w.At), w.Reason, w.Attributes})
	}
	return s
}

func timeAt(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

// rollouts is the timeline of a workload.
type rollouts struct {
	From, Until time.Time
	Rows        []spanRow
	Hidden      int
}

// spanRow is a span in the timeline: a bar and marks on an axis from 0 to 100, and the rows below
// it, which can have an axis of their own.
type spanRow struct {
	ID, Kind, Name, Note, Error string
	From, Until                 time.Time // of the axis below
	Start, End                  time.Time
	X, Width                    float64
	Marks                       []mark // of the span and of those below it
	Own                         []mark // of the span
	Rows                        []spanRow
	Hidden                      int
}

// mark is a warning at its place on the axis.
type mark struct {
	X               float64
	Time            time.Time
	Reason, Message string
	Record          string // log.record.uid
}

// axis is the time that a row shows.
type axis struct{ from, until time.Time }

// at returns the place of a time, from 0 to 100.
func (a axis) at(t time.Time) float64 {
	whole := a.until.Sub(a.from)
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*float64(t.Sub(a.from))/float64(whole)))
}

// rolloutsOf draws the timeline. Each rollout is on the axis of all, and what is below it on an axis
// of its own: a start takes seconds, and rollouts can be an hour apart.
func rolloutsOf(spans []*span, now time.Time) (drawn rollouts) {
	drawn.Hidden = max(0, len(spans)-rolloutsShown)
	spans = spans[:len(spans)-drawn.Hidden]
	if len(spans) == 0 {
		return drawn
	}
	all := axisOf(spans...)
	all.from = later(all.from, now.Add(-horizon))
	drawn.From, drawn.Until = all.from, all.until
	for _, s := range spans {
		row := rowOf(s, all)
		own := axisOf(s)
		row.From, row.Until = own.from, own.until
		row.Rows, row.Hidden = podRows(s.Spans, own)
		drawn.Rows = append(drawn.Rows, row)
	}
	return drawn
}

// axisOf returns the time from the first start to the last end or warning, with everything below.
func axisOf(spans ...*span) (a axis) {
	for _, s := range spans {
		if a.from.IsZero() || s.Start.Before(a.from) {
			a.from = s.Start
		}
		a.until = later(a.until, s.End)
		for _, w := range s.Warnings {
			a.until = later(a.until, w.Time)
		}
		if below := axisOf(s.Spans...); len(s.Spans) > 0 {
			a.until = later(a.until, below.until)
			if below.from.Before(a.from) {
				a.from = below.from
			}
		}
	}
	return a
}

// podRows returns the rows of pods, with their phases. If there are many, those that failed come
// first.
func podRows(spans []*span, on axis) (rows []spanRow, hidden int) {
	shown := slices.Clone(spans)
	if len(shown) > podsShown {
		slices.SortStableFunc(shown, func(a, b *span) int { return warningsFirst(a.Error != "", b.Error != "") })
		hidden = len(shown) - podsShown
		shown = shown[:podsShown]
	}
	for _, s := range shown {
		row := rowOf(s, on)
		for _, phase := range s.Spans {
			row.Rows = append(row.Rows, rowOf(phase, on))
		}
		rows = append(rows, row)
	}
	return rows, hidden
}

// minWidth is the smallest width of a bar: a phase can take less than the resolution of events.
const minWidth = 0.6

// rowOf returns the row of a span, with its own warnings, and those of all spans below it as marks.
func rowOf(s *span, on axis) spanRow {
	row := spanRow{ID: s.TraceID + s.SpanID, Error: s.Error, Start: s.Start, End: s.End, Note: noteOf(s)}
	row.Kind, row.Name, _ = strings.Cut(s.Name, " ")
	if revision, ok := s.Attributes["k8s.rollout.revision"].(string); ok && row.Kind == "rollout" {
		row.Name = nameOfRevision(revision)
	}
	row.X = min(on.at(s.Start), 100-minWidth)
	row.Width = max(minWidth, on.at(s.End)-row.X)
	row.mark(s, on)
	row.Own = slices.Clone(row.Marks[:len(s.Warnings)])
	slices.SortStableFunc(row.Marks, func(a, b mark) int { return a.Time.Compare(b.Time) })
	return row
}

// nameOfRevision returns NAME of KIND/NAME and of KIND/NAME/UID; else the revision is a hash.
func nameOfRevision(revision string) string {
	parts := strings.Split(revision, "/")
	return parts[min(1, len(parts)-1)]
}

func (r *spanRow) mark(s *span, on axis) {
	for _, w := range s.Warnings {
		r.Marks = append(r.Marks, mark{
			X: min(on.at(w.Time), 100-minWidth), Time: w.Time, Reason: w.Reason,
			Message: fmt.Sprint(w.Attributes["message"]), Record: fmt.Sprint(w.Attributes["log.record.uid"]),
		})
	}
	for _, below := range s.Spans {
		r.mark(below, on)
	}
}

// Took returns how long the span is.
func (r *spanRow) Took() string { return r.End.Sub(r.Start).Round(time.Millisecond).String() }

// noteOf says in words what the attributes of a rollout have, and names its trace.
func noteOf(s *span) string {
	outcome, ok := s.Attributes["k8s.rollout.outcome"]
	if !ok {
		return ""
	}
	started := ""
	if inferred, _ := s.Attributes["k8s.rollout.inferred"].([]string); slices.Contains(inferred, "start") {
		started = "; start inferred"
	}
	return fmt.Sprintf("%v, %v: %v of %v pods started, %v failed%s; trace %s", s.Attributes["k8s.rollout.revision"], outcome,
		s.Attributes["k8s.rollout.pods.started"], s.Attributes["k8s.rollout.pods.planned"], s.Attributes["k8s.rollout.pods.failed"], started, s.TraceID)
}

// describe adds to a card what changed, and to that of a single workload its timeline.
func (s *store) describe(c *card, w *workload, f filter, now time.Time) {
	if c.Warnings > 0 {
		c.Changed = s.explained(w)
	}
	if f.Workload != "" {
		c.Rollouts = rolloutsOf(spansOf(s.rollouts.Workloads[w.rollouts], now), now)
		c.Records = c.Changed.records()
	}
}

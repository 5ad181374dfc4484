// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
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
	marksShown    = 500 // of warnings in a bar
)

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
	Total      totals         `json:"total,omitempty"`

	// In a timeline with an axis from 0 to 100.
	GoesOn   bool      `json:"-"`
	Until    time.Time `json:"-"` // the end of the bar: the span's, or that of the page if it goes on
	X, Width float64   `json:"-"`
	Marks    []float64 `json:"-"` // of warnings, also of those below
	Warned   int       `json:"-"` // how many there are
}

// spanWarning is an event of a span.
type spanWarning struct {
	Time       time.Time      `json:"time"`
	Reason     string         `json:"reason"`
	Attributes map[string]any `json:"attributes"`
}

// rollouts returns the traces of the workload's rollouts as trees, the newest first, with so many
// pods.
func (v *view) rollouts(pods int) []*span {
	all := v.at().Spans()
	slices.SortFunc(all, func(a, b rollout.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name), slices.Compare(a.ID[:], b.ID[:]))
	})
	known := map[pcommon.SpanID]*span{}
	for i := range all {
		known[all[i].ID] = spanOf(&all[i])
	}
	tops := []*span{}
	for i := range all {
		s := known[all[i].ID]
		if parent := known[all[i].Parent]; parent != nil {
			parent.Spans = append(parent.Spans, s)
		} else {
			tops = append(tops, s)
		}
	}
	slices.Reverse(tops)
	_, until := v.query().Window(v.now)
	for _, s := range tops {
		s.draw(until)
		s.cut(pods)
	}
	return tops
}

func spanOf(r *rollout.Span) *span {
	s := &span{
		Name: r.Name, TraceID: hex.EncodeToString(r.Trace[:]), SpanID: hex.EncodeToString(r.ID[:]),
		Start: timeAt(r.Start), End: timeAt(r.End), Error: r.Error, Attributes: r.Attributes, GoesOn: r.GoesOn,
	}
	for _, w := range r.Warnings {
		s.Warnings = append(s.Warnings, spanWarning{timeAt(w.At), w.Reason, w.Attributes})
	}
	return s
}

func timeAt(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

// minWidth is the smallest width of a bar: a phase can take less than the resolution of events.
const minWidth = 0.6

// draw sets the places on the axis. Each rollout has an axis of its own: a start takes seconds, and
// rollouts can be an hour apart.
func (s *span) draw(until time.Time) {
	var moments []time.Time
	s.walk(func(below *span) {
		below.Until = below.End
		if below.GoesOn && until.After(below.End) {
			below.Until = until
		}
		moments = append(moments, below.Start, below.Until)
		for _, w := range below.Warnings {
			moments = append(moments, w.Time)
		}
	})
	from := slices.MinFunc(moments, time.Time.Compare)
	whole := max(slices.MaxFunc(moments, time.Time.Compare).Sub(from), 1)
	at := func(t time.Time) float64 { return min(100-minWidth, 100*float64(t.Sub(from))/float64(whole)) }
	s.walk(func(drawn *span) {
		drawn.X = at(drawn.Start)
		drawn.Width = max(minWidth, at(drawn.Until)-drawn.X)
		drawn.walk(func(below *span) {
			drawn.Warned += len(below.Warnings)
			for _, w := range first(below.Warnings, marksShown-len(drawn.Marks)) {
				drawn.Marks = append(drawn.Marks, at(w.Time))
			}
		})
	})
}

// walk calls do with the span and all spans below it.
func (s *span) walk(do func(*span)) {
	do(s)
	for _, below := range s.Spans {
		below.walk(do)
	}
}

// cut keeps so many spans below: those that failed first.
func (s *span) cut(most int) {
	if len(s.Spans) <= most {
		return
	}
	s.Total = totals{"spans": len(s.Spans)}
	slices.SortStableFunc(s.Spans, func(a, b *span) int { return cmp.Compare(min(len(b.Error), 1), min(len(a.Error), 1)) })
	s.Spans = first(s.Spans, most)
}

// Hidden returns how many spans below are not shown.
func (s *span) Hidden() int { return max(0, s.Total["spans"]-len(s.Spans)) }

// Kind returns what the span is about: a rollout, a pod, or a phase.
func (s *span) Kind() string {
	kind, _, _ := strings.Cut(s.Name, " ")
	return kind
}

// Label returns the name of what the span is about.
func (s *span) Label() string {
	if revision, ok := s.Attributes["k8s.rollout.revision"].(string); ok && s.Kind() == "rollout" {
		return revision
	}
	_, name, _ := strings.Cut(s.Name, " ")
	return name
}

// Notes returns what a rollout's attributes say, without the words that all have.
func (s *span) Notes() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		short, ok := strings.CutPrefix(name, "k8s.rollout.")
		if !ok {
			continue
		}
		value := s.Attributes[name]
		if list, isList := value.([]string); isList {
			value = "[" + strings.Join(list, "; ") + "]"
		}
		notes = append(notes, fmt.Sprintf("%s: %v", short, value))
	}
	return notes
}

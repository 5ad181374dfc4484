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

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The page shows at most this many rollouts of a workload, the newest, and pods of a rollout, those
// that failed first.
const (
	rolloutsShown = 20
	podsShown     = 50
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
}

// spanWarning is an event of a span.
type spanWarning struct {
	Time       time.Time      `json:"time"`
	Reason     string         `json:"reason"`
	Attributes map[string]any `json:"attributes"`
}

// rollouts returns the traces of a workload's rollouts as trees, the newest first.
func (v *view) rollouts(q incident.Query) []*span {
	all := v.model.At(v.now, q).Spans()
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
	return tops
}

func spanOf(r *rollout.Span) *span {
	s := &span{
		Name: r.Name, TraceID: hex.EncodeToString(r.Trace[:]), SpanID: hex.EncodeToString(r.ID[:]),
		Start: timeAt(r.Start), End: timeAt(r.End), Error: r.Error, Attributes: r.Attributes,
	}
	for _, w := range r.Warnings {
		s.Warnings = append(s.Warnings, spanWarning{timeAt(w.At), w.Reason, w.Attributes})
	}
	return s
}

func timeAt(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

// bar is a span in the timeline, on an axis from 0 to 100, with the bars below it.
type bar struct {
	*span
	X, Width float64
	Marks    []float64 // of warnings, also of those below
	Bars     []bar
	Hidden   int
}

// barsOf draws rollouts. Each has an axis of its own: a start takes seconds, and rollouts can be an hour
// apart.
func barsOf(rollouts []*span) []bar {
	return each(rollouts[:min(rolloutsShown, len(rollouts))], func(s *span) bar {
		from, until := s.Start, s.End
		s.walk(func(below *span) {
			if below.Start.Before(from) {
				from = below.Start
			}
			if below.End.After(until) {
				until = below.End
			}
			for _, w := range below.Warnings {
				if w.Time.After(until) {
					until = w.Time
				}
			}
		})
		return barOf(s, from, max(until.Sub(from), 1))
	})
}

// walk calls do with the span and all spans below it.
func (s *span) walk(do func(*span)) {
	do(s)
	for _, below := range s.Spans {
		below.walk(do)
	}
}

// minWidth is the smallest width of a bar: a phase can take less than the resolution of events.
const minWidth = 0.6

func barOf(s *span, from time.Time, whole time.Duration) bar {
	at := func(t time.Time) float64 {
		return min(100-minWidth, max(0, 100*float64(t.Sub(from))/float64(whole)))
	}
	b := bar{span: s, X: at(s.Start)}
	b.Width = max(minWidth, at(s.End)-b.X)
	s.walk(func(below *span) {
		for _, w := range below.Warnings {
			b.Marks = append(b.Marks, at(w.Time))
		}
	})
	below := slices.Clone(s.Spans)
	if b.Hidden = max(0, len(below)-podsShown); b.Hidden > 0 {
		slices.SortStableFunc(below, func(a, b *span) int {
			return cmp.Compare(min(len(b.Error), 1), min(len(a.Error), 1))
		})
		below = below[:podsShown]
	}
	b.Bars = each(below, func(s *span) bar { return barOf(s, from, whole) })
	return b
}

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
		if short, ok := strings.CutPrefix(name, "k8s.rollout."); ok {
			notes = append(notes, fmt.Sprintf("%s: %v", short, s.Attributes[name]))
		}
	}
	return notes
}

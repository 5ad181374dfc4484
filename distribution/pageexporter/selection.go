// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// selection is what a filter selects of a workload: everything, or only the objects with the name
// that the filter looks for.
type selection struct {
	*workload
	members   []*member
	timelines timelines // of the members
	// The occurrences that pass the filter.
	all, warnings int64
}

// selectFrom returns what the filter selects of a workload. If the workload has the name, then its
// own timeline counts, because this one has the objects that were dropped, too.
func (f filter) selectFrom(w *workload) selection {
	s := selection{workload: w, members: slices.Collect(maps.Values(w.objects)), timelines: timelines{&w.timeline}}
	switch {
	case f.Text != "":
		s.members = f.membersWhereSaid(w)
	case f.isNamed(w.top):
		return s
	default:
		s.members = slices.DeleteFunc(s.members, func(m *member) bool { return !f.isNamed(m.chain...) })
	}
	s.timelines = nil
	for _, m := range s.members {
		s.timelines = append(s.timelines, m)
	}
	return s
}

// selected returns what the filter selects of each workload, and the timelines of all of it. Counts
// of workloads that were dropped are in the timeline of the whole page only.
func (s *store) selected(f filter) (selections []selection, whole timelines) {
	for _, w := range s.workloads {
		if f.Workload == "" || f.Workload == w.id {
			of := f.selectFrom(w)
			selections = append(selections, of)
			whole = append(whole, of.timelines...)
		}
	}
	if f.Workload == "" && f.Name == "" && f.Kind == "" && f.Text == "" {
		whole = timelines{&s.overall}
	}
	return selections, whole
}

// arranged returns the selections with something that passes the filter. Workloads with warnings
// come first; troubled is their number. A workload keeps its place until a new workload appears.
func arranged(selections []selection, f filter, now time.Time) (shown []selection, troubled int) {
	for _, s := range selections {
		if s.all, s.warnings = total(s.timelines.since(f.start(now), f)); s.all > 0 {
			shown = append(shown, s)
		}
		if s.warnings > 0 {
			troubled++
		}
	}
	slices.SortFunc(shown, func(a, b selection) int {
		return cmp.Or(warningsFirst(a.warnings > 0, b.warnings > 0), cmp.Compare(b.order, a.order))
	})
	return shown, troubled
}

// eventsSince returns the events that pass the filter, the newest first.
func (s selection) eventsSince(start time.Time, f filter) (passed []*eventState) {
	for _, e := range slices.Backward(s.events) {
		if at, in := e.lastIn(start, f); in && f.admits(e.of) && f.isNamed(e.chain...) && f.isSaid(e.message) {
			shown := *e
			shown.at = at
			passed = append(passed, &shown)
		}
	}
	slices.SortStableFunc(passed, func(a, b *eventState) int { return b.at.Compare(a.at) })
	return passed
}

// mostUrgent returns up to most of the events, the newest first. Newer events that are not warnings
// never hide a warning.
func mostUrgent(newestFirst []*eventState, most int) []*eventState {
	byUrgency := slices.Clone(newestFirst)
	slices.SortStableFunc(byUrgency, func(a, b *eventState) int {
		return warningsFirst(a.of.isWarning(), b.of.isWarning())
	})
	kept := byUrgency[:min(most, len(byUrgency))]
	slices.SortStableFunc(kept, func(a, b *eventState) int { return b.at.Compare(a.at) })
	return kept
}

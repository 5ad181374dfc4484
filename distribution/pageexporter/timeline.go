// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
	"unique"
)

const (
	// horizon is how far back the page can look.
	horizon = time.Hour
	// slotLength is the resolution of times.
	slotLength = 10 * time.Second
)

// unlisted are the traits of what exceeds the bound of a slot: only whether it is a warning.
var unlisted = map[bool]traits{true: {traitType: "Warning"}, false: {traitType: "Normal"}}

// timeline counts occurrences by their time and traits. It is not safe for concurrent use.
type timeline struct {
	slots []slot // by their time
}

type slot struct {
	start  time.Time
	counts []count // one for each value of traits
}

// count is the number of occurrences with these traits. Most timelines have the same few traits, so
// they share them.
type count struct {
	of unique.Handle[traits]
	n  int64
}

// add counts occurrences in their slot. A slot has counts of up to most different traits.
func (t *timeline) add(e *entry, most int) {
	start := e.at.Truncate(slotLength)
	i, found := t.find(start)
	if !found {
		t.slots = slices.Insert(t.slots, i, slot{start: start})
	}
	in, of := &t.slots[i], unique.Make(e.of)
	if in.find(of) < 0 && len(in.counts) >= most {
		of = unique.Make(unlisted[e.of.isWarning()])
	}
	if at := in.find(of); at >= 0 {
		in.counts[at].n += e.occurrences
		return
	}
	in.counts = append(in.counts, count{of, e.occurrences})
}

func (s *slot) find(of unique.Handle[traits]) int {
	return slices.IndexFunc(s.counts, func(c count) bool { return c.of == of })
}

func (t *timeline) find(start time.Time) (i int, found bool) {
	return slices.BinarySearchFunc(t.slots, start, func(s slot, start time.Time) int { return s.start.Compare(start) })
}

// start returns the time of the first slot; zero: there is none.
func (t *timeline) start() (start time.Time) {
	if len(t.slots) > 0 {
		start = t.slots[0].start
	}
	return start
}

// forget drops the slots that begin before a time.
func (t *timeline) forget(before time.Time) {
	first, _ := t.find(before)
	t.slots = slices.Delete(t.slots, 0, first)
}

// size returns the number of counts.
func (t *timeline) size() (n int) {
	for _, s := range t.slots {
		n += len(s.counts)
	}
	return n
}

// since returns the counts that pass the filter, in the slots that begin at or after start, and
// before the end of the filter's zoom.
func (t *timeline) since(start time.Time, f filter) iter.Seq2[time.Time, count] {
	return func(yield func(time.Time, count) bool) {
		first, _ := t.find(start)
		for _, s := range t.slots[first:] {
			if f.isOver(s.start) {
				return
			}
			for _, c := range s.counts {
				if f.admits(c.of.Value()) && !yield(s.start, c) {
					return
				}
			}
		}
	}
}

// counted counts occurrences: a timeline or an object.
type counted interface {
	since(start time.Time, f filter) iter.Seq2[time.Time, count]
}

// timelines count the occurrences of several objects.
type timelines []counted

// since returns the counts of the object's timeline, or of its events.
func (m *member) since(start time.Time, f filter) iter.Seq2[time.Time, count] {
	if m.said == nil {
		return m.timeline.since(start, f)
	}
	return m.said.since(start, f)
}

// since returns the counts of all timelines, one timeline after the other.
func (all timelines) since(start time.Time, f filter) iter.Seq2[time.Time, count] {
	return func(yield func(time.Time, count) bool) {
		for _, t := range all {
			for at, c := range t.since(start, f) {
				if !yield(at, c) {
					return
				}
			}
		}
	}
}

// total returns the number of occurrences, and how many of them are warnings.
func total(counts iter.Seq2[time.Time, count]) (all, warnings int64) {
	for _, c := range counts {
		all += c.n
		if c.of.Value().isWarning() {
			warnings += c.n
		}
	}
	return all, warnings
}

// mostFrequent returns up to most values, the highest count first, and the number of the others.
func mostFrequent(counts map[string]int64, most int) (shown []string, hidden int) {
	shown = slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	hidden = max(0, len(shown)-most)
	return shown[:len(shown)-hidden], hidden
}

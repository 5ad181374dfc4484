// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

const (
	// horizon is how far back the page can look.
	horizon = time.Hour
	// slotLength is how exactly it is known when something occurred.
	slotLength = 10 * time.Second
)

// timeline counts occurrences by their time and traits. It is not safe for concurrent use.
type timeline struct {
	slots []slot // by their time
}

type slot struct {
	start  time.Time
	counts map[traits]int64
}

func (t *timeline) add(at time.Time, of traits, occurrences int64) {
	start := at.Truncate(slotLength)
	i, found := t.find(start)
	if !found {
		t.slots = slices.Insert(t.slots, i, slot{start, map[traits]int64{}})
	}
	t.slots[i].counts[of] += occurrences
}

func (t *timeline) find(start time.Time) (i int, found bool) {
	return slices.BinarySearchFunc(t.slots, start, func(s slot, start time.Time) int { return s.start.Compare(start) })
}

// forget drops what occurred before a time.
func (t *timeline) forget(before time.Time) {
	t.slots = slices.DeleteFunc(t.slots, func(s slot) bool { return !s.start.Add(slotLength).After(before) })
}

// since is what occurred in the slots that begin at or after a time and passes the filter.
func (t *timeline) since(start time.Time, f filter) iter.Seq2[time.Time, count] {
	return func(yield func(time.Time, count) bool) {
		first, _ := t.find(start)
		for _, s := range t.slots[first:] {
			for of, n := range s.counts {
				if f.admits(of) && !yield(s.start, count{of, n}) {
					return
				}
			}
		}
	}
}

type count struct {
	of traits
	n  int64
}

// total is how many occurrences, and how many of them are no normal ones.
func (t *timeline) total(start time.Time, f filter) (all, warnings int64) {
	for _, c := range t.since(start, f) {
		all += c.n
		if c.of.isWarning() {
			warnings += c.n
		}
	}
	return all, warnings
}

// sortedByCount are the keys with the highest counts first.
func sortedByCount[K cmp.Ordered](counts map[K]int64) []K {
	keys := make([]K, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return keys
}

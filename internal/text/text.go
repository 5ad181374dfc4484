// SPDX-License-Identifier: Apache-2.0

// Package text bounds texts that anybody may write into Events and objects. What is read from the
// API server is bounded where it enters the receiver, so that everything that keeps it is bounded,
// and texts that look the same outside are the same inside.
package text

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxValue is the maximum length in bytes of an attribute's name or value.
	MaxValue = 1 << 10
	// MaxBody is the maximum length of a record's body.
	MaxBody = 64 << 10
	// MaxName is the maximum length of an object's name. Kubernetes allows no longer ones.
	MaxName = 253
	// MaxEntries and MaxEntriesBytes bound the labels and annotations of an object that are kept,
	// both together. A usual object has a few hundred bytes of them; most backends refuse a record
	// with more attributes.
	MaxEntries      = 128
	MaxEntriesBytes = 8 << 10
)

// mark is the end of a text that was cut.
const mark = "…"

// Value returns a text as an attribute may have it.
func Value(s string) string { return Cut(s, MaxValue) }

// Cut returns a text in valid UTF-8 without invisible characters, cut to a number of bytes, which
// include the mark. A sequence of invalid bytes becomes one U+FFFD. What was changed retains nothing of
// the original.
func Cut(s string, most int) string {
	head := s[:min(len(s), 4*most)] // The work is bounded: a longer text is cut, or hides most of itself.
	if !isPlain(head) {
		s = visible(head)
	}
	if len(s) <= most {
		return s
	}
	end := most - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// isPlain reports whether a text has only visible characters of ASCII, as nearly all have.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// visible leaves out what nobody sees, such as zero-width spaces, marks that reverse the order of
// characters, and tags: people must see what a program reads. Lines and columns stay.
func visible(s string) string {
	valid := strings.ToValidUTF8(s, string(utf8.RuneError))
	seen := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, invisible...) {
			return -1
		}
		return r
	}, valid)
	if len(seen) < len(valid) {
		return strings.Clone(seen) // It has the capacity of the original.
	}
	return seen
}

// invisible are controls, format characters, and what else no font shows.
var invisible = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// Keys are the keys of labels and annotations that are kept. nil keeps none.
type Keys struct {
	Label, Annotation func(key string) bool
	// First reports whether the key comes before others if not all fit; nil: none does.
	First func(key string) bool
}

// Entries returns the labels and the annotations of an object to keep, nil if there are none. Beyond
// the bounds, it leaves out the longest ones. It retains nothing of the original.
func (k Keys) Entries(labels, annotations map[string]string) (keptLabels, keptAnnotations map[string]string) {
	keptLabels, keptAnnotations = entries(labels, k.Label), entries(annotations, k.Annotation)
	if fit(keptLabels, keptAnnotations) {
		return keptLabels, keptAnnotations
	}
	return k.bounded(keptLabels, keptAnnotations)
}

// entries returns the entries to keep in the form that an attribute may have. If two keys become the
// same, the greater of the original keys wins, so that the same object always has the same entries.
func entries(all map[string]string, keep func(key string) bool) map[string]string {
	if keep == nil {
		return nil
	}
	var raw []string
	for key := range all {
		if keep(Value(key)) {
			raw = append(raw, key)
		}
	}
	if len(raw) == 0 {
		return nil
	}
	slices.Sort(raw)
	kept := make(map[string]string, len(raw))
	for _, key := range raw {
		kept[strings.Clone(Value(key))] = strings.Clone(Value(all[key]))
	}
	return kept
}

// fit reports whether the entries of an object are within the bounds.
func fit(labels, annotations map[string]string) bool {
	size := 0
	for _, all := range []map[string]string{labels, annotations} {
		for key, value := range all {
			size += len(key) + len(value)
		}
	}
	return len(labels)+len(annotations) <= MaxEntries && size <= MaxEntriesBytes
}

// bounded removes entries until the others fit.
func (k Keys) bounded(labels, annotations map[string]string) (boundedLabels, boundedAnnotations map[string]string) {
	type entry struct {
		set     map[string]string
		key     string
		isFirst bool
		size    int
	}
	var all []entry
	for _, set := range []map[string]string{labels, annotations} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			all = append(all, entry{set, key, k.First != nil && k.First(key), len(key) + len(set[key])})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		if a.isFirst != b.isFirst {
			return map[bool]int{true: -1, false: 1}[a.isFirst]
		}
		return a.size - b.size
	})
	size := 0
	for i, e := range all {
		if size += e.size; i >= MaxEntries || size > MaxEntriesBytes {
			delete(e.set, e.key)
		}
	}
	return nilIfEmpty(labels), nilIfEmpty(annotations)
}

func nilIfEmpty(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	return set
}

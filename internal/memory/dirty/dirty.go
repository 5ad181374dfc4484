// SPDX-License-Identifier: Apache-2.0

// Package dirty holds which entries have changed since they were last saved.
package dirty

import (
	"maps"
	"slices"
)

// Set is the keys of changed entries. The zero value notes nothing until Track. It is not safe for
// concurrent use.
type Set[K comparable] struct {
	keys map[K]struct{} // nil: nobody asks
}

// Track makes the set empty, and note from now on.
func (s *Set[K]) Track() { s.keys = map[K]struct{}{} }

// Tracked reports whether anything is noted.
func (s *Set[K]) Tracked() bool { return s.keys != nil }

// Note adds keys.
func (s *Set[K]) Note(keys ...K) {
	if s.keys == nil {
		return
	}
	for _, k := range keys {
		s.keys[k] = struct{}{}
	}
}

// Len is how many keys were noted since the last Take.
func (s *Set[K]) Len() int { return len(s.keys) }

// Take returns the keys that were noted since the last Take. The memory that they took is freed:
// after a first listing it is that of all events.
func (s *Set[K]) Take() []K {
	keys := slices.AppendSeq(make([]K, 0, len(s.keys)), maps.Keys(s.keys))
	s.Track()
	return keys
}

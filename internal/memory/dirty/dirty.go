// SPDX-License-Identifier: Apache-2.0

// Package dirty holds which entries have changed since they were last saved.
package dirty

import (
	"maps"
	"slices"
)

// Key names an entry, within one kind of entries.
type Key [16]byte

// Set is the keys of changed entries. The zero value notes nothing until Track. It is not safe for
// concurrent use. What has entries embeds it.
type Set struct {
	keys map[Key]struct{} // nil: nobody asks
}

// Track makes the set empty, and note from now on.
func (s *Set) Track() { s.keys = map[Key]struct{}{} }

// Tracked reports whether anything is noted.
func (s *Set) Tracked() bool { return s.keys != nil }

// Note adds keys.
func (s *Set) Note(keys ...Key) {
	if s.keys == nil {
		return
	}
	for _, k := range keys {
		s.keys[k] = struct{}{}
	}
}

// Changed is how many keys were noted since the last TakeChanged.
func (s *Set) Changed() int { return len(s.keys) }

// TakeChanged returns the keys that were noted since it was last called. The memory that they took
// is freed: after a first listing it is that of all events.
func (s *Set) TakeChanged() []Key {
	keys := slices.AppendSeq(make([]Key, 0, len(s.keys)), maps.Keys(s.keys))
	s.Track()
	return keys
}

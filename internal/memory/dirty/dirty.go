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
	// keys has for each key whether its entry is new since the last TakeChanged. It is nil if nobody
	// asks.
	keys map[Key]bool
}

// Track makes the set empty, and note from now on.
func (s *Set) Track() { s.keys = map[Key]bool{} }

// Tracked reports whether anything is noted.
func (s *Set) Tracked() bool { return s.keys != nil }

// Note adds the key of an entry that has changed.
func (s *Set) Note(k Key) { s.note(k, false) }

// NoteNew adds the key of an entry that did not exist.
func (s *Set) NoteNew(k Key) { s.note(k, true) }

// NoteGone adds the key of an entry that no longer exists. If the entry is new, nothing that was
// saved has it, so its key is not needed: while nothing can be saved, the set then does not grow
// with each entry that comes and goes.
func (s *Set) NoteGone(k Key) {
	if s.keys[k] {
		delete(s.keys, k)
		return
	}
	s.note(k, false)
}

func (s *Set) note(k Key, isNew bool) {
	if _, known := s.keys[k]; !known && s.keys != nil {
		s.keys[k] = isNew
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

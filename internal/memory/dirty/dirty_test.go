// SPDX-License-Identifier: Apache-2.0

package dirty

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatChangedIsTakenOnce(t *testing.T) {
	var s Set
	a, b := Key{1}, Key{2}
	s.Note(a)
	assert.False(t, s.Tracked())
	assert.Zero(t, s.Changed(), "nothing is noted before Track")

	s.Track()
	assert.True(t, s.Tracked())
	s.Note(a)
	s.Note(b)
	s.Note(a)
	assert.Equal(t, 2, s.Changed())
	taken := s.TakeChanged()
	assert.ElementsMatch(t, []Key{a, b}, taken)
	assert.Empty(t, s.TakeChanged())
	for _, k := range taken {
		s.Note(k)
	}
	assert.ElementsMatch(t, taken, s.TakeChanged(), "what could not be saved belongs into the next")
}

func TestOnlyAnEntryThatWasNeverSavedIsNotNeededWhenItIsGone(t *testing.T) {
	k := Key{1}
	isNew, changes, isGone := func(s *Set) { s.NoteNew(k) }, func(s *Set) { s.Note(k) }, func(s *Set) { s.NoteGone(k) }
	isSaved := func(s *Set) { s.TakeChanged() }
	for name, tt := range map[string]struct {
		then []func(*Set)
		want []Key
	}{
		"it is new":                                    {[]func(*Set){isNew}, []Key{k}},
		"it is new and gone":                           {[]func(*Set){isNew, isGone}, nil},
		"it is new, changes, and is gone":              {[]func(*Set){isNew, changes, isGone}, nil},
		"it is new, gone, and new again":               {[]func(*Set){isNew, isGone, isNew}, []Key{k}},
		"it is new, gone, new again and gone again":    {[]func(*Set){isNew, isGone, isNew, isGone}, nil},
		"it was saved before and is gone":              {[]func(*Set){isGone}, []Key{k}},
		"it was saved before, changes, and is gone":    {[]func(*Set){changes, isGone}, []Key{k}},
		"it was saved before, is gone and new again":   {[]func(*Set){isGone, isNew}, []Key{k}},
		"it was saved before, is new again, and gone":  {[]func(*Set){isGone, isNew, isGone}, []Key{k}},
		"it is new, is saved, and is gone":             {[]func(*Set){isNew, isSaved, isGone}, []Key{k}},
		"it is new, is saved, changes, and is gone":    {[]func(*Set){isNew, isSaved, changes, isGone}, []Key{k}},
		"its end is saved, then it is new again, gone": {[]func(*Set){isGone, isSaved, isNew, isGone}, nil},
		"nothing is noted without Track":               {[]func(*Set){func(s *Set) { *s = Set{} }, isNew, isGone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			s.Track()
			for _, do := range tt.then {
				do(&s)
			}
			assert.ElementsMatch(t, tt.want, s.TakeChanged())
		})
	}
}

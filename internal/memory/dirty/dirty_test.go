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
	s.Note(b, a)
	assert.Equal(t, 2, s.Changed())
	taken := s.TakeChanged()
	assert.ElementsMatch(t, []Key{a, b}, taken)
	assert.Empty(t, s.TakeChanged())
	s.Note(taken...)
	assert.ElementsMatch(t, taken, s.TakeChanged(), "what could not be saved belongs into the next")
}

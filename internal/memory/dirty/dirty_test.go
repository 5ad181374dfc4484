// SPDX-License-Identifier: Apache-2.0

package dirty

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatChangedIsTakenOnce(t *testing.T) {
	var s Set[string]
	s.Note("before")
	assert.False(t, s.Tracked())
	assert.Zero(t, s.Len(), "nothing is noted before Track")

	s.Track()
	s.Note("a")
	s.Note("b", "a")
	assert.Equal(t, 2, s.Len())
	taken := s.Take()
	assert.ElementsMatch(t, []string{"a", "b"}, taken)
	assert.Empty(t, s.Take())
	s.Note(taken...)
	assert.ElementsMatch(t, taken, s.Take(), "what could not be saved belongs into the next")
}

// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPipelinesShareTheInstanceOfTheirConfiguration(t *testing.T) {
	var all Registry[string, int]
	next := 0
	get := func(config string) int {
		got, err := all.Get(config, func() (int, error) { next++; return next, nil })
		require.NoError(t, err)
		return got
	}
	assert.Equal(t, 1, get("a"))
	assert.Equal(t, 1, get("a"))
	assert.Equal(t, 2, get("b"))
	assert.False(t, all.Release("a"), "another pipeline uses it")
	assert.True(t, all.Release("a"))
	assert.Equal(t, 3, get("a"), "a configuration that was shut down starts again")

	_, err := all.Get("c", func() (int, error) { return 0, errors.New("no") })
	require.Error(t, err)
	assert.Equal(t, 4, get("c"), "an error leaves nothing")
}

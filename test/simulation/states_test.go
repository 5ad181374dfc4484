// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachStateHasANameOfItsOwn(t *testing.T) {
	states, err := States()
	require.NoError(t, err)
	assert.NotEmpty(t, states)
	for _, r := range append(rare, ofStates...) {
		if r.reaches != "" {
			assert.Contains(t, states, r.reaches, r.name)
		}
	}
}

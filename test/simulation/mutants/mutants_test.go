// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A change of the code can make a mutant stale, and make mutants is too slow to run at each change.
func TestEachMutantFitsTheCode(t *testing.T) {
	t.Chdir("../../..") // to go.mod, where the runner is started
	require.NoError(t, checkTexts(changes()))
	require.NoError(t, checkTexts(smallLimits))
	names := map[string]bool{}
	for _, m := range changes() {
		assert.False(t, names[m.name], "two mutants have the name %q", m.name)
		names[m.name] = true
		assert.NotEqual(t, m.from, m.to, m.name)
	}
}

func TestEachReasonIsOfAGeneratedMutant(t *testing.T) {
	t.Chdir("../../..")
	all, err := generate(map[string]string{})
	require.NoError(t, err)
	names := map[string]bool{}
	for _, m := range all {
		names[m.name] = true
	}
	for name := range reasons {
		assert.True(t, names[name], "no mutant has the name %q", name)
	}
}

// SPDX-License-Identifier: Apache-2.0

package memorytest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sized returns all, but few with the race detector, which makes a test ten times slower. make test
// runs the tests that use it both ways.
func Sized(all, few int) int {
	if isRace {
		return few
	}
	return all
}

// Allocations checks that what is done makes no more allocations than its budget, so that they do
// not creep back. The race detector makes allocations of its own: tests with it are skipped.
func Allocations(t *testing.T, budget float64, do func()) {
	t.Helper()
	if isRace {
		t.Skip("the race detector makes allocations of its own")
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, do), budget, "allocations")
}

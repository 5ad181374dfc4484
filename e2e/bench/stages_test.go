// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStagesAreReadFromTheOutputOfTheirBenchmark(t *testing.T) {
	figures := stageFigures("goos: linux\n" +
		"BenchmarkStages/loop-2         \t    1186\t   1077086 ns/op\t     92843 events/s\t     10771 ns/event\t  937220 B/op\t   10278 allocs/op\n")
	got := map[string]float64{}
	for _, f := range figures {
		got[f.Name] = f.Ours[0]
	}
	assert.Equal(t, map[string]float64{
		"loop: events a second": 92843, "loop: time for an event": 10.771,
		"loop: allocations for an event": 102.78, "loop: allocated for an event": 9372.2,
	}, got)
}

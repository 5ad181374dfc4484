// SPDX-License-Identifier: Apache-2.0

// Package memorytest measures in benchmarks how much memory something keeps, checks how many
// allocations it makes, and makes tests smaller with the race detector.
package memorytest

import (
	"runtime"
	"testing"
)

// Report reports, in the unit, how many bytes of the heap what is made takes for each of the n
// things that it holds.
func Report(b *testing.B, unit string, n int, makeIt func() any) {
	b.Helper()
	var bytes float64
	for range b.N {
		before := heap()
		made := makeIt()
		bytes = float64(heap()-before) / float64(n)
		runtime.KeepAlive(made)
	}
	b.ReportMetric(bytes, unit)
	b.ReportMetric(0, "ns/op")
}

func heap() uint64 {
	// Interned strings go in the second collection after their last use.
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

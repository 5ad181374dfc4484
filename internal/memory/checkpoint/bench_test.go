// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkSave reports what a save of 100 changed entries costs, by the number of entries. An
// entry has 45 bytes with its key, as one of the ledger has. One operation is all the saves from
// the end of a snapshot to the end of the next one.
func BenchmarkSave(b *testing.B) {
	for _, events := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			d, now, keys := newDisk(), make(entries, events), make([]Key, events)
			s := New(d)
			defer s.Close()
			for i := range keys {
				keys[i] = key(i)
				now[keys[i]] = make([]byte, 28)
			}
			saves, changed := 0, make([]Key, 100)
			saveCycle := func() {
				last := s.journal.acknowledged.Snapshot
				for slices.Equal(s.journal.acknowledged.Snapshot, last) {
					for i := range changed {
						changed[i] = keys[random.IntN(events)]
					}
					if err := s.Save(b.Context(), Content{State: []byte("1"), Changed: changed, Source: now}); err != nil {
						b.Fatal(err)
					}
					saves++
				}
			}
			saveCycle()
			saveCycle()
			saves, d.wrote = 0, 0
			for b.Loop() {
				saveCycle()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(saves), "ns/save")
			b.ReportMetric(float64(d.wrote)/float64(saves*len(changed)), "B/change")
			b.ReportMetric(0, "ns/op")
		})
	}
}

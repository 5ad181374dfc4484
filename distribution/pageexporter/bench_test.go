// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"testing"
	"time"
)

// storm is a sighting of each of so many pods of as many workloads as the board keeps. What is renewed has names of its own.
func storm(at time.Time, round, pods int, renewed string) (all []sighting) {
	for w := range maxWorkloads {
		for p := range pods {
			pod := fmt.Sprint("fe-", w, "-", p, renewed)
			all = append(all, podEvent(fmt.Sprint("fe-", w), pod, fmt.Sprint("Reason", p%5), func(s *sighting) {
				s.at, s.id, s.of[traitNamespace] = at, fmt.Sprint(s.event, round), fmt.Sprint("ns-", w%50)
			}))
		}
	}
	return all
}

// BenchmarkAdd adds batches of 10,000 sightings to a full board: of its pods again and again, and of ever new ones.
func BenchmarkAdd(b *testing.B) {
	const pods = 10_000 / maxWorkloads
	for name, renewed := range map[string]func(round int) string{
		"the same pods": func(int) string { return "" },
		"new pods":      func(round int) string { return fmt.Sprint("-", round) },
	} {
		b.Run(name, func(b *testing.B) {
			full, c := boardAt(noon)
			full.add(storm(c.Time, 0, maxObjects, ""))
			for round := 1; b.Loop(); round++ {
				b.StopTimer()
				c.Time = c.Add(time.Second)
				batch := storm(c.Time, round, pods, renewed(round))
				b.StartTimer()
				full.add(batch)
			}
			b.ReportMetric(float64(b.N*pods*maxWorkloads)/b.Elapsed().Seconds(), "sightings/s")
		})
	}
}

// BenchmarkSee looks at a board that is full of what happened to all of its objects in all of the last hour.
func BenchmarkSee(b *testing.B) {
	full, c := boardAt(noon)
	for round := range int(horizon / slotLength) {
		c.Time = c.Add(slotLength)
		full.add(storm(c.Time, round, maxObjects, ""))
	}
	for minutes := range spans {
		b.Run(minutes+" minutes", func(b *testing.B) {
			f := filterFrom(map[string][]string{"minutes": {minutes}})
			for b.Loop() {
				full.see(f)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"testing"
	"time"
)

// storm returns an entry for each pod of maxWorkloads workloads. The names of the pods end with
// renewed.
func storm(at time.Time, round, pods int, renewed string) (all []entry) {
	for w := range maxWorkloads {
		for p := range pods {
			pod := fmt.Sprint("fe-", w, "-", p, renewed)
			all = append(all, podEvent(fmt.Sprint("fe-", w), pod, fmt.Sprint("Reason", p%5), func(e *entry) {
				e.at, e.id, e.of[traitNamespace] = at, fmt.Sprint(e.event, round), fmt.Sprint("ns-", w%50)
			}))
		}
	}
	return all
}

// BenchmarkAdd adds batches of 10,000 entries to a full store: of the same pods, and of new pods in
// each round.
func BenchmarkAdd(b *testing.B) {
	const pods = 10_000 / maxWorkloads
	for name, renewed := range map[string]func(round int) string{
		"the same pods": func(int) string { return "" },
		"new pods":      func(round int) string { return fmt.Sprint("-", round) },
	} {
		b.Run(name, func(b *testing.B) {
			full, c := storeAt(noon)
			full.add(storm(c.Time, 0, maxObjects, ""))
			for round := 1; b.Loop(); round++ {
				b.StopTimer()
				c.Time = c.Add(time.Second)
				batch := storm(c.Time, round, pods, renewed(round))
				b.StartTimer()
				full.add(batch)
			}
			b.ReportMetric(float64(b.N*pods*maxWorkloads)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkSee reads a full store: something happened to all of its objects during the whole last
// hour.
func BenchmarkSee(b *testing.B) {
	full, c := storeAt(noon)
	for round := range int(horizon / slotLength) {
		c.Time = c.Add(slotLength)
		full.add(storm(c.Time, round, maxObjects, ""))
	}
	for name, query := range map[string]map[string][]string{
		"10 minutes":            {"minutes": {"10"}},
		"60 minutes":            {"minutes": {"60"}},
		"60 minutes and a name": {"minutes": {"60"}, "name": {"-7"}},
		"60 minutes and a text": {"minutes": {"60"}, "text": {"m"}},
	} {
		b.Run(name, func(b *testing.B) {
			f := filterFrom(query)
			for b.Loop() {
				full.see(f)
			}
		})
	}
}

// BenchmarkAnswers lists all workloads of a store in which each has a warning, and pods on 60 nodes that
// had many conditions.
func BenchmarkAnswers(b *testing.B) {
	full, _ := storeAt(noon)
	var all []entry
	for w := range maxWorkloads {
		for p := range 60 {
			all = append(all, podEvent(fmt.Sprint("fe-", w), fmt.Sprint("fe-", w, "-", p), "BackOff", warning, func(e *entry) { e.node = fmt.Sprint("n", p) }))
		}
	}
	for i := range maxElsewhere {
		id := fmt.Sprint("condition-", i)
		all = append(all, entry{
			id: id, event: id, at: noon.Add(-2 * time.Minute), of: traits{"Normal", "NodeNotReady", clusterScoped, ""}, occurrences: 1,
			chain: []object{{"node", "", fmt.Sprint("n", i%60)}},
		})
	}
	full.add(all)
	for b.Loop() {
		full.list(filterFrom(nil))
	}
}

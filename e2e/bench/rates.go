// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// fewestRecords is how many records each Collector gets at least: at low rates, this takes longer.
const fewestRecords = 60

func runRates(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(baseline, unbatched, direct, elected)
	if err != nil {
		return r, err
	}
	m := measurements{}
	if err := b.atEachRate(ctx, m, setups); err != nil {
		return r, err
	}
	r.Groups = m.groups(setups, func(setup string) (figures []figure) {
		for _, perSecond := range b.rates {
			figures = append(figures, rateFigures(setup, perSecond)...)
		}
		return figures
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods, and events for %s at each rate, and for longer until there are %d, at random
times: a readiness probe fails. Each fifth increases the count of an event. The Collector has seen an event of each pod before, so it knows all owners. kube_events also
emits the metric, and its records leave the Collector without a batch processor and without an exporter queue. With leader
election, it has the processors and the memory limit of the chart. k8s_events has the exporter's default queue, and once the
batch processor, which gathers records for 200 ms.`,
		thousands(b.size.pods), b.rateLength, fewestRecords)
	r.Table = ratesTable(b.rates, m)
	r.Notes = []string{
		fmt.Sprintf("Each value is the median of %d runs.", b.rounds),
		"Latency is the time from just before an event is written to the arrival of its record.",
		"An event counts as lost if it has no record 10 s after the last record arrived.",
	}
	return r, nil
}

func atRate(perSecond int) string { return ", " + thousands(perSecond) + " a second" }

// ratesShown are the figures of the table.
var ratesShown = []struct{ figure, unit string }{
	{cpuPerRecord, "µs"}, {peakRSS, "MiB"}, {latencyHalf, "ms"}, {latencyTail, "ms"},
	{recordBytes, "B"}, {rawBytes, "B"},
}

// ratesGoals are the greatest ratios to k8s_events with its batch processor.
func ratesGoals(perSecond int) map[string]float64 {
	goals := map[string]float64{peakRSS: 1.05, recordBytes: 1.75, cpuPerRecord: 0.45}
	switch {
	case perSecond < 10:
		goals[cpuPerRecord] = 1.3
		return goals
	case perSecond < 100:
		goals[cpuPerRecord] = 1
	}
	goals[latencyHalf], goals[latencyTail] = 1, 1
	return goals
}

func rateFigures(setup string, perSecond int) (figures []figure) {
	goals := ratesGoals(perSecond)
	for _, shown := range ratesShown {
		f := figure{Name: shown.figure, Unit: shown.unit}
		if bound, ok := goals[shown.figure]; ok && setup != unbatched {
			f.Goal = ratioAtMost(bound)
		}
		figures = append(figures, f)
	}
	if setup != unbatched {
		figures = append(figures, figure{Name: lost, Goal: oursAtMost(0)})
	}
	return suffixed(figures, atRate(perSecond))
}

// atEachRate measures the setups at each rate, with pods that they know.
func (b *benchmark) atEachRate(ctx context.Context, m measurements, setups []setup) error {
	for _, perSecond := range b.rates {
		n := max(fewestRecords, int(float64(perSecond)*b.rateLength.Seconds()))
		sz := b.size.with(n, n/5, perSecond)
		err := m.interleave(ctx, b, b.rounds, setups, atRate(perSecond), func(ctx context.Context, c runner) (values, error) {
			return b.loadOnce(ctx, c, sz, true)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ratesOf are the rows of the table for each rate.
var ratesOf = []struct{ setup, name string }{
	{baseline, "k8s_events, batches of 200 ms"}, {unbatched, "k8s_events"},
	{direct, "kube_events, `storage`"}, {elected, "kube_events, leader election"},
}

// ratesTable has a row for each rate and setup.
func ratesTable(rates []int, m measurements) string {
	lines := []string{"| events a second | |", "|--:|---|"}
	for _, shown := range ratesShown {
		lines[0], lines[1] = lines[0]+" "+shown.figure+" |", lines[1]+"--:|"
	}
	for _, perSecond := range rates {
		for i, row := range ratesOf {
			first := "| " + thousands(perSecond)
			if i > 0 {
				first = "|"
			}
			line := first + " | " + row.name + " |"
			for _, shown := range ratesShown {
				line += " " + decimal(median(m.of(row.setup, shown.figure+atRate(perSecond)))) + " " + shown.unit + " |"
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// newPods is how long the scenario unknown lasts, and its rate.
const (
	newPods          = 40 * time.Second
	newPodsPerSecond = 10
)

// runUnknown measures what looking up costs: nearly each event is about a pod that the Collector does not know.
func runUnknown(ctx context.Context, b *benchmark) (r result, err error) {
	n := min(b.size.pods, int(newPodsPerSecond*newPods.Seconds()))
	sz := b.size.with(n, n/5, newPodsPerSecond)
	r.Groups, err = b.compare(ctx, b.rounds, []string{baseline, direct}, func(string) []figure {
		return []figure{
			{Name: cpuPerRecord, Unit: "µs", Goal: ratioAtMost(1.3)},
			{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(1.05)},
			{Name: latencyHalf, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: latencyTail, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: lost, Goal: oursAtMost(0)},
			{Name: unowned, Goal: oursAtMost(0)},
			{Name: ownerRequests},
		}
	}, func(ctx context.Context, c runner) (values, error) { return b.loadOnce(ctx, c, sz, false) })
	r.Text = fmt.Sprintf(`A real API server has %s pods of %s Deployments, and gets %s events at %d a second, at random times: %s new events,
each about another pod, and updates. The Collector knows no owner before.`,
		thousands(b.size.pods), thousands(b.size.deployments), thousands(n), newPodsPerSecond, thousands(n-n/5))
	return r, err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
)

// fewestRecords is how many records each Collector gets at least: at low rates, this takes longer.
const fewestRecords = 60

func runRates(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(direct, baseline)
	if err != nil {
		return r, err
	}
	m := measurements{}
	if err := b.atEachRate(ctx, m, setups); err != nil {
		return r, err
	}
	r.Groups = m.groups(setups, func(string) (figures []figure) {
		for _, perSecond := range b.rates {
			figures = append(figures, rateFigures(perSecond)...)
		}
		return figures
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods, and events for %s at each rate, and for longer until there are %d. Each fifth
increases the count of an event. The Collector has seen an event of each pod before, so it knows all owners. kube_events has
storage and direct delivery, and also emits the metric. k8s_events has the batch processor and the exporter's default queue.`,
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
	{cpuPerRecord, "µs"}, {peakRSS, "MiB"}, {latencyHalf, "ms"}, {latencyTail, "ms"}, {recordBytes, "B"},
}

func rateFigures(perSecond int) (figures []figure) {
	for _, shown := range ratesShown {
		figures = append(figures, figure{Name: shown.figure, Unit: shown.unit})
	}
	return suffixed(append(figures, figure{Name: lost, Goal: oursAtMost(0)}), atRate(perSecond))
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

// ratesOf are the rows of the table: the baseline, and the receiver as recommended.
var ratesOf = []struct{ setup, name string }{{baseline, "k8s_events"}, {direct, kubeEventsReceiver}}

// ratesTable has a row for each rate and Collector.
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

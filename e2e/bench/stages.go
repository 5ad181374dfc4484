// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

var stagesScenario = scenario{
	name:  "stages",
	title: "In one process",
	run:   runStages,
}

const stagesText = `The work of the receiver for an event, without network and without storage: from the bytes of the watch (protobuf) to the bytes of OTLP,
with known owners, in batches of 100, on one core. ` + "`make bench`" + ` runs the same benchmarks, and those of owner lookups, for benchstat.`

func runStages(ctx context.Context, _ *benchmark) (result, error) {
	printed, err := goBenchmark(ctx, "./internal/session", "^BenchmarkStages$", "1s")
	if err != nil {
		return result{}, err
	}
	return result{Figures: stageFigures(printed), Text: stagesText}, nil
}

// goBenchmark runs Go benchmarks of a package of the receiver's module and returns what they print.
func goBenchmark(ctx context.Context, path, pattern, benchtime string) (string, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-cpu", "1", "-bench", pattern, "-benchtime", benchtime, path)
	command.Dir = ".."
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go test -bench %s %s: %w\n%s", pattern, path, err, printed)
	}
	return string(printed), nil
}

// staged matches a line of BenchmarkStages, whose B/op and allocs/op are those of a batch of 100.
var staged = regexp.MustCompile(`(?m)^BenchmarkStages/(\w+)\S*\s+\d+\s+[\d.]+ ns/op\s+([\d.]+) events/s\s+([\d.]+) ns/event\s+(\d+) B/op\s+(\d+) allocs/op$`)

func stageFigures(printed string) (figures []figure) {
	const batch = 100
	for _, found := range staged.FindAllStringSubmatch(printed, -1) {
		add := func(name, unit, text string, divisor float64, goal *goal) {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				figures = append(figures, figure{Name: found[1] + ": " + name, Unit: unit, Ours: []float64{value / divisor}, Goal: goal})
			}
		}
		if found[1] == "loop" {
			add("events a second", "1/s", found[2], 1, oursAtLeast(100_000))
		}
		add("time for an event", "µs", found[3], 1000, nil)
		add("allocations for an event", "", found[5], batch, nil)
		add("allocated for an event", "B", found[4], batch, nil)
	}
	return figures
}

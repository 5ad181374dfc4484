// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// setup is a Collector in one of the configurations that scenarios compare.
type setup struct {
	name   string // on the command line and in progress reports
	title  string // of its table
	column string // of its values in the table
	runs   int    // in all rounds together; 0: one in each round
	runner runner
	// configure adds to the runner what needs a directory; nil: nothing does.
	configure func(c runner, directory string) runner
}

// The names of the setups. All of them are compared with the first.
const (
	baseline = "k8s_events"
	inMemory = "memory"
	stored   = "storage"
	direct   = "direct"
	waiting  = "wait"
)

// withBatches ends the titles of setups with the batch processor.
const withBatches = ", batch processor"

// setups returns those with the given names, in the order of the names.
func (b *benchmark) setups(names ...string) (chosen []setup) {
	all := []setup{
		{name: baseline, title: "k8s_events", column: "k8s_events " + buildOf(b.theirs.binary, "k8seventsreceiver").Receiver, runner: b.theirs},
		{name: inMemory, title: "Without storage" + withBatches, column: kubeEventsReceiver, runner: b.ours},
		{name: stored, title: "With storage" + withBatches, column: kubeEventsReceiver, runner: b.ours, configure: runner.storing},
		{name: direct, title: "With storage, direct delivery (recommended)", column: kubeEventsReceiver, runner: b.ours, configure: runner.recommended},
		{name: waiting, title: "With storage, exporter queue with `wait_for_result`", column: kubeEventsReceiver, runner: b.ours, configure: runner.waiting},
	}
	for _, name := range names {
		if i := slices.IndexFunc(all, func(s setup) bool { return s.name == name }); i >= 0 {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

// onlyChosen returns the setups that the user chose; all of them if the user chose none.
func (b *benchmark) onlyChosen(setups []setup) ([]setup, error) {
	if b.only == "" {
		return setups, nil
	}
	var chosen []setup
	for name := range strings.SplitSeq(b.only, ",") {
		i := slices.IndexFunc(setups, func(s setup) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no setup %q in this scenario; there are: %s", name, strings.Join(namesOf(setups), ", "))
		}
		chosen = append(chosen, setups[i])
	}
	return chosen, nil
}

func namesOf(setups []setup) (names []string) {
	for _, s := range setups {
		names = append(names, s.name)
	}
	return names
}

// once measures the setup once, with a directory of its own for its storage.
func (s setup) once(ctx context.Context, measure func(context.Context, runner) (values, error)) (v values, err error) {
	c := s.runner
	c.label = s.name
	if s.configure == nil {
		return measure(ctx, c)
	}
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return measure(ctx, s.configure(c, directory))
}

// runsIn returns how often the setup is measured in a round: all runs are spread evenly.
func (s setup) runsIn(round, rounds int) int {
	if s.runs == 0 {
		return 1
	}
	return s.runs*(round+1)/rounds - s.runs*round/rounds
}

// together measures the setups at the same time, once: each needs less than a hundredth of a
// processor, for long.
func (b *benchmark) together(ctx context.Context, setups []setup, measure func(context.Context, runner) (values, error)) (map[string][]values, error) {
	of := make([]values, len(setups))
	all, ctx := errgroup.WithContext(ctx)
	for i, s := range setups {
		all.Go(func() (err error) {
			if of[i], err = s.once(ctx, measure); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			b.logf("%s: %v", s.name, of[i])
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	rounds := map[string][]values{}
	for i, s := range setups {
		rounds[s.name] = []values{of[i]}
	}
	return rounds, nil
}

// interleave measures the setups in turn, round after round, so that a disturbance of the machine
// affects all of them. It returns the values of each setup, round by round.
func (b *benchmark) interleave(ctx context.Context, setups []setup, measure func(context.Context, runner) (values, error)) (map[string][]values, error) {
	rounds := map[string][]values{}
	for round := range b.rounds {
		for _, s := range setups {
			for range s.runsIn(round, b.rounds) {
				v, err := s.once(ctx, measure)
				if err != nil {
					return nil, fmt.Errorf("round %d of %s: %w", round+1, s.name, err)
				}
				b.logf("round %d of %s: %v", round+1, s.name, v)
				rounds[s.name] = append(rounds[s.name], v)
			}
		}
	}
	return rounds, nil
}

// order measures the setups, in turn or together. It returns the values of each setup, round by round.
type order func(ctx context.Context, setups []setup, measure func(context.Context, runner) (values, error)) (map[string][]values, error)

// compare measures the setups in an order and compares each with the baseline. figures returns the
// rows of a setup; rows without values are left out.
func (b *benchmark) compare(ctx context.Context, in order, setups []setup, figures func(setup string) []figure, measure func(context.Context, runner) (values, error)) ([]group, error) {
	setups, err := b.onlyChosen(setups)
	if err != nil {
		return nil, err
	}
	rounds, err := in(ctx, setups, measure)
	if err != nil {
		return nil, err
	}
	var groups []group
	for _, s := range setups {
		if s.name == baseline && len(setups) > 1 {
			continue
		}
		groups = append(groups, s.group(figures(s.name), rounds))
	}
	return groups, nil
}

// group returns the table of a setup.
func (s setup) group(figures []figure, rounds map[string][]values) group {
	for _, v := range rounds[s.name] {
		add(figures, v, true)
	}
	for _, v := range rounds[baseline] {
		add(figures, v, false)
	}
	return group{Title: s.title, Column: s.column, Figures: measured(figures)}
}

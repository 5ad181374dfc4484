// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// setup is a Collector in one of the configurations that scenarios compare.
type setup struct {
	name   string // on the command line and in progress reports
	title  string // of its table
	column string // of its values in the table
	runner runner
	// configure adds to the runner what needs a directory; nil: nothing does.
	configure func(c runner, directory string) runner
}

// The names of the setups. All of them are compared with the first.
const (
	baseline   = "k8s_events"
	inMemory   = "memory"
	stored     = "storage"
	direct     = "direct"
	waiting    = "wait"
	newest     = "newest"
	theObjects = "k8sobjects"
)

// setups returns those with the given names, in the order of the names.
func (b *benchmark) setups(names ...string) (chosen []setup) {
	all := []setup{
		{name: baseline, title: "k8s_events", column: "k8s_events", runner: b.theirs},
		{name: inMemory, title: "Without storage, batch processor", column: "kube_events", runner: b.ours},
		{name: stored, title: "With storage, batch processor", column: "kube_events", runner: b.ours, configure: runner.storing},
		{name: direct, title: "With storage, direct delivery (recommended)", column: "kube_events", runner: b.ours, configure: runner.recommended},
		{name: waiting, title: "With storage, exporter queue with `wait_for_result`", column: "kube_events", runner: b.ours, configure: runner.waiting},
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

// interleave measures the setups in turn, round after round, so that a disturbance of the machine
// affects all of them. It returns the values of each setup, round by round.
func (b *benchmark) interleave(ctx context.Context, setups []setup, measure func(context.Context, runner) (values, error)) (map[string][]values, error) {
	rounds := map[string][]values{}
	for round := range b.rounds {
		for _, s := range setups {
			v, err := s.once(ctx, measure)
			if err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", round+1, s.name, err)
			}
			b.logf("round %d of %s: %v", round+1, s.name, v)
			rounds[s.name] = append(rounds[s.name], v)
		}
	}
	return rounds, nil
}

// compare measures the setups in turn and compares each with the baseline. figures returns the rows
// of a setup; rows without values are left out.
func (b *benchmark) compare(ctx context.Context, setups []setup, figures func(setup string) []figure, measure func(context.Context, runner) (values, error)) ([]group, error) {
	setups, err := b.onlyChosen(setups)
	if err != nil {
		return nil, err
	}
	rounds, err := b.interleave(ctx, setups, measure)
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

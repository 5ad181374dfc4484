// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var haScenario = scenario{name: "ha", title: "With leader election, as the chart installs it", run: runHA}

// The setups of the scenario have names that end with earlier if they have the build before.
const (
	elected = "ha"
	earlier = "-before"
)

// ha is how much the scenario ha does.
type ha struct {
	program, before string // two builds of the distribution; before: empty if nothing is compared
	rates           sizes  // events a second, one after the other
	outages         []outage
	parts           string // which of these to measure, with commas; empty: all
}

// everydayPart is the part of the scenario in which the leader does not end. The others are outages.
const everydayPart = "everyday"

var fullHA = ha{
	rates: sizes{1, 10, 100, 1000},
	outages: []outage{
		{part: "kill", name: "kill -9 of the only replica", live: 2000, load: size{observations: 10_000, updates: 2000, perSecond: 1000}, after: 5 * time.Second},
		{part: "restart", name: "restart of the only replica", live: 2000, orderly: true, load: outageLoad, after: 5 * time.Second},
		{part: "failover-2000", name: "kill -9 of the leader next to a standby, 2,000 live", live: 2000, standby: true, load: outageLoad, after: 5 * time.Second},
		{part: "failover-50000", name: "kill -9 of the leader next to a standby, 50,000 live", live: 50_000, standby: true, load: outageLoad, after: 5 * time.Second},
	},
}

// outageLoad goes on for longer than an outage, so that the next leader gets old and new events.
var outageLoad = size{observations: 4000, updates: 800, perSecond: 100}

func (h *ha) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&h.program, "distribution", filepath.Join("..", "build", "otelcol-kubeevents"), "the distribution's Collector, which the scenario ha measures")
	flags.StringVar(&h.before, "before", "", "another build of the distribution, with which the scenario ha compares it, in turn; the results are then not written")
	flags.StringVar(&h.parts, "ha-parts", "", "the parts of the scenario ha to measure, with commas (for example everyday,kill); empty: all")
	flags.Var(&h.rates, "ha-rates", "the events a second of the part everyday of the scenario ha; -rounds and -curve-length are for it, too")
}

// known returns an error if the user named a part that there is not.
func (h *ha) known() error {
	parts := []string{everydayPart}
	for _, o := range h.outages {
		parts = append(parts, o.part)
	}
	for part := range strings.SplitSeq(h.parts, ",") {
		if part != "" && !slices.Contains(parts, part) {
			return fmt.Errorf("the scenario ha has no part %q; it has: %s", part, strings.Join(parts, ", "))
		}
	}
	return nil
}

// has reports whether a part is to be measured.
func (h *ha) has(part string) bool {
	return h.parts == "" || slices.Contains(strings.Split(h.parts, ","), part)
}

func runHA(ctx context.Context, b *benchmark) (result, error) {
	setups, err := b.haSetups()
	if err := errors.Join(err, b.ha.known()); err != nil {
		return result{}, err
	}
	rounds := map[string][]values{}
	if b.ha.has(everydayPart) {
		if err := b.everyday(ctx, setups, rounds); err != nil {
			return result{}, err
		}
	}
	if err := b.endLeaders(ctx, setups, rounds); err != nil {
		return result{}, err
	}
	return result{
		Groups: b.haGroups(setups, rounds),
		Text: fmt.Sprintf(`The distribution's Collector has leader election, no storage, no batch processor and no exporter queue, as the chart's default `+"`mode: ha`"+`.
At each rate, one replica gets events of a simulated API server for %s, and for longer until there are %d, as in the section about load.

In the other rows, a real API server has %s pods, and 2,000 events unless the row names another number. The only replica is killed at %s events a second and
started again at once; it gets SIGTERM at %s a second and is started again; or it is the leader, and is killed at this rate next to a standby.`,
			b.curves.length, fewestRecords, thousands(b.size.pods), thousands(fullHA.outages[0].load.perSecond), thousands(outageLoad.perSecond)),
		Notes: []string{
			"The elector does not give its Lease up when it ends, so a next leader waits until nobody has renewed it for 15 s, and looks at it every 2 s to 4.4 s.",
			"An event counts as lost if it has no record 30 s after the last record arrived.",
		},
	}, nil
}

// haGroups returns a table for each setup, next to the build before if there is one.
func (b *benchmark) haGroups(setups []setup, rounds map[string][]values) (groups []group) {
	for _, s := range setups {
		if strings.HasSuffix(s.name, earlier) {
			continue
		}
		figures := b.haFigures(s.name)
		for _, v := range rounds[s.name] {
			add(figures, v, true)
		}
		for _, v := range rounds[s.name+earlier] {
			add(figures, v, false)
		}
		if figures = measured(figures); len(figures) > 0 {
			groups = append(groups, group{Title: s.title, Column: s.column, Figures: figures})
		}
	}
	return groups
}

// haSetups returns the chart's configuration; and next to the build before, also with storage. The
// two builds have their turns one after the other.
func (b *benchmark) haSetups() (setups []setup, _ error) {
	for _, s := range []setup{
		{name: elected, title: "Leader election", configure: runner.electing},
		{name: direct, title: "With storage, direct delivery", configure: runner.recommended},
	} {
		for _, suffix := range []string{earlier, ""} {
			program := b.ha.program
			if suffix == earlier {
				program = b.ha.before
			}
			if program == "" || s.name == direct && b.ha.before == "" {
				continue
			}
			one := s
			one.name, one.column, one.runner = s.name+suffix, kubeEventsReceiver, kubeEvents(program)
			setups = append(setups, one)
		}
	}
	return b.onlyChosen(setups)
}

// everyday measures the setups at each rate, with a simulated API server.
func (b *benchmark) everyday(ctx context.Context, setups []setup, rounds map[string][]values) error {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: replayPods}
	stream := recordSteady(fleet, b.curves.records(b.ha.rates.most()), time.Now().Add(time.Hour))
	at := *b
	at.curves.rounds = b.rounds
	of, err := at.measureEach(ctx, setups, b.ha.rates, func(perSecond int) steady {
		return steady{fleet: fleet, stream: stream, perSecond: perSecond}
	})
	for rate, some := range of {
		gather(rounds, some, atRate(rate))
	}
	return err
}

// endLeaders measures the setups with leader election while a leader ends.
func (b *benchmark) endLeaders(ctx context.Context, setups []setup, rounds map[string][]values) error {
	setups = slices.DeleteFunc(slices.Clone(setups), func(s setup) bool { return !strings.HasPrefix(s.name, elected) })
	for _, o := range b.ha.outages {
		if !b.ha.has(o.part) {
			continue
		}
		of, err := b.interleave(ctx, setups, func(ctx context.Context, c runner) (values, error) { return b.outageOnce(ctx, c, o) })
		if err != nil {
			return fmt.Errorf("%s: %w", o.part, err)
		}
		gather(rounds, of, ", "+o.name)
	}
	return nil
}

func atRate(perSecond int) string { return ", " + thousands(perSecond) + " a second" }

// gather adds what was measured to the rounds of each setup, under longer names.
func gather(rounds, more map[string][]values, suffix string) {
	for name, runs := range more {
		for _, v := range runs {
			rounds[name] = append(rounds[name], v.suffixed(suffix))
		}
	}
}

func (b *benchmark) haFigures(setup string) (figures []figure) {
	for _, rate := range b.ha.rates {
		some := []figure{{Name: cpuPerObservation, Unit: "µs"}, {Name: peakRSS, Unit: "MiB"}, {Name: latencyHalf, Unit: "ms"}, {Name: latencyTail, Unit: "ms"}, {Name: lost, Goal: oursAtMost(0)}}
		for i := range some {
			if b.ha.before != "" && some[i].Name != lost {
				some[i].Goal = ratioAtMost(1)
			}
			if b.ha.before != "" && some[i].Name == cpuPerObservation && setup == direct && rate <= 10 {
				some[i].Goal = ratioAtMost(0.85)
			}
			some[i].Name += atRate(rate)
		}
		figures = append(figures, some...)
	}
	for _, o := range b.ha.outages {
		figures = append(figures, o.figures()...)
	}
	return figures
}

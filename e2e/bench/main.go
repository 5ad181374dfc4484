// SPDX-License-Identifier: Apache-2.0

// Command bench compares the distribution's Collector, with the kube_events receiver, with a Collector
// that has contrib's k8s_events receiver and k8s_attributes processor: the same load, in turn, in each round
// (A B A B), on one machine. The absolute values depend on the machine. `make bench` measures what happens in one
// process.
//
//	go run ./bench [flags] [scenario...]
//
// It runs in the directory e2e, with what `make bench-e2e` builds. It prints the results. Without
// scenarios, it runs all of them. With -write, it also replaces their sections of
// test/PERFORMANCE.md; the checkout must be clean, because each section names its commit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, chosen, write, err := parse(arguments)
	if err != nil {
		return err
	}
	versions := b.versions(ctx)
	if write && strings.HasSuffix(versions.commit, dirty) {
		return fmt.Errorf("the working tree has changes (%s): commit them, because the page names the commit", versions.commit)
	}
	var errs []error
	for _, s := range chosen {
		if ctx.Err() != nil {
			break
		}
		if err := b.runOne(ctx, s, versions, write); err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: %w", s.name, err))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

func parse(arguments []string) (b *benchmark, chosen []scenario, write bool, err error) {
	build := func(path ...string) string { return filepath.Join(append([]string{"..", "build"}, path...)...) }
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	ours := flags.String("ours", build("otelcol-kubeevents"), "the Collector with kube_events")
	theirs := flags.String("theirs", build("comparison", "otelcol"), "the Collector with k8s_events")
	controlPlane := flags.String("controlplane", build("controlplane"), "the directory of etcd and kube-apiserver")
	short := flags.Bool("short", false, "use small clusters and loads, which only show that the scenarios work")
	only := flags.String("setups", "", "the setups to measure, with commas (for example k8s_events,direct); empty: all of the scenario")
	flags.BoolVar(&write, "write", false, "replace the sections of test/PERFORMANCE.md")
	rounds := flags.Int("rounds", 3, "how often each Collector is measured")
	if err := flags.Parse(arguments); err != nil {
		return nil, nil, false, err
	}
	if *rounds < 1 {
		return nil, nil, false, fmt.Errorf("-rounds is %d: it must be at least 1", *rounds)
	}
	b = &benchmark{
		lengths: fullLengths, ours: kubeEvents(*ours), theirs: k8sEvents(*theirs), controlPlane: *controlPlane,
		rounds: *rounds, only: *only,
	}
	if *short {
		b.lengths = shortLengths
	}
	if write && (*short || *only != "") {
		return nil, nil, false, errors.New("-write needs whole sections: use it without -short and -setups")
	}
	chosen, err = scenariosNamed(flags.Args())
	return b, chosen, write, err
}

// scenario is one comparison of Collectors.
type scenario struct {
	name  string // on the command line
	title string // in test/PERFORMANCE.md
	run   func(ctx context.Context, b *benchmark) (result, error)
}

// scenarios are in the order in which they are run and reported.
var scenarios = []scenario{
	{"rates", "At the rates of most clusters", runRates},
	{"unknown", "Pods that were never seen", runUnknown},
	{"day", "A part of a working day", runDay},
	{"idle", "When nothing happens", runIdle},
	{"load", "Under load", runLoad},
	{"kill", "kill -9 under load", runKill},
	{"ha", "When a leader ends", runHA},
	{"start", "Start with many existing events", runStart},
	{"namespaces", "A cold start in many namespaces", runNamespaces},
	{"hanging", "Next to a kind that hangs", runHanging},
	{"rollouts", "With problems, traces and the page", runRollouts},
	{"details", "Details on a working day", runDetails},
	{"crashes", "Details of many crash loops", runCrashes},
	{"owners", "The workload of other data", runOwners},
}

// scenariosNamed returns the scenarios with these names; all of them without names.
func scenariosNamed(names []string) (chosen []scenario, _ error) {
	if len(names) == 0 {
		return scenarios, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			var all []string
			for _, s := range scenarios {
				all = append(all, s.name)
			}
			return nil, fmt.Errorf("there is no scenario %q; there are: %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// runOne runs a scenario, and prints and writes its section.
func (b *benchmark) runOne(ctx context.Context, s scenario, versions versions, write bool) error {
	b.logf("%s: %s", s.name, s.title)
	r, err := s.run(ctx, b)
	if err != nil {
		return err
	}
	section := r.section(s, versions, time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(os.Stdout, "## %s\n\n%s\n\n", s.title, section)
	if !write {
		return nil
	}
	if now := commit(ctx); now != versions.commit {
		return fmt.Errorf("the checkout was at %s and is now at %s; the result is not written", versions.commit, now)
	}
	return keep(s, section)
}

// logf reports progress to the user.
func (*benchmark) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

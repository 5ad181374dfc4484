// SPDX-License-Identifier: Apache-2.0

// Command bench compares a whole Collector with the kube_events receiver with Collectors that have
// other receivers of events: the same load, in turn, in each round (A B C A B C), on one machine.
// The result is the ratio to contrib's k8s_events receiver. The absolute values depend on the
// machine. `make bench` measures what happens in one process.
//
//	go run ./bench [flags] [scenario...]
//
// It runs in the directory e2e, with what `make bench-e2e` builds. Without scenarios, it runs all of
// them on a clean commit, and writes test/PERFORMANCE.md from scratch. With scenarios, it prints their
// results. With -write, it also replaces their parts of the page, if the results of all other parts
// are in build/, from the same commit.
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
	"sync"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	benchmark
	docs  string
	data  string // the file with the results
	write bool   // the parts of the chosen scenarios
	all   bool   // no scenario is chosen
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, chosen, err := parse(arguments)
	if err != nil {
		return err
	}
	return o.runAll(ctx, chosen)
}

func parse(arguments []string) (*options, []scenario, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	ours, theirs := flags.String("ours", filepath.Join("..", "build", "measured", "otelcol"), "the Collector with kube_events"),
		flags.String("theirs", filepath.Join("..", "build", "comparison", "otelcol"), "the Collector with k8s_events")
	traced := flags.String("traced", filepath.Join("..", "build", "traced", "otelcol"), "the Collector with kube_events and kube_rollouts")
	flags.StringVar(&o.controlPlane, "controlplane", filepath.Join("..", "build", "controlplane"), "the directory of etcd and kube-apiserver")
	flags.StringVar(&o.docs, "docs", filepath.Join("..", "test"), "the directory of PERFORMANCE.md; empty: never write")
	flags.StringVar(&o.data, "results", filepath.Join("..", "build", "performance.json"), "the file that keeps the results, for -write")
	flags.BoolVar(&o.write, "write", false, "with scenarios: replace their parts of the page; the commit must be clean, and that of all other parts")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each Collector is measured")
	flags.StringVar(&o.profiles, "profile", "", "a directory for profiles of the Collectors under load; what is measured is then not kept")
	flags.StringVar(&o.only, "setups", "", "the setups to measure, with commas (for example k8s_events,direct); empty: all of the scenario")
	o.size, o.starts = fullSize, fullStarts
	o.playback = fullPlayback
	flags.DurationVar(&o.playback.idle, "idle-length", o.playback.idle, "how long the scenario idle measures each Collector")
	o.cold = fullCold
	o.hanging = fullHanging
	o.clusters = fullClusters
	o.listing = fullListing
	o.curves = fullCurves
	o.curves.addFlags(flags)
	o.day = fullDay
	o.day.addFlags(flags)
	o.backend = fullBackend
	o.kills = fullKills
	o.ha = fullHA
	o.ha.addFlags(flags)
	o.rollouts = fullRollouts
	o.rollouts.addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, nil, err
	}
	if o.rounds < 1 {
		return nil, nil, fmt.Errorf("-rounds is %d: it takes at least one", o.rounds)
	}
	o.ours, o.theirs, o.traced = kubeEvents(*ours), k8sEvents(*theirs), kubeEvents(*traced)
	o.all = flags.NArg() == 0
	chosen, err := scenariosNamed(flags.Args())
	return o, chosen, err
}

// runAll runs the scenarios. After a scenario that fails, it goes on with the next one.
func (o *options) runAll(ctx context.Context, chosen []scenario) error {
	versions := o.versions(ctx)
	p, err := o.openPage(versions)
	if err != nil {
		return err
	}
	var errs []error
	for len(chosen) > 0 && ctx.Err() == nil && !errors.Is(errors.Join(errs...), errCheckout) {
		n := atOnce(chosen)
		errs = append(errs, o.runSome(ctx, chosen[:n], versions, p))
		chosen = chosen[n:]
	}
	return errors.Join(errs...)
}

// atOnce returns how many of the first scenarios run at the same time.
func atOnce(chosen []scenario) int {
	n := slices.IndexFunc(chosen, func(s scenario) bool { return !s.isLight })
	if n < 0 {
		n = len(chosen)
	}
	return max(1, n)
}

// runSome runs scenarios at the same time. It writes their results at once, so that a failure of a
// later scenario costs nothing.
func (o *options) runSome(ctx context.Context, some []scenario, versions versions, p *page) error {
	results, errs := make([]result, len(some)), make([]error, len(some))
	var all sync.WaitGroup
	for i, s := range some {
		all.Go(func() {
			o.logf("%s: %s", s.name, s.title)
			results[i], errs[i] = s.run(ctx, &o.benchmark)
		})
	}
	all.Wait()
	for i, s := range some {
		if errs[i] == nil {
			errs[i] = o.keep(ctx, s, results[i], versions, p)
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("scenario %s: %w", s.name, errs[i])
		}
	}
	return errors.Join(errs...)
}

// errCheckout ends a run: later results would not be from the commit of the first ones.
var errCheckout = errors.New("the checkout has changed during the measurement")

// openPage returns the page that the results are written to; nil if nothing is written.
func (o *options) openPage(versions versions) (*page, error) {
	if o.docs == "" || o.profiles != "" || !o.all && !o.write {
		return nil, nil // A profile slows down what it measures.
	}
	if o.only != "" {
		return nil, errors.New("-setups leaves out parts of the page: use it only with scenarios and without -write")
	}
	if o.ha.before != "" {
		return nil, errors.New("-before compares two builds of the receiver, and the page does not: use it only with scenarios and without -write")
	}
	return newPage(o.docs, o.data, versions, o.all)
}

// keep prints the result of a scenario and writes it to the page, if there is one.
func (o *options) keep(ctx context.Context, s scenario, r result, versions versions, p *page) error {
	r.Title, r.Date, r.Versions = s.title, time.Now().UTC().Format(time.DateOnly), versions
	if err := printTable(os.Stdout, r); err != nil {
		return err
	}
	if p == nil {
		return nil
	}
	if now := commit(ctx); now != versions.Commit {
		return fmt.Errorf("%w: it was at %s and is now at %s; the result is not written", errCheckout, versions.Commit, now)
	}
	return p.keep(s.name, r)
}

// SPDX-License-Identifier: Apache-2.0

// Command mutants puts deliberate faults into a copy of the receiver, one at a time, and shows what
// finds each of them: the random environments of test/simulation, or else a test.
//
//	go run ./test/simulation/mutants [-only TEXT] [-seeds N] [-write FILE]
//
// It exits with 1 if nothing finds a mutant. With -generated, it tries faults that a program makes: see
// generate.go. With -small-limits, it shows instead that the receiver keeps its promises where its
// limits are reached: see limits.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the command line asks for.
type options struct {
	only      string
	seeds     int
	limit     time.Duration
	generated int
	most      time.Duration
	write     string
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "try only the mutants whose name or file contains this text, "+
		"or one of several with | between")
	flag.IntVar(&o.seeds, "seeds", 750, "how many random environments one mutant may need; "+
		"0 with -generated: only the tests of its package try it")
	flag.DurationVar(&o.limit, "limit", 4*time.Minute, "how long the environments of one mutant may take")
	small := flag.Bool("small-limits", false, "no mutants: run the environments with small limits, "+
		"in which the receiver keeps all promises")
	flag.IntVar(&o.generated, "generated", 0, "try about this many mutants of each package that a program makes, "+
		"instead of those of the list")
	flag.DurationVar(&o.most, "for", 45*time.Minute, "after this time, begin with no other generated mutant")
	flag.StringVar(&o.write, "write", "", "replace the table in this file, between the comments "+
		"mutants: begin and mutants: end; with -generated: generated: begin and generated: end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case *small:
		err = runSmall(ctx, o.seeds)
	case o.generated > 0:
		err = runGenerated(ctx, o)
	default:
		err = run(ctx, o)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	// All are checked before the first one runs: that takes no time, and a run takes long.
	if err := checkTexts(changes()); err != nil {
		return err
	}
	chosen := choose(mutants(), o.only)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name or file contains %q", o.only)
	}
	s, err := newSearch(ctx, map[string]string{}, o.seeds, o.limit)
	if err != nil {
		return err
	}
	defer s.close()
	results := s.all(ctx, chosen)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.write != "" {
		if err := replaceTable(o.write, "mutants", table(results)); err != nil {
			return err
		}
	}
	return notFound(results)
}

func runGenerated(ctx context.Context, o options) error {
	contents := map[string]string{}
	all, err := generate(contents)
	if err != nil {
		return err
	}
	chosen := sample(choose(all, o.only), o.generated)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name or file contains %q", o.only)
	}
	s, err := newSearch(ctx, contents, o.seeds, o.limit)
	if err != nil {
		return err
	}
	defer s.close()
	results, err := s.searchGenerated(ctx, chosen, o.seeds, o.most)
	if err != nil {
		return err
	}
	if o.write == "" {
		_, _ = fmt.Fprint(os.Stdout, generatedTable(all, results))
	} else if err := replaceTable(o.write, "generated", generatedTable(all, results)); err != nil {
		return err
	}
	return notFound(results)
}

func choose(all []mutant, only string) (chosen []mutant) {
	for _, m := range all {
		isMeant := func(text string) bool { return strings.Contains(m.name+"\n"+m.file, text) }
		if slices.ContainsFunc(strings.Split(only, "|"), isMeant) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// checkTexts returns an error that names every mutant that does not fit the code.
func checkTexts(changes []change) (errs error) {
	for _, m := range changes {
		content, err := m.read()
		if err == nil {
			_, err = m.apply(content)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// notFound returns an error that names the mutants that nothing found; nil: there are none.
func notFound(results []*result) error {
	var names []string
	for _, r := range results {
		if r.by == "" && reasonOf(r.mutant) == "" {
			names = append(names, r.mutant.name)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%d of %d mutants were not found:\n%s", len(names), len(results), strings.Join(names, "\n"))
}

// SPDX-License-Identifier: Apache-2.0

// Command mutants puts deliberate faults into a copy of the receiver, one at a time, and shows
// that the random environments of internal/simulation find each of them.
//
//	go run ./internal/simulation/mutants [-only TEXT] [-seeds N] [-write FILE]
//
// It exits with 1 if a mutant is not found. With -small-limits, it shows instead that the receiver
// keeps its promises where its limits are reached: see limits.go.
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

func main() {
	only := flag.String("only", "", "try only the mutants whose name or file contains this text, "+
		"or one of several with | between")
	seeds := flag.Int("seeds", 10_000, "how many random environments one mutant may need")
	limit := flag.Duration("limit", 20*time.Minute, "how long the environments of one mutant may take")
	small := flag.Bool("small-limits", false, "no mutants: run the environments with small limits, "+
		"in which the receiver keeps all promises")
	generate := flag.Int("generated", 0, "try this many mutants that a program makes, instead of those of the list")
	write := flag.String("write", "", "replace the table in this file, between the comments "+
		"mutants: begin and mutants: end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case *small:
		err = runSmall(ctx, *seeds)
	case *generate > 0:
		err = runGenerated(ctx, *generate, *seeds, *only)
	default:
		err = run(ctx, *only, *seeds, *limit, *write)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, seeds int, limit time.Duration, write string) error {
	chosen := choose(only)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name or file contains %q", only)
	}
	// All are checked before the first one runs: that takes no time, and a run takes long.
	if err := checkTexts(chosen); err != nil {
		return err
	}
	s, err := newSearch(ctx, seeds, limit)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.build(ctx, s.unchanged); err != nil {
		return err
	}
	results := s.all(ctx, chosen)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(os.Stdout, "\n%s", table(results))
	if write != "" {
		if err := replaceTable(write, table(results)); err != nil {
			return err
		}
	}
	return notFound(results)
}

func choose(only string) (chosen []mutant) {
	for _, m := range mutants() {
		isMeant := func(text string) bool { return strings.Contains(m.name+"\n"+m.file, text) }
		if slices.ContainsFunc(strings.Split(only, "|"), isMeant) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// checkTexts returns an error that names every mutant that does not fit the code.
func checkTexts(chosen []mutant) (errs error) {
	for _, m := range chosen {
		content, err := m.read()
		if err == nil {
			_, err = m.apply(content)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// notFound returns an error that names the mutants that were not found; nil: all were.
func notFound(results []result) error {
	var names []string
	for _, r := range results {
		if !r.found() {
			names = append(names, r.mutant.name)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%d of %d mutants were not found: %s",
		len(names), len(results), strings.Join(names, "; "))
}

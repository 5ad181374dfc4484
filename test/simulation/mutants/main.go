// SPDX-License-Identifier: Apache-2.0

// Command mutants puts faults into a copy of the receiver, one at a time, and shows what finds each
// of them: the tests of its package, the random environments of test/simulation, or another test.
//
//	go run ./test/simulation/mutants [-each N] [-only TEXT] [-seeds N] [-for TIME]
//
// A program makes the faults: see generate.go. The command exits with 1 if nothing finds a mutant.
// Such a mutant needs a test, or the code is not needed, or the mutant is no fault: it is equivalent,
// or only makes the receiver slower.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	each := flag.Int("each", 20, "how many mutants of each package to try, about")
	only := flag.String("only", "", "try only the mutants whose name or file contains this text, "+
		"or one of several with | between")
	seeds := flag.Int("seeds", 100, "how many random environments may find a mutant; "+
		"0: only the tests of its package try it")
	limit := flag.Duration("for", 45*time.Minute, "after this time, begin with no other mutant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *each, *seeds, *only, *limit)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, each, seeds int, only string, limit time.Duration) error {
	contents := map[string]string{}
	all, err := generate(contents)
	if err != nil {
		return err
	}
	chosen := sample(choose(all, only), each)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name or file contains %q", only)
	}
	s, err := newSearch(ctx, contents, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	results, err := s.all(ctx, chosen, limit)
	if err != nil {
		return err
	}
	if missed := report(results); missed != nil {
		return fmt.Errorf("nothing found these:\n%s", strings.Join(missed, "\n"))
	}
	return nil
}

// report prints how many mutants of each package were found, and returns the names of the others.
func report(results []*result) (missed []string) {
	tried, found := map[string]int{}, map[string]int{}
	for _, r := range results {
		tried[r.mutant.packageOf()]++
		if r.by != "" {
			found[r.mutant.packageOf()]++
		} else {
			missed = append(missed, r.mutant.name)
		}
	}
	for _, directory := range slices.Sorted(maps.Keys(tried)) {
		fmt.Fprintf(os.Stdout, "%s: %d of %d (%d %%)\n", directory, found[directory], tried[directory], 100*found[directory]/tried[directory])
	}
	fmt.Fprintf(os.Stdout, "%d of %d mutants were found\n", len(results)-len(missed), len(results))
	return missed
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

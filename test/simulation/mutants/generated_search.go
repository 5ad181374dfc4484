// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// generatedSearch tries generated mutants. One build has all of them. A run of the unchanged receiver
// notes which mutants would have gone another way in it. Only these runs can find a mutant, so the
// search repeats only these.
type generatedSearch struct {
	*search
	tests map[string]*notes // by the directory of the package
	seeds []*notes          // of the environments 1, 2, …
	most  int               // number of environments for one mutant
}

// notes are what a run of the unchanged receiver has noted.
type notes struct {
	differs map[int]bool // numbers of mutants
	took    time.Duration
	slow    []string // tests that take longer than a second
}

// slowTests reads them from the output of tests.
func slowTests(output []byte) (slow []string) {
	for _, passed := range passes.FindAllSubmatch(output, -1) {
		if seconds, err := strconv.ParseFloat(string(passed[2]), 64); err == nil && seconds > 1 {
			slow = append(slow, string(passed[1]))
		}
	}
	return slow
}

var passes = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.*)s\)$`)

// searchGenerated tries the mutants, each of them in environments up to a number in which it differs.
// After the limit, it begins with no other mutant, and returns the results of those before.
func (s *search) searchGenerated(ctx context.Context, chosen []mutant, environments int, limit time.Duration) ([]*result, error) {
	g := &generatedSearch{s, map[string]*notes{}, make([]*notes, environments), s.seeds}
	for _, m := range chosen {
		for _, directory := range g.directories(m) {
			if err := g.noteTests(ctx, directory); err != nil {
				return nil, err
			}
		}
	}
	if environments > 0 {
		if err := g.noteEnvironments(ctx); err != nil {
			return nil, err
		}
	}
	results, start := make([]*result, len(chosen)), time.Now()
	err := onAllCPUs(len(chosen), func(i int) error {
		began := time.Now()
		if ctx.Err() != nil || began.Sub(start) > limit {
			return ctx.Err()
		}
		results[i] = g.one(ctx, chosen[i])
		fmt.Fprintf(os.Stdout, "%d/%d %s (%s): %v (%v)\n", i+1, len(chosen), chosen[i].name, chosen[i].at, results[i],
			time.Since(began).Round(time.Second/10))
		return ctx.Err()
	})
	return slices.DeleteFunc(results, func(r *result) bool { return r == nil }), err
}

// directories returns those whose tests can find a mutant. Without environments, only the tests of its
// package count.
func (g *generatedSearch) directories(m mutant) []string {
	if len(g.seeds) == 0 {
		return []string{m.packageOf()}
	}
	return above(m.packageOf())
}

// onAllCPUs calls do with the numbers below n, as often at the same time as there are CPUs.
func onAllCPUs(n int, do func(i int) error) error {
	next, errs := make(chan int), make([]error, n)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}

// wholeReceiver are the packages whose tests run whole receivers.
var wholeReceiver = []string{".", "internal/session", "internal/position", "internal/leadership", "internal/health"}

// above returns the directory of a package, those above it, and those whose tests run whole receivers.
func above(directory string) (all []string) {
	for ; directory != "."; directory = filepath.Dir(directory) {
		all = append(all, directory)
	}
	for _, directory := range wholeReceiver {
		if !slices.Contains(all, directory) {
			all = append(all, directory)
		}
	}
	return all
}

func (g *generatedSearch) noteTests(ctx context.Context, directory string) error {
	if g.tests[directory] != nil {
		return nil
	}
	if _, err := g.unchanged.build(ctx, directory); err != nil {
		return err
	}
	var slow []string
	n, err := g.note(func(env ...string) error {
		failed, output, err := g.unchanged.test(ctx, directory, env, "-test.v", "-test.timeout", testLimit.String())
		if failed != "" {
			err = fmt.Errorf("without a mutant, the tests of %s fail, too: %s", directory, failed)
		}
		slow = slowTests(output)
		return err
	})
	n.slow = slow
	g.tests[directory] = n
	fmt.Fprintf(os.Stdout, "the tests of %s take %v\n", directory, n.took.Round(time.Second/10))
	return err
}

func (g *generatedSearch) noteEnvironments(ctx context.Context) error {
	if _, err := g.unchanged.build(ctx, simulation); err != nil {
		return err
	}
	began := time.Now()
	err := onAllCPUs(len(g.seeds), func(i int) (err error) {
		g.seeds[i], err = g.note(func(env ...string) error {
			v, err := g.unchanged.breaks(ctx, i+1, 1, env...)
			if v.promise != "" {
				err = fmt.Errorf("without a mutant, seed %d breaks %q: %s", i+1, v.promise, v.how)
			}
			return err
		})
		return err
	})
	fmt.Fprintf(os.Stdout, "%d environments take %v\n", len(g.seeds), time.Since(began).Round(time.Second))
	return err
}

// note returns what a run notes that gets the environment variables.
func (g *generatedSearch) note(run func(env ...string) error) (*notes, error) {
	file, err := os.CreateTemp(g.directory, "notes")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer file.Close()
	began := time.Now()
	err = run(notesVariable + "=" + file.Name())
	n := &notes{differs: map[int]bool{}, took: time.Since(began)}
	content, readErr := os.ReadFile(file.Name())
	for line := range strings.Lines(string(content)) {
		if number, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			n.differs[number] = true
		}
	}
	return n, errors.Join(err, readErr)
}

// one tries the tests of the mutant's package, then environments, and then the tests of the packages
// above it.
func (g *generatedSearch) one(ctx context.Context, m mutant) *result {
	found := &result{mutant: m, seeds: "not tried"}
	for i, directory := range g.directories(m) {
		if i == 1 {
			found.err = g.simulateOne(ctx, found)
		}
		if found.err == nil && found.by == "" {
			found.err = g.testOne(ctx, directory, found)
		}
	}
	return found
}

func (g *generatedSearch) testOne(ctx context.Context, directory string, found *result) error {
	n := g.tests[directory]
	if !n.differs[found.mutant.number] {
		return nil
	}
	env, limit := []string{found.mutant.env()}, []string{"-test.timeout", (10*time.Second + 5*n.took).String()}
	slow := "^(" + strings.Join(n.slow, "|") + ")$"
	failed, _, err := g.unchanged.test(ctx, directory, env, append(limit, "-test.skip", slow)...)
	if failed == "" && err == nil && n.slow != nil {
		failed, _, err = g.unchanged.test(ctx, directory, env, append(limit, "-test.run", slow)...)
	}
	if failed != "" {
		found.by, found.how, found.directory = fmt.Sprintf("`%s` in %s", failed, directory), "fails", directory
	}
	return err
}

func (g *generatedSearch) simulateOne(ctx context.Context, found *result) error {
	tried := 0
	for i, n := range g.seeds {
		if tried == g.most {
			break
		}
		if !n.differs[found.mutant.number] {
			continue
		}
		tried++
		v, err := g.unchanged.breaks(ctx, i+1, 1, found.mutant.env())
		if err != nil {
			return err
		}
		if v.promise != "" {
			found.by, found.how, found.seeds = v.promise, v.how, strconv.Itoa(i+1)
			found.directory = simulation
			return nil
		}
	}
	found.seeds = fmt.Sprintf("not found in %d", tried)
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// result is what the search for one mutant has come to.
type result struct {
	mutant mutant
	by     string // the promise that broke, or the test that failed; empty: nothing found it
	err    error  // why there was no search; nil: there was one
}

func (r *result) String() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.by == "":
		return "NOTHING finds it"
	}
	return r.by
}

// search tries mutants. One build has all of them. A run of the unchanged receiver notes which mutants
// would have gone another way in it. Only these runs can find a mutant, so the search repeats only
// these.
type search struct {
	*build
	tests map[string]*notes // by the directory of the package
	seeds []*notes          // of the environments 1, 2, …
}

// notes are what a run of the unchanged receiver has noted.
type notes struct {
	differs map[int]bool // numbers of mutants
	took    time.Duration
}

// newSearch returns a search whose receiver has these contents of files.
func newSearch(ctx context.Context, contents map[string]string, seeds int) (*search, error) {
	b, err := newBuild(ctx, contents)
	return &search{b, map[string]*notes{}, make([]*notes, seeds)}, err
}

// all tries the mutants. After the limit, it begins with no other one, and returns the results of those
// before.
func (s *search) all(ctx context.Context, chosen []mutant, limit time.Duration) ([]*result, error) {
	for _, m := range chosen {
		for _, directory := range s.directories(m) {
			if err := s.noteTests(ctx, directory); err != nil {
				return nil, err
			}
		}
	}
	if err := s.noteEnvironments(ctx); err != nil {
		return nil, err
	}
	results, start := make([]*result, len(chosen)), time.Now()
	err := onAllCPUs(len(chosen), func(i int) error {
		began := time.Now()
		if ctx.Err() != nil || began.Sub(start) > limit {
			return ctx.Err()
		}
		results[i] = s.one(ctx, chosen[i])
		fmt.Fprintf(os.Stdout, "%d/%d %s (line %d): %v (%v)\n", i+1, len(chosen), chosen[i].name, chosen[i].line, results[i],
			time.Since(began).Round(time.Second/10))
		return ctx.Err()
	})
	return slices.DeleteFunc(results, func(r *result) bool { return r == nil }), err
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

// wholes are the packages whose tests run whole receivers, or make problems of whole stories, by the directory of
// the parts.
var wholes = map[string][]string{
	"internal":     {".", "internal/loop", "internal/progress", "internal/election", "internal/health"},
	"distribution": {"distribution/internal/incident", "distribution/internal/problem"},
}

// directories returns those whose tests can find a mutant: of its package, and those that run all parts together.
// Without environments, only the tests of its package count.
func (s *search) directories(m mutant) []string {
	all := []string{m.packageOf()}
	if len(s.seeds) == 0 {
		return all
	}
	part, _, _ := strings.Cut(filepath.ToSlash(m.file), "/")
	for _, directory := range wholes[part] {
		if !slices.Contains(all, directory) {
			all = append(all, directory)
		}
	}
	return all
}

func (s *search) noteTests(ctx context.Context, directory string) error {
	if s.tests[directory] != nil {
		return nil
	}
	n, err := s.note(func(env ...string) error {
		failed, err := s.test(ctx, directory, env, testLimit)
		if failed != "" {
			err = fmt.Errorf("without a mutant, the tests of %s fail, too: %s", directory, failed)
		}
		return err
	})
	s.tests[directory] = n
	fmt.Fprintf(os.Stdout, "the tests of %s take %v\n", directory, n.took.Round(time.Second/10))
	return err
}

func (s *search) noteEnvironments(ctx context.Context) error {
	if len(s.seeds) == 0 {
		return nil
	}
	if _, err := s.binary(ctx, simulation); err != nil { // Before several need it at the same time.
		return err
	}
	return onAllCPUs(len(s.seeds), func(i int) (err error) {
		s.seeds[i], err = s.note(func(env ...string) error {
			broken, err := s.breaks(ctx, i+1, env...)
			if broken != "" {
				err = fmt.Errorf("without a mutant, seed %d breaks %q", i+1, broken)
			}
			return err
		})
		return err
	})
}

// note returns what a run notes that gets the environment variables.
func (s *search) note(run func(env ...string) error) (*notes, error) {
	file, err := os.CreateTemp(s.directory, "notes")
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

// one tries the tests of the mutant's package, then environments, and then the tests that run all
// parts.
func (s *search) one(ctx context.Context, m mutant) *result {
	found := &result{mutant: m}
	for i, directory := range s.directories(m) {
		if i == 1 && found.err == nil && found.by == "" {
			found.by, found.err = s.simulate(ctx, m)
		}
		if found.err == nil && found.by == "" {
			found.by, found.err = s.testsOf(ctx, directory, m)
		}
	}
	return found
}

// testsOf returns the test of a package that finds the mutant.
func (s *search) testsOf(ctx context.Context, directory string, m mutant) (string, error) {
	n := s.tests[directory]
	if !n.differs[m.number] {
		return "", nil
	}
	failed, err := s.test(ctx, directory, []string{m.env()}, 10*time.Second+5*n.took)
	if failed != "" {
		failed += " in " + directory
	}
	return failed, err
}

// simulate returns the promise that the mutant breaks in an environment.
func (s *search) simulate(ctx context.Context, m mutant) (string, error) {
	for i, n := range s.seeds {
		if !n.differs[m.number] {
			continue
		}
		broken, err := s.breaks(ctx, i+1, m.env())
		if err != nil {
			return "", err
		}
		if broken != "" {
			return fmt.Sprintf("%q in environment %d", broken, i+1), nil
		}
	}
	return "", nil
}

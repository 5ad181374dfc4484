// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// result is what the search for one mutant has come to.
type result struct {
	mutant mutant
	by     string // the promise that broke, or the test that failed; empty: nothing found it
	how    string // the promise broke
	seeds  string // that were needed, or tried
	err    error  // why there was no search; nil: there was one

	directory string // of the package whose tests found it, or of the simulation
}

// search tries mutants one after the other.
type search struct {
	directory string    // temporary
	runtime   overlay   // with which runs replay exactly
	unchanged *receiver // the one without a fault; it has the generated mutants if they are tried
	seeds     int
	limit     time.Duration
}

// newSearch returns a search whose unchanged receiver has these contents of files.
func newSearch(ctx context.Context, contents map[string]string, seeds int, limit time.Duration) (*search, error) {
	directory, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	s := &search{directory: directory, seeds: seeds, limit: limit}
	err = s.makeRuntime(ctx)
	if err == nil {
		s.unchanged, err = s.receiver(contents)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// makeRuntime makes the overlay of the runtime.
func (s *search) makeRuntime(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "run", "./"+simulation+"/runtimeoverlay", s.directory)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make the runtime of the simulation: %w\n%s", err, output)
	}
	written, err := os.ReadFile(filepath.Join(s.directory, "overlay.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(written, &s.runtime)
}

func (s *search) close() { _ = os.RemoveAll(s.directory) }

// all searches for the mutants until the context ends, and reports the progress.
func (s *search) all(ctx context.Context, chosen []mutant) (results []*result) {
	for i, m := range chosen {
		began := time.Now()
		r := s.one(ctx, m)
		if ctx.Err() != nil {
			return results
		}
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(os.Stdout, "%d/%d %s: %v (%v)\n", i+1, len(chosen), m.name, r, took)
		results = append(results, r)
	}
	return results
}

func (r *result) String() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.by == "":
		return "NOTHING finds it"
	}
	return fmt.Sprintf("%s: %.160s (seeds: %s)", r.by, r.how, r.seeds)
}

// finder is one thing that can find a mutant of a receiver. It notes what it has found.
type finder func(ctx context.Context, r *receiver, found *result) error

// one runs what can find the mutant: random environments, and the tests of its package, of those above
// it, and of the receiver.
func (s *search) one(ctx context.Context, m mutant) *result {
	found := &result{mutant: m, seeds: "not tried"}
	r, err := s.receiver(map[string]string{}, m.change)
	if err != nil {
		found.err = err
		return found
	}
	defer r.remove()
	finders := []finder{s.simulate}
	for _, directory := range above(m.packageOf()) {
		finders = append(finders, s.testsOf(directory))
	}
	for _, find := range finders {
		if found.err = find(ctx, r, found); found.err != nil || found.by != "" {
			break
		}
	}
	return found
}

// simulate runs environments until one of them breaks a promise that the unchanged receiver keeps
// at that seed.
func (s *search) simulate(ctx context.Context, r *receiver, found *result) error {
	if _, err := r.build(ctx, simulation); err != nil { // That does not count.
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	found.seeds = fmt.Sprintf("not found in %d", s.seeds)
	for first := 1; first <= s.seeds; {
		b, err := r.breaks(limited, first, s.seeds-first+1)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			found.seeds = fmt.Sprintf("not found in %v", s.limit)
			return nil
		case err != nil || b.promise == "":
			return err
		}
		unchanged, err := s.unchanged.breaks(ctx, b.seed, 1)
		if err != nil {
			return err
		}
		if unchanged.promise == "" {
			found.seeds, found.by, found.how = strconv.Itoa(b.seed), b.promise, b.how
			return nil
		}
		fmt.Fprintf(os.Stdout, "seed %d does not count: the unchanged receiver breaks %q: %.160s\n",
			b.seed, unchanged.promise, unchanged.how)
		first = b.seed + 1
	}
	return nil
}

// testsOf returns the finder that runs the tests of a directory's package.
func (s *search) testsOf(directory string) finder {
	return func(ctx context.Context, r *receiver, found *result) error {
		failed, err := r.fails(ctx, directory, testLimit)
		if err != nil || failed == "" {
			return err
		}
		unchanged, err := s.unchanged.fails(ctx, directory, testLimit)
		if err == nil && unchanged != "" {
			err = fmt.Errorf("without a mutant, the tests of %s fail, too: %s", directory, unchanged)
		}
		found.by, found.how = fmt.Sprintf("`%s` in %s", failed, directory), "fails"
		return err
	}
}

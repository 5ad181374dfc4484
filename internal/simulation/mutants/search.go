// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	// simulation is the package that runs the random environments.
	simulation = "internal/simulation"
	// replays is how often a seed runs again at which a mutant broke a promise, and enough how
	// often the mutant has to break one then: Go's scheduler and the receiver's jitter stay random.
	replays, enough = 10, 3
)

// result is what the search for one mutant has come to.
type result struct {
	mutant  mutant
	seeds   int    // that were needed, or tried
	promise string // that broke; empty: the mutant was not found
	how     string // in the simulation's words
	times   int    // how often one broke; replays if the process crashed
	err     error  // why there was no search; nil: there was one
}

func (r *result) found() bool { return r.promise != "" }

// search tries mutants one after the other.
type search struct {
	directory string // temporary
	unchanged string // the test binary of the receiver without a fault
	seeds     int
	limit     time.Duration
}

func newSearch(ctx context.Context, seeds int, limit time.Duration) (*search, error) {
	directory, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	unchanged := filepath.Join(directory, "unchanged.test")
	s := &search{directory: directory, unchanged: unchanged, seeds: seeds, limit: limit}
	if err := s.build(ctx, s.unchanged); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *search) close() { _ = os.RemoveAll(s.directory) }

// all searches for the mutants until the context ends, and reports the progress.
func (s *search) all(ctx context.Context, chosen []mutant) (results []result) {
	for i, m := range chosen {
		began := time.Now()
		r, err := s.one(ctx, m)
		if ctx.Err() != nil {
			return results
		}
		r.mutant, r.err = m, err
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(os.Stdout, "%d/%d it %s: %v (%v)\n", i+1, len(chosen), m.name, r, took)
		results = append(results, r)
	}
	return results
}

func (r result) String() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.found():
		return fmt.Sprintf("found at seed %d: %s: %.160s", r.seeds, r.promise, r.how)
	default:
		return fmt.Sprintf("not found in %d", r.seeds)
	}
}

// one builds a mutant and runs environments until one of them breaks a promise that the unchanged
// receiver keeps at that seed.
func (s *search) one(ctx context.Context, m mutant) (result, error) {
	overlay, err := m.overlay(s.directory)
	if err != nil {
		return result{}, err
	}
	binary := filepath.Join(s.directory, "mutant.test")
	if err := s.build(ctx, binary, "-overlay", overlay); err != nil {
		return result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	for first := 1; first <= s.seeds; {
		r, err := breaks(limited, binary, first, s.seeds-first+1)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return result{}, fmt.Errorf("not decided within %v", s.limit)
		case err != nil || !r.found():
			return result{seeds: s.seeds}, err
		}
		objection, err := s.objection(ctx, binary, r.seeds)
		if err != nil || objection == "" {
			return r, err
		}
		fmt.Fprintf(os.Stdout, "seed %d does not count: %s\n", r.seeds, objection)
		first = r.seeds + 1
	}
	return result{seeds: s.seeds}, nil
}

// objection says why a seed shows nothing about a mutant; it is empty if the seed does. The
// unchanged receiver has to keep all promises at the seed, and the mutant must not break one by
// chance.
func (s *search) objection(ctx context.Context, binary string, seed int) (string, error) {
	r, err := breaks(ctx, s.unchanged, seed, 1, "-test.count", strconv.Itoa(replays))
	if err != nil {
		return "", err
	}
	if r.found() {
		return fmt.Sprintf("the unchanged receiver breaks %q: %.160s", r.promise, r.how), nil
	}
	r, err = breaks(ctx, binary, seed, 1, "-test.count", strconv.Itoa(replays))
	if err != nil || r.times >= enough {
		return "", err
	}
	return fmt.Sprintf("the mutant breaks a promise in %d of %d replays", r.times, replays), nil
}

// build makes a test binary of the simulation.
func (s *search) build(ctx context.Context, binary string, flags ...string) error {
	arguments := append([]string{"test", "-c", "-o", binary}, flags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "./"+simulation)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the simulation: %w\n%s", err, output)
	}
	return nil
}

// breaks runs environments from a seed on, until one breaks a promise.
func breaks(ctx context.Context, binary string, first, seeds int, more ...string) (result, error) {
	arguments := append([]string{"-test.run", "^TestRandomEnvironments$", "-stop"}, more...)
	arguments = append(arguments, "-first", strconv.Itoa(first), "-seeds", strconv.Itoa(seeds))
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir = simulation
	output, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return result{}, ctx.Err()
	case err == nil:
		return result{}, nil
	}
	r := resultOf(output, first)
	if !r.found() {
		return result{}, fmt.Errorf("the simulation failed, and names no seed: %w\n%s", err, tail(output))
	}
	return r, nil
}

var (
	violation = regexp.MustCompile(`seed (\d+) breaks "([^"]+)":? ?(.*)`)
	crash     = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)`)
	bubble    = regexp.MustCompile(`synctest bubble (\d+)`)
)

// resultOf reads what a failed run found. A crash names no seed, but the bubble that it happened in:
// each seed has one, and they are numbered from the first seed on. With two workers, two seeds may
// have each other's number.
func resultOf(output []byte, first int) result {
	if found := violation.FindSubmatch(output); found != nil {
		seed, _ := strconv.Atoi(string(found[1]))
		times := len(violation.FindAll(output, -1))
		return result{seeds: seed, promise: string(found[2]), how: string(found[3]), times: times}
	}
	crashed := crash.FindSubmatchIndex(output)
	if crashed == nil {
		return result{}
	}
	number := 1
	if in := bubble.FindSubmatch(output[crashed[0]:]); in != nil {
		number, _ = strconv.Atoi(string(in[1]))
	}
	how := string(output[crashed[2]:crashed[3]])
	return result{seeds: first + number - 1, promise: "it ends", how: how, times: replays}
}

// tail returns the end of an output that is too long to be read.
func tail(output []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

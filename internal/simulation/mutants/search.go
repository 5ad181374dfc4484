// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// simulation is the package that runs the random environments.
const simulation = "internal/simulation"

// result is what the search for one mutant has come to.
type result struct {
	mutant  mutant
	seeds   int    // that were needed, or tried
	promise string // that broke; empty: the mutant was not found
	how     string // in the simulation's words
	err     error  // why there was no search; nil: there was one
}

func (r *result) found() bool { return r.promise != "" }

// search tries mutants one after the other.
type search struct {
	directory string  // temporary
	runtime   overlay // with which runs replay exactly
	unchanged string  // the test binary of the receiver without a fault
	seeds     int
	limit     time.Duration
}

func newSearch(ctx context.Context, seeds int, limit time.Duration) (*search, error) {
	directory, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	s := &search{directory: directory, unchanged: filepath.Join(directory, "unchanged.test"), seeds: seeds, limit: limit}
	if err := s.makeRuntime(ctx); err != nil {
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
	binary := filepath.Join(s.directory, "mutant.test")
	if err := s.build(ctx, binary, m); err != nil {
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
		unchanged, err := breaks(ctx, s.unchanged, r.seeds, 1)
		if err != nil || !unchanged.found() {
			return r, err
		}
		fmt.Fprintf(os.Stdout, "seed %d does not count: the unchanged receiver breaks %q: %.160s\n",
			r.seeds, unchanged.promise, unchanged.how)
		first = r.seeds + 1
	}
	return result{seeds: s.seeds}, nil
}

// build makes a test binary of the simulation of a receiver with changes.
func (s *search) build(ctx context.Context, binary string, changes ...mutant) error {
	overlay, err := overlayOf(changes, s.directory, s.runtime)
	if err != nil {
		return err
	}
	return s.buildWith(ctx, binary, overlay)
}

// buildWith makes a test binary of the simulation with the runtime in which runs replay exactly.
func (s *search) buildWith(ctx context.Context, binary, overlay string) error {
	root := filepath.Join(s.directory, "goroot")
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "go"),
		"test", "-c", "-vet=off", "-o", binary, "-overlay", overlay, "./"+simulation)
	command.Env = append(os.Environ(), "GOROOT="+root)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the simulation: %w\n%s", err, output)
	}
	return nil
}

// breaks runs environments from a seed on, with variables, until one breaks a promise.
func breaks(ctx context.Context, binary string, first, seeds int, variables ...string) (result, error) {
	command := exec.CommandContext(ctx, binary, "-test.run", "^TestRandomEnvironments$", "-test.timeout", "0",
		"-stop", "-first", strconv.Itoa(first), "-seeds", strconv.Itoa(seeds))
	command.Dir, command.Env = simulation, append(os.Environ(), variables...)
	// The end of the context also ends the processes that it has started.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return result{}, ctx.Err()
	case err == nil:
		return result{}, nil
	}
	r := resultOf(output)
	if !r.found() {
		return result{}, fmt.Errorf("the simulation failed, and names no seed: %w\n%s", err, tail(output))
	}
	return r, nil
}

var violation = regexp.MustCompile(`seed (\d+) breaks "([^"]+)":? ?(.*)`)

// resultOf reads what a failed run found: the first seed, of those that ran at the same time.
func resultOf(output []byte) (first result) {
	for _, found := range violation.FindAllSubmatch(output, -1) {
		seed, _ := strconv.Atoi(string(found[1]))
		if !first.found() || seed < first.seeds {
			first = result{seeds: seed, promise: string(found[2]), how: string(found[3])}
		}
	}
	return first
}

// tail returns the end of an output that is too long to be read.
func tail(output []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

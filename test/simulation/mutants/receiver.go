// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// simulation is the package that runs the random environments.
	simulation = "test/simulation"
	// testLimit is how long the tests of a package may take, ten times longer than on two idle cores.
	testLimit = 5 * time.Minute
	// mostMemory is how much memory a program may reserve.
	mostMemory = 6 << 30
)

// changesOfRuns let the processes of the simulation be the same mutant, and end one that does not end.
var changesOfRuns = []change{
	{
		"is a mutant in each process", simulation + "/process_test.go",
		`"KUBECONFIG=/dev/fd/3"`,
		`"` + numberVariable + `=" + os.Getenv("` + numberVariable + `"), ` +
			`"` + notesVariable + `=" + os.Getenv("` + notesVariable + `"), "KUBECONFIG=/dev/fd/3"`,
	},
	{"does not wait long", simulation + "/process_test.go", "timeLimit = 5 * time.Minute", "timeLimit = 30 * time.Second"},
}

// receiver is a receiver with changed files: its simulation, and the tests of its packages. All are
// built when they are needed: the simulation with the runtime in which runs replay exactly, the tests
// with that of Go.
type receiver struct {
	root      string // of the Go that makes the simulation
	directory string // of the overlays and the binaries
}

// receiver returns one whose files have these contents, and changes of them.
func (s *search) receiver(contents map[string]string, changes ...change) (*receiver, error) {
	if err := applyAll(append(changes, changesOfRuns...), contents); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(s.directory, "receiver")
	if err != nil {
		return nil, err
	}
	return &receiver{filepath.Join(s.directory, "goroot"), directory}, errors.Join(
		writeOverlay(contents, directory, "overlay.json", overlay{map[string]string{}}),
		writeOverlay(contents, directory, "exact.json", s.runtime))
}

func (r *receiver) remove() { _ = os.RemoveAll(r.directory) }

// build returns the test binary of a package; empty: it has no tests.
func (r *receiver) build(ctx context.Context, directory string) (string, error) {
	binary := filepath.Join(r.directory, strings.ReplaceAll(directory, "/", "_")+".test")
	_, err := os.Stat(binary)
	if !errors.Is(err, fs.ErrNotExist) {
		return binary, err
	}
	program, overlay, env := "go", "overlay.json", os.Environ()
	if directory == simulation {
		program, overlay, env = filepath.Join(r.root, "bin", "go"), "exact.json", append(env, "GOROOT="+r.root)
	}
	command := exec.CommandContext(ctx, program, "test", "-c", "-vet=off",
		"-o", binary, "-overlay", filepath.Join(r.directory, overlay), "./"+directory)
	command.Env = env
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the tests of %s: %w\n%s", directory, err, output)
	}
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return binary, nil
}

// fails returns the test that fails in a package; empty: none does.
func (r *receiver) fails(ctx context.Context, directory string, limit time.Duration, env ...string) (string, error) {
	failed, _, err := r.test(ctx, directory, env, "-test.timeout", limit.String())
	return failed, err
}

// test runs tests of a package. It returns the one that fails, and the output.
func (r *receiver) test(ctx context.Context, directory string, env []string, arguments ...string) (string, []byte, error) {
	binary, err := r.build(ctx, directory)
	if err != nil || binary == "" {
		return "", nil, err
	}
	output, err := r.run(ctx, env, directory, binary, append(arguments, "-test.failfast")...)
	failed, err := r.failed(ctx, directory, output, err)
	return failed, output, err
}

// failed reads the test that failed from the output of a run that ended with an error.
func (r *receiver) failed(ctx context.Context, directory string, output []byte, err error) (string, error) {
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	for line := range strings.Lines(string(output)) {
		if name, failed := strings.CutPrefix(line, "--- FAIL: "); failed || isCrash(line) {
			name, _, _ = strings.Cut(name, " (")
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("the tests of %s failed, and name no test: %w\n%s", directory, err, tail(output))
}

func isCrash(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// run runs a program. The end of the context also ends the processes that it has started. A program
// crashes that takes more memory than mostMemory: a loop that does not end can take all of it.
func (r *receiver) run(ctx context.Context, env []string, directory, binary string, arguments ...string) ([]byte, error) {
	limited := []string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, mostMemory>>10), binary}
	command := exec.CommandContext(ctx, "sh", append(limited, arguments...)...)
	command.Dir, command.Env = directory, append(os.Environ(), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command.CombinedOutput()
}

// violation is a promise that a seed broke; without a promise: none did.
type violation struct {
	seed    int
	promise string
	how     string // in the simulation's words
}

// breaks runs environments from a seed on, until one breaks a promise.
func (r *receiver) breaks(ctx context.Context, first, seeds int, env ...string) (violation, error) {
	binary, err := r.build(ctx, simulation)
	if err != nil {
		return violation{}, err
	}
	output, err := r.run(ctx, env, simulation, binary, "-test.run", "^TestRandomEnvironments$", "-test.timeout", "0",
		"-stop", "-first", strconv.Itoa(first), "-seeds", strconv.Itoa(seeds))
	if err == nil || ctx.Err() != nil {
		return violation{}, ctx.Err()
	}
	v := firstOf(output)
	if v.promise == "" {
		return violation{}, fmt.Errorf("the simulation failed, and names no seed: %w\n%s", err, tail(output))
	}
	return v, nil
}

var breaks = regexp.MustCompile(`seed (\d+) breaks "([^"]+)":? ?(.*)`)

// firstOf reads what a failed run found: the first seed, of those that ran at the same time.
func firstOf(output []byte) (first violation) {
	for _, found := range breaks.FindAllSubmatch(output, -1) {
		seed, _ := strconv.Atoi(string(found[1]))
		if first.promise == "" || seed < first.seed {
			first = violation{seed, string(found[2]), string(found[3])}
		}
	}
	return first
}

// tail returns the end of an output that is too long to be read.
func tail(output []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

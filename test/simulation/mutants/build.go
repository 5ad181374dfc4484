// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// overlay is what `go test -overlay` reads.
type overlay struct{ Replace map[string]string }

// build is a receiver with all mutants: its simulation, and the tests of its packages. All are built
// when they are needed: the simulation with the runtime in which runs replay exactly, the tests with
// that of Go.
type build struct{ directory string } // of the overlays and the binaries

// newBuild returns one whose files have these contents.
func newBuild(ctx context.Context, contents map[string]string) (*build, error) {
	directory, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	b := &build{directory}
	command := exec.CommandContext(ctx, "go", "run", "./"+simulation+"/runtimeoverlay", directory)
	if output, err := command.CombinedOutput(); err != nil {
		return b, fmt.Errorf("cannot make the runtime of the simulation: %w\n%s", err, output)
	}
	written, err := os.ReadFile(b.overlayOf(simulation))
	if err != nil {
		return b, err
	}
	var exact overlay
	if err := errors.Join(json.Unmarshal(written, &exact), changeSimulation(contents)); err != nil {
		return b, err
	}
	return b, errors.Join(b.writeOverlay(contents, "", overlay{map[string]string{}}), b.writeOverlay(contents, simulation, exact))
}

func (b *build) close() { _ = os.RemoveAll(b.directory) }

// overlayOf returns the file with the overlay for the tests of a package.
func (b *build) overlayOf(directory string) string {
	if directory == simulation {
		return filepath.Join(b.directory, "overlay.json")
	}
	return filepath.Join(b.directory, "tests.json")
}

// changeSimulation lets the processes of the simulation be the same mutant, and end one that does not end.
func changeSimulation(contents map[string]string) error {
	file := simulation + "/process_test.go"
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const environment, limit = `"KUBECONFIG=/dev/fd/3"`, "timeLimit = 5 * time.Minute"
	pass := func(variable string) string { return fmt.Sprintf(`"%s=" + os.Getenv("%s"), `, variable, variable) }
	changed := strings.Replace(string(content), environment, pass(numberVariable)+pass(notesVariable)+environment, 1)
	if !strings.Contains(changed, numberVariable) || !strings.Contains(changed, limit) {
		return fmt.Errorf("%s does not have %s and %s: adapt changeSimulation", file, environment, limit)
	}
	contents[file] = strings.Replace(changed, limit, "timeLimit = 2 * time.Minute", 1)
	return nil
}

// writeOverlay writes the changed contents, and the file that lets `go test -overlay` use them and
// those of another overlay.
func (b *build) writeOverlay(contents map[string]string, directory string, other overlay) error {
	replace := maps.Clone(other.Replace)
	for file, content := range contents {
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(b.directory, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[original], []byte(content), 0o600); err != nil {
			return err
		}
	}
	written, err := json.Marshal(overlay{replace})
	if err != nil {
		return err
	}
	return os.WriteFile(b.overlayOf(directory), written, 0o600)
}

// binary returns the test binary of a package; empty: it has no tests.
func (b *build) binary(ctx context.Context, directory string) (string, error) {
	binary := filepath.Join(b.directory, strings.ReplaceAll(directory, "/", "_")+".test")
	_, err := os.Stat(binary)
	if !errors.Is(err, fs.ErrNotExist) {
		return binary, err
	}
	program, env := "go", os.Environ()
	if directory == simulation {
		root := filepath.Join(b.directory, "goroot")
		program, env = filepath.Join(root, "bin", "go"), append(env, "GOROOT="+root)
	}
	command := exec.CommandContext(ctx, program, "test", "-c", "-vet=off",
		"-o", binary, "-overlay", b.overlayOf(directory), "./"+directory)
	command.Env = env
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the tests of %s: %w\n%s", directory, err, output)
	}
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return binary, nil
}

// test runs tests of a package. It returns the one that fails, and the output.
func (b *build) test(ctx context.Context, directory string, env []string, arguments ...string) (string, []byte, error) {
	output, err := b.run(ctx, env, directory, append(arguments, "-test.failfast")...)
	if err == nil || ctx.Err() != nil {
		return "", output, ctx.Err()
	}
	if found := failure.FindSubmatch(output); found != nil {
		return cmp.Or(string(found[1]), string(found[0])), output, nil
	}
	return "", output, fmt.Errorf("the tests of %s failed, and name no test: %w\n%s", directory, err, tail(output))
}

var failure = regexp.MustCompile(`(?m)^(?:--- FAIL: (\S+) .*|(?:panic|fatal error): .*)$`)

// breaks returns the promise that an environment breaks; empty: none.
func (b *build) breaks(ctx context.Context, seed int, env ...string) (string, error) {
	output, err := b.run(ctx, env, simulation, "-test.run", "^TestRandomEnvironments$", "-test.timeout", "0",
		"-first", strconv.Itoa(seed), "-seeds", "1")
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	if found := broken.FindSubmatch(output); found != nil {
		return string(found[1]), nil
	}
	return "", fmt.Errorf("the simulation failed, and names no seed: %w\n%s", err, tail(output))
}

var broken = regexp.MustCompile(`seed \d+ breaks "([^"]+)"`)

// run runs the tests of a package. The end of the context also ends the processes that they have started. A program
// crashes that takes more memory than mostMemory: a loop that does not end can take all of it.
func (b *build) run(ctx context.Context, env []string, directory string, arguments ...string) ([]byte, error) {
	binary, err := b.binary(ctx, directory)
	if err != nil || binary == "" {
		return nil, err
	}
	limited := []string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, mostMemory>>10), binary}
	command := exec.CommandContext(ctx, "sh", append(limited, arguments...)...)
	command.Dir, command.Env = directory, append(os.Environ(), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command.CombinedOutput()
}

// tail returns the end of an output that is too long to be read.
func tail(output []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

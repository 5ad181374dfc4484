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

// build is a receiver with all mutants: its simulation, and the tests of its packages. All are built
// when they are needed, with the runtime in which runs of the simulation replay exactly.
type build struct{ directory string } // of the overlay and the binaries

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
	return b, b.addToOverlay(contents)
}

func (b *build) close() { _ = os.RemoveAll(b.directory) }

// overlay returns the file that `go test -overlay` reads.
func (b *build) overlay() string { return filepath.Join(b.directory, "overlay.json") }

// addToOverlay adds files with these contents to the overlay of the runtime.
func (b *build) addToOverlay(contents map[string]string) error {
	var overlay struct{ Replace map[string]string }
	written, err := os.ReadFile(b.overlay())
	if err := errors.Join(err, json.Unmarshal(written, &overlay)); err != nil {
		return err
	}
	for file, content := range contents {
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		overlay.Replace[original] = filepath.Join(b.directory, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(overlay.Replace[original], []byte(content), 0o600); err != nil {
			return err
		}
	}
	if written, err = json.Marshal(overlay); err != nil {
		return err
	}
	return os.WriteFile(b.overlay(), written, 0o600)
}

// binary returns the test binary of a package; empty: it has no tests.
func (b *build) binary(ctx context.Context, directory string) (string, error) {
	binary := filepath.Join(b.directory, strings.ReplaceAll(directory, "/", "_")+".test")
	_, err := os.Stat(binary)
	if !errors.Is(err, fs.ErrNotExist) {
		return binary, err
	}
	root := filepath.Join(b.directory, "goroot")
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "go"), "test", "-c", "-vet=off",
		"-o", binary, "-overlay", b.overlay(), "./"+directory)
	command.Env = append(os.Environ(), "GOROOT="+root)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the tests of %s: %w\n%s", directory, err, output)
	}
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return binary, nil
}

// test runs the tests of a package, and returns the one that fails; empty: none.
func (b *build) test(ctx context.Context, directory string, env []string, limit time.Duration) (string, error) {
	output, err := b.run(ctx, env, directory, "-test.timeout", limit.String(), "-test.failfast")
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	if found := failure.FindSubmatch(output); found != nil {
		return cmp.Or(string(found[1]), string(found[0])), nil
	}
	return "", fmt.Errorf("the tests of %s failed, and name no test: %w\n%s", directory, err, tail(output))
}

var failure = regexp.MustCompile(`(?m)^(?:--- FAIL: (\S+) .*|(?:panic|fatal error): .*)$`)

// breaks returns the promise that an environment breaks; empty: none.
func (b *build) breaks(ctx context.Context, seed int, env ...string) (string, error) {
	output, err := b.run(ctx, env, simulation, "-test.run", "^TestRandomEnvironments$",
		"-test.timeout", "0", "-limit", "2m", "-first", strconv.Itoa(seed), "-seeds", "1")
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

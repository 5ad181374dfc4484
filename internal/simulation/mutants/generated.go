// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mutated are the packages, with those below them, that get generated mutants: the receiver's core.
var mutated = []string{"session", "leadership", "position", "memory", "delivery", "queue", "watch"}

const (
	module       = "github.com/kubeevents/kubeeventsreceiver"
	mutationPath = "internal/mutation" // The package is in the overlay only.
	mutation     = `package mutation

import (
	"os"
	"strconv"
)

var number, _ = strconv.Atoi(os.Getenv("` + variable + `"))

// Is reports whether the program is the mutant with this number.
func Is(n int) bool { return n == number }
`
)

// changesOfRuns let the processes of the simulation be the same mutant, and end one that does not end.
var changesOfRuns = []mutant{
	{
		"is a mutant in each process", simulation + "/process_test.go",
		`command.Env = []string{"KUBECONFIG`,
		`command.Env = []string{"` + variable + `=" + os.Getenv("` + variable + `"), "KUBECONFIG`,
	},
	{"does not wait long", simulation + "/process_test.go", "timeLimit = 5 * time.Minute", "timeLimit = time.Minute"},
}

// sample searches for generated mutants.
type sample struct {
	*search
	mutants []generated        // all of them
	tests   map[string]program // by the directory of the package; "." is the receiver's
}

// program is the tests of a package.
type program struct {
	binary string
	limit  time.Duration // A mutant that takes longer does not end.
}

// runGenerated tries n of the generated mutants: random environments, then the tests of the mutant's
// package, then those of the receiver. It prints those that nothing finds.
func runGenerated(ctx context.Context, n, seeds int, only string) error {
	s, err := newSearch(ctx, seeds, 10*time.Minute)
	if err != nil {
		return err
	}
	defer s.close()
	g := sample{search: s, tests: map[string]program{}}
	if err := g.generate(ctx); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(g.mutants), func(m generated) bool { return !strings.Contains(m.String(), only) })
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:min(n, len(chosen))]
	var survivors []generated
	for i, m := range chosen {
		began := time.Now()
		by := g.foundBy(ctx, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(os.Stdout, "%d/%d %v: %s (%v)\n", i+1, len(chosen), m, by, time.Since(began).Round(time.Second))
		if by == nothing {
			survivors = append(survivors, m)
		}
	}
	fmt.Fprintf(os.Stdout, "\n%d of %d generated mutants are found, of %d that exist. Nothing finds:\n",
		len(chosen)-len(survivors), len(chosen), len(g.mutants))
	for _, m := range survivors {
		fmt.Fprintln(os.Stdout, m)
	}
	return nil
}

func (m generated) String() string {
	return fmt.Sprintf("%s:%d (%d) %s", strings.TrimPrefix(m.file, "internal/"), m.line, m.number, m.what)
}

// generate makes all mutants and builds the programs that have them.
func (g *sample) generate(ctx context.Context) error {
	gen := &generator{files: token.NewFileSet()}
	changes := map[string]string{mutationPath + "/mutation.go": mutation}
	packages := map[string]bool{".": true}
	for _, directory := range mutated {
		err := filepath.WalkDir(filepath.Join("internal", directory), func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			before := len(gen.mutants)
			content, err := gen.mutate(file, module+"/"+mutationPath)
			if len(gen.mutants) > before {
				packages[filepath.Dir(file)] = true
				changes[file] = content
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	g.mutants = gen.mutants
	return g.buildAll(ctx, changes, packages)
}

func (g *sample) buildAll(ctx context.Context, changes map[string]string, packages map[string]bool) error {
	if err := applyAll(changesOfRuns, changes); err != nil {
		return err
	}
	exact, err := writeOverlay(changes, g.directory, g.runtime)
	if err != nil {
		return err
	}
	if err := g.buildWith(ctx, g.unchanged, exact); err != nil {
		return err
	}
	usual, err := writeOverlay(changes, g.directory, overlay{})
	if err != nil {
		return err
	}
	for directory := range packages {
		binary := filepath.Join(g.directory, strings.ReplaceAll(directory, "/", "_")+".test")
		command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", usual, "./"+directory)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build the tests of %s: %w\n%s", directory, err, output)
		}
		if _, err := os.Stat(binary); err != nil {
			continue // The package has no tests.
		}
		began := time.Now()
		g.tests[directory] = program{binary, 5 * time.Minute}
		if by := g.test(ctx, directory, 0); by != nothing {
			return fmt.Errorf("without a mutant: %s", by)
		}
		g.tests[directory] = program{binary, 20*time.Second + 5*time.Since(began)}
	}
	return nil
}

const nothing = "NOTHING finds it"

// foundBy says what finds a mutant.
func (g *sample) foundBy(ctx context.Context, m generated) string {
	if by := g.simulate(ctx, m.number); by != nothing {
		return by
	}
	if by := g.test(ctx, filepath.Dir(m.file), m.number); by != nothing {
		return by
	}
	return g.test(ctx, ".", m.number)
}

// test runs the tests of a directory's package.
func (g *sample) test(ctx context.Context, directory string, number int) string {
	tests, hasTests := g.tests[directory]
	if !hasTests {
		return nothing
	}
	command := exec.CommandContext(ctx, tests.binary, "-test.timeout", tests.limit.String(), "-test.failfast")
	command.Dir, command.Env = directory, append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Sprintf("tests of %s: %s", directory, failure(output))
	}
	return nothing
}

// failure returns the line that says which test failed.
func failure(output []byte) string {
	for line := range strings.Lines(string(output)) {
		if name, failed := strings.CutPrefix(line, "--- FAIL: "); failed || strings.HasPrefix(line, "panic: ") {
			return strings.TrimSpace(name)
		}
	}
	return string(tail(output))
}

// simulate runs random environments until one breaks a promise.
func (g *sample) simulate(ctx context.Context, number int) string {
	limited, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	r, err := breaks(limited, g.unchanged, 1, g.seeds, fmt.Sprintf("%s=%d", variable, number))
	switch {
	case err != nil:
		return "simulation: " + err.Error()
	case !r.found():
		return nothing
	}
	return "simulation: " + r.String()
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var (
	seeds     = flag.Int("seeds", 60, "how many random environments to run")
	firstSeed = flag.Uint64("first", 1, "the first seed")
	oneSeed   = flag.Uint64("seed", 0, "run this seed only, and print its story")
	stop      = flag.Bool("stop", false, "stop at the first seed that breaks a promise")
	// Many seeds mostly fail for one reason, and a story takes many runs.
	stories = flag.Int("stories", 3, "how many stories of seeds that break a promise to print")
	table   = flag.Bool("table", false, "print progress, and at the end faults × promises")
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetTraceback("all")      // A run that does not end tells where it hangs.
	debug.SetGCPercent(400)        // Runs are short, and leave little behind.
	klog.SetLogger(logr.Discard()) // client-go's leader election logs there.
	directory, err := os.MkdirTemp("", "simulation")
	if err == nil {
		var path string
		path, err = Kubeconfig(directory)
		_ = os.Setenv("KUBECONFIG", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func TestRandomEnvironments(t *testing.T) {
	if *oneSeed != 0 {
		replay(t, *oneSeed)
		return
	}
	report := &Report{}
	began := time.Now()
	t.Run("workers", func(t *testing.T) {
		var next atomic.Uint64
		next.Store(*firstSeed)
		for worker := range min(maxWorkers, runtime.GOMAXPROCS(0)) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				work(t, NewWorker(worker), &next, report, began)
			})
		}
	})
	printProgress(report, began)
	if *table {
		report.Write(os.Stdout)
	}
}

// printProgress writes to stdout: the test's log needs -v and comes at the end.
func printProgress(report *Report, began time.Time) {
	took := time.Since(began)
	fmt.Fprintf(os.Stdout, "%d environments in %v, %.0f per second; %d broke a promise\n",
		report.Runs, took.Round(time.Second), float64(report.Runs)/took.Seconds(), report.Broken)
}

// work runs seeds until there are no more.
func work(t *testing.T, w Worker, next *atomic.Uint64, report *Report, began time.Time) {
	for {
		seed := next.Add(1) - 1
		if seed >= *firstSeed+uint64(*seeds) || *stop && t.Failed() {
			return
		}
		outcome := runSeed(t, w, seed)
		report.Add(outcome)
		if *table && report.Runs%250 == 0 {
			printProgress(report, began)
		}
		if len(outcome.Violations) == 0 {
			continue
		}
		first := outcome.Violations[0]
		// make test fails for what can be replayed; make simulate and make mutants show everything.
		if !*table && !*stop && breaksAgain(t, w, seed, first.Promise) == 0 {
			fmt.Fprintf(os.Stdout, "seed %d broke %q by chance, and in none of %d replays: %s\n",
				seed, first.Promise.Name, replays, first.Text)
			continue
		}
		t.Errorf("seed %d breaks %q: %s", seed, first.Promise.Name, first.Text)
		if *stop {
			next.Store(*firstSeed + uint64(*seeds))
			return
		}
		if report.Broken <= *stories {
			run := func(p Plan) *Outcome { return w.Run(t, p, Scenario{}) }
			Shrink(run, outcome).Print(os.Stdout)
		}
	}
}

// runSeed names the seed if the run panics.
func runSeed(t *testing.T, w Worker, seed uint64) *Outcome {
	defer hangs(seed).Stop()
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, p))
		}
	}()
	return w.Run(t, NewPlan(seed), Scenario{})
}

// hangs ends the process with all stacks if a run does not end: in a bubble, time stands still
// while something spins.
func hangs(seed uint64) *time.Timer {
	return time.AfterFunc(time.Minute, func() {
		panic(fmt.Sprintf("seed %d does not end: it spins, or waits for something outside", seed))
	})
}

// replays is how often a seed that breaks a promise runs again: chance may have a part in it.
const replays = 10

func replay(t *testing.T, seed uint64) {
	w := NewWorker(0)
	run := func(p Plan) *Outcome { return w.Run(t, p, Scenario{}) }
	outcome := run(NewPlan(seed))
	if len(outcome.Violations) == 0 {
		outcome.Print(os.Stdout)
		return
	}
	promise := outcome.Violations[0].Promise
	again := breaksAgain(t, w, seed, promise)
	Shrink(run, outcome).Print(os.Stdout)
	t.Errorf("seed %d breaks %q, and again in %d of %d replays", seed, promise.Name, again, replays)
}

// breaksAgain returns in how many replays the seed breaks the promise again.
func breaksAgain(t *testing.T, w Worker, seed uint64, promise *Promise) (again int) {
	for range replays {
		if w.Run(t, NewPlan(seed), Scenario{}).breaks(promise) {
			again++
		}
	}
	return again
}

// scenarioSeeds is how many seeds of a scenario run: some defects need chance.
const scenarioSeeds = 5

func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, r := range slices.Concat(rare, ofOwners, regressions) {
		require.False(t, names[r.name], "two scenarios are named %q", r.name)
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			seeds := scenarioSeeds
			if r.plan.Namespaces > 100 {
				seeds = 1 // It has many objects, and takes long with the race detector.
			}
			for seed := range uint64(seeds) {
				r.plan.Seed = seed + 1
				outcome := NewWorker(0).Run(t, r.plan, r.scenario)
				if len(outcome.Violations) > 0 {
					outcome.Print(os.Stdout)
					t.Fatalf("seed %d breaks %q", r.plan.Seed, outcome.Violations[0].Promise.Name)
				}
			}
		})
	}
}

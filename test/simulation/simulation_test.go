// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
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
	races   = flag.Bool("races", false, "only look for data races: print what breaks a promise, but do not fail")
	known   = flag.Bool("corpus", false, "run the seeds first that once broke a promise")
	digests = flag.String("digests", "", "write each seed, and the digests of its story and of its records, to this file")
)

// lastLine is written after the results of all tests.
var lastLine string

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetTraceback("all")      // A run that does not end tells where it hangs.
	klog.SetLogger(logr.Discard()) // client-go's leader election logs there.
	if *child > 0 {
		os.Exit(m.Run())
	}
	debug.SetGCPercent(400) // Runs are short, and leave little behind.
	for _, variable := range Address {
		name, value, _ := strings.Cut(variable, "=")
		_ = os.Setenv(name, value)
	}
	code := m.Run()
	fmt.Fprintf(os.Stdout, "%s", lastLine)
	os.Exit(code)
}

func TestRandomEnvironments(t *testing.T) {
	if *oneSeed != 0 {
		replay(t, NewPlan(*oneSeed))
		return
	}
	s := newSearch()
	workers := 1
	exact := isExact(t)
	if exact {
		workers = runtime.GOMAXPROCS(0)
	}
	t.Run("workers", func(t *testing.T) {
		for worker := range workers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	s.printProgress()
	if exact {
		lastLine = fmt.Sprintf("stories: %x\n", sha256.Sum256([]byte(strings.Join(s.digests, "\n"))))
	}
	if *digests != "" {
		require.NoError(t, os.WriteFile(*digests, []byte(strings.Join(s.digests, "\n")+"\n"), 0o600))
	}
}

// search is a run of many seeds.
type search struct {
	began        time.Time
	next         atomic.Int64
	runs, broken atomic.Int64
	seeds        []uint64
	digests      []string // each seed, and the digests of its story and of its records
}

// newSearch returns a search in the seeds that the flags name.
func newSearch() *search {
	s := &search{began: time.Now()}
	if *known {
		s.seeds = slices.Concat(corpus, corpusOfDetails)
	}
	for i := range *seeds {
		s.seeds = append(s.seeds, *firstSeed+uint64(i))
	}
	s.digests = make([]string, len(s.seeds))
	return s
}

// printProgress writes to stdout: the test's log needs -v and comes at the end.
func (s *search) printProgress() {
	took := time.Since(s.began)
	fmt.Fprintf(os.Stdout, "%d environments in %v, %.0f per second; %d broke a promise\n",
		s.runs.Load(), took.Round(time.Second), float64(s.runs.Load())/took.Seconds(), s.broken.Load())
}

// work runs seeds until there are no more.
func (s *search) work(t *testing.T) {
	for {
		i := s.next.Add(1) - 1
		if i >= int64(len(s.seeds)) {
			return
		}
		plan := NewPlan(s.seeds[i])
		outcome := run(t, job{Plan: plan})
		s.digests[i] = fmt.Sprint(plan.Seed, " ", outcome.Digest, " ", outcome.Records)
		if s.runs.Add(1)%250 == 0 {
			s.printProgress()
		}
		if len(outcome.Violations) == 0 {
			continue
		}
		broken := s.broken.Add(1)
		first := outcome.Violations[0]
		if *races {
			fmt.Fprintf(os.Stdout, "seed %d breaks %q: %s\n", plan.Seed, first.Promise.Name, first.Text)
			continue
		}
		t.Errorf("seed %d breaks %q: %s", plan.Seed, first.Promise.Name, first.Text)
		if *stop {
			s.next.Store(int64(len(s.seeds)))
		} else if broken <= int64(*stories) {
			explain(t, outcome)
		}
	}
}

// explain prints the story of a run that breaks a promise.
func explain(t *testing.T, broken *Outcome) {
	if broken.Story == nil {
		broken = run(t, job{Plan: broken.Plan, Tells: true})
	}
	broken.Print(os.Stdout)
}

// replay runs a plan twice, and prints its story.
func replay(t *testing.T, plan Plan) {
	outcome := run(t, job{Plan: plan, Tells: true})
	outcome.Print(os.Stdout)
	if len(outcome.Violations) > 0 {
		t.Errorf("seed %d breaks %q", plan.Seed, outcome.Violations[0].Promise.Name)
	}
	if !isExact(t) {
		return
	}
	again := run(t, job{Plan: plan, Tells: true})
	if i, differs := firstDifference(outcome.Story, again.Story); differs {
		t.Errorf("seed %d was not replayed exactly: line %d of its story was\n%v\nand in the replay\n%v",
			plan.Seed, i+1, lineAt(outcome.Story, i), lineAt(again.Story, i))
		return
	}
	lastLine = fmt.Sprintf("seed %d: replayed exactly, %d lines\n", plan.Seed, len(again.Story))
}

// firstDifference returns the first line that differs.
func firstDifference(a, b []Line) (i int, differs bool) {
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i, i < max(len(a), len(b))
}

func lineAt(story []Line, i int) any {
	if i == len(story) {
		return "the end"
	}
	return story[i]
}

// scenarioSeeds is how many seeds of a scenario run: some defects need chance.
const scenarioSeeds = 5

func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, r := range scenarios {
		require.False(t, names[r.name], "two scenarios are named %q", r.name)
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			if isExact(t) {
				t.Parallel()
			}
			for seed := range uint64(scenarioSeeds) {
				r.plan.Seed = seed + 1
				outcome := run(t, job{Plan: r.plan, Scenario: r.name, Tells: true})
				if len(outcome.Violations) > 0 {
					outcome.Print(os.Stdout)
					t.Fatalf("seed %d breaks %q", r.plan.Seed, outcome.Violations[0].Promise.Name)
				}
			}
		})
	}
}

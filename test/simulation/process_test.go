// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// childMemory is the memory from which on a child collects garbage, and is no longer exact.
const childMemory = "6GiB"

var (
	child = flag.Int("child", 0, "the length of the job in stdin, whose outcome is written to stdout")
	// In a bubble, time stands still while something spins.
	timeLimit = flag.Duration("limit", 5*time.Minute, "how long a run may take")
)

// job is one run of a plan.
type job struct {
	Plan     Plan
	Scenario string // its name; empty: none
	Tells    bool   // the whole story
}

// run runs a plan. With the runtime of runtimeoverlay, the run has a process of its own and is the
// same each time: one that runs several plans would give their objects other addresses, and so maps
// another order.
func run(t *testing.T, j job) *Outcome {
	if isExact(t) {
		return j.inChild()
	}
	defer time.AfterFunc(*timeLimit, func() { panic(fmt.Sprintf("seed %d %s", j.Plan.Seed, doesNotEnd)) }).Stop()
	return j.run(t)
}

// isExact reports whether this program has the runtime of runtimeoverlay, in which each bubble has
// the same random numbers.
func isExact(t *testing.T) bool {
	draw := func() (n uint64) {
		synctest.Test(t, func(*testing.T) { n = rand.Uint64() })
		return n
	}
	first, second := draw(), draw()
	return first == second
}

// run runs the plan in this process.
func (j *job) run(t *testing.T) *Outcome {
	i := slices.IndexFunc(scenarios, func(r requirement) bool { return r.name == j.Scenario })
	if i < 0 {
		return Run(t, j.Plan, nil)
	}
	return Run(t, j.Plan, scenarios[i].scenario)
}

// TestChild is what a process of inChild does.
func TestChild(t *testing.T) {
	if *child == 0 {
		t.Skip("run starts it")
	}
	var j job
	request := make([]byte, *child)
	_, err := io.ReadFull(os.Stdin, request)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(request, &j))
	outcome := j.run(t)
	outcome.Digest = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, outcome.Story)))
	if !j.Tells {
		outcome.Story = nil
	}
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(outcome))
}

// inChild runs the plan in a process of its own. If that crashes or does not end, it breaks a promise.
func (j *job) inChild() *Outcome {
	ctx, cancel := context.WithTimeout(context.Background(), *timeLimit)
	defer cancel()
	outcome, stderr := &Outcome{}, &bytes.Buffer{}
	if err := j.start(ctx, outcome, stderr); err != nil {
		how := cmp.Or(string(crash.Find(stderr.Bytes())), err.Error())
		if ctx.Err() != nil {
			how = doesNotEnd
		}
		outcome.Violations = []Violation{{ends, "", how}}
		outcome.Story = []Line{{Text: stderr.String()}}
	}
	outcome.Plan = j.Plan
	for i := range outcome.Violations {
		v := &outcome.Violations[i]
		v.Promise = promiseNamed(v.Promise.Name)
	}
	return outcome
}

// start starts the process, and waits for its outcome. The process begins always in the same way: the
// addresses of its objects, on which the order of maps depends, depend on the lengths of its paths.
func (j *job) start(ctx context.Context, outcome *Outcome, stderr io.Writer) error {
	request, err := json.Marshal(j)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, "-test.run=^TestChild$", "-test.timeout=0", "-child", fmt.Sprint(len(request)))
	command.Args[0], command.Dir = "simulation", "/"
	// The garbage collector would have a part in the order of goroutines and in where objects are,
	// from the first line of an init function on.
	command.Env = append([]string{
		"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=off", "GOMEMLIMIT=" + childMemory,
		"MUTATION=" + os.Getenv("MUTATION"), "MUTATION_NOTES=" + os.Getenv("MUTATION_NOTES"), // See mutants.
	}, Address...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGQUIT) } // It prints all stacks.
	command.WaitDelay = 10 * time.Second
	var stdout bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(request), &stdout, stderr
	if err := command.Run(); err != nil {
		return err
	}
	return json.NewDecoder(&stdout).Decode(outcome)
}

var crash = regexp.MustCompile(`(?m)^(panic|fatal error): .*`)

const doesNotEnd = "does not end: it spins, or waits for something outside"

func promiseNamed(name string) *Promise {
	return Promises[slices.IndexFunc(Promises, func(p *Promise) bool { return p.Name == name })]
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// mutated are the packages that get mutants: the receiver's core, and what answers questions about problems.
var mutated = []string{
	"internal/loop", "internal/election", "internal/progress", "internal/journal", "internal/ledger", "internal/series",
	"internal/delivery", "internal/queue", "internal/watch", "internal/owners", "internal/details", "internal/extract",
	"internal/filter", "internal/event", "internal/logrecord", "internal/kubeclient", "internal/health",
	"distribution/internal/incident", "distribution/internal/problem", "distribution/internal/record", "distribution/internal/rollout",
}

const (
	module       = "github.com/kubeevents/kubeeventsreceiver"
	mutationPath = "internal/mutation" // The package is in the overlay only.

	// numberVariable is the environment variable that has the number of the mutant to be. Empty: none.
	numberVariable = "MUTATION"
	// notesVariable names the file for the numbers of all mutants that would have gone another way.
	// Empty: none.
	notesVariable = "MUTATION_NOTES"
)

// mutation is the package that selects a mutant. Each function gets what the receiver decides. It asks
// differs only if the mutant decides otherwise: this shows which runs cannot find a mutant.
const mutation = `package mutation

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	number, _ = strconv.Atoi(os.Getenv("` + numberVariable + `"))
	notes, _  = os.OpenFile(os.Getenv("` + notesVariable + `"), os.O_APPEND|os.O_WRONLY, 0)
	noted     [1 << 16]atomic.Bool
)

func differs(n int) bool {
	if notes != nil && !noted[n].Swap(true) {
		notes.WriteString(strconv.Itoa(n) + "\n")
	}
	return n == number
}

func Always(n int, is bool) bool         { return is || differs(n) }
func Never(n int, is bool) bool          { return is && !differs(n) }
func IsAtLimit(n int, isEqual bool) bool { return isEqual && differs(n) }
func LeavesOut(n int) bool               { return differs(n) }

func Other[T comparable](n int, is, other T) T {
	if is != other && differs(n) {
		return other
	}
	return is
}
`

// generate adds the files of a receiver that has all mutants, and returns these.
func generate(contents map[string]string) ([]mutant, error) {
	gen := &generator{files: token.NewFileSet()}
	contents[mutationPath+"/mutation.go"] = mutation
	for _, directory := range mutated {
		files, err := gen.check(directory)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			before := len(gen.mutants)
			content, err := gen.mutate(file, module+"/"+mutationPath)
			if err != nil {
				return nil, err
			}
			if len(gen.mutants) > before {
				contents[gen.file] = content
			}
		}
	}
	return gen.mutants, nil
}

// mutant is a deliberate fault.
type mutant struct {
	number int
	name   string
	file   string // relative to the repository, where the command is started
	line   int
}

// env returns the environment variable that makes a receiver the mutant.
func (m *mutant) env() string { return fmt.Sprintf("%s=%d", numberVariable, m.number) }

// packageOf returns the directory of the mutant's package.
func (m *mutant) packageOf() string { return filepath.Dir(m.file) }

// sample takes about n mutants of each package, evenly from all its files: every second, or every
// third, and so on.
func sample(all []mutant, n int) (chosen []mutant) {
	total, at := map[string]int{}, map[string]int{}
	for _, m := range all {
		total[m.packageOf()]++
	}
	for _, m := range all {
		every := max(1, total[m.packageOf()]/n)
		if at[m.packageOf()]%every == 0 {
			chosen = append(chosen, m)
		}
		at[m.packageOf()]++
	}
	return inTurns(chosen)
}

// inTurns orders mutants so that each package gets its turn, and each of its files: a run that ends
// early has tried a part of each.
func inTurns(all []mutant) []mutant {
	rand.New(rand.NewPCG(0, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	next, turns := map[string]int{}, map[int]int{}
	for _, m := range all {
		turns[m.number] = next[m.packageOf()]
		next[m.packageOf()]++
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return turns[a.number] - turns[b.number] })
	return all
}

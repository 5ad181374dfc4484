// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// moduleDirectory is where go test and make start the simulation from.
const moduleDirectory = "../.."

var stateCall = regexp.MustCompile(`\breached\.State\((.*)\)`)

// States returns the rare states that the source of the receiver names, in alphabetical order.
// Tests, and the documentation of package reached, name none.
func States() (names []string, err error) {
	for _, directory := range []string{"internal", "resolver"} {
		walk := func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return err
			case strings.Contains(filepath.ToSlash(path), "internal/reached/"):
				return nil
			}
			source, err := os.ReadFile(path) //nolint:gosec // It is a file of the repository.
			for _, call := range stateCall.FindAllSubmatch(source, -1) {
				name, err := strconv.Unquote(string(call[1]))
				if err != nil || slices.Contains(names, name) {
					return fmt.Errorf("%s: the state %s is no literal, or names another state, too", path, call[1])
				}
				names = append(names, name)
			}
			return err
		}
		if err := filepath.WalkDir(filepath.Join(moduleDirectory, directory), walk); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}

// unnoted runs a check that uses the receiver's code, and forgets which states it reaches.
func unnoted(check func()) {
	noted := reached.Take()
	check()
	reached.Take()
	for _, name := range noted {
		reached.State(name)
	}
}

func (r *Report) addStates(o *Outcome) {
	if r.states == nil {
		r.states, r.lowest = map[string]int{}, map[string]uint64{}
	}
	for _, name := range o.States {
		r.states[name]++
		if lowest, known := r.lowest[name]; !known || o.Plan.Seed < lowest {
			r.lowest[name] = o.Plan.Seed
		}
	}
}

// Reaching returns, for each rare state that an environment reached, the lowest seed of one.
func (r *Report) Reaching() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.lowest)))
}

// writeStates writes how many environments reached each rare state of the receiver, the rarest ones
// first. Without the build tag reached, nobody knows. A process that was killed goes on, cut off from
// everything, until it has shut down: what it reaches counts, too.
func (r *Report) writeStates(w io.Writer) {
	if len(r.states) == 0 {
		return
	}
	all, err := States()
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(r.states[a], r.states[b]) })
	fmt.Fprintf(w, "\n| rare state of the receiver | environments |\n|---|---|\n")
	var missing []string
	for _, name := range all {
		switch {
		case r.states[name] > 0:
			fmt.Fprintf(w, "| %s | %d |\n", name, r.states[name])
		case hasScenario(name):
			fmt.Fprintf(w, "| %s | only a scenario |\n", name)
		default:
			missing = append(missing, name)
		}
	}
	fmt.Fprintf(w, "\nStates that no environment reached: %s.\n", cmp.Or(strings.Join(missing, "; "), "none"))
}

// hasScenario reports whether a scenario must reach the state.
func hasScenario(state string) bool {
	return slices.ContainsFunc(slices.Concat(rare, ofStates), func(r requirement) bool { return r.reaches == state })
}

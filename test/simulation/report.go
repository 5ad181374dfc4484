// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Report counts, for each fault and promise, the runs that had the fault and evaluated the promise,
// and those that broke it. Its methods may be called concurrently.
type Report struct {
	mu     sync.Mutex // guards what follows
	cells  map[string]map[*Promise]*cell
	states map[string]int    // how many runs reached each
	lowest map[string]uint64 // the lowest seed that reached each
	Runs   int
	Broken int
}

type cell struct{ runs, broken int }

// Add counts one run.
func (r *Report) Add(o *Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Runs++
	if len(o.Violations) > 0 {
		r.Broken++
	}
	r.addStates(o)
	rows := []string{"mode: " + o.Plan.Mode.String(), "any"}
	if len(o.Plan.Later) > 0 {
		rows = append(rows, "configuration changes")
	}
	for _, f := range o.Plan.Faults {
		if !slices.Contains(rows, string(f.Kind)) {
			rows = append(rows, string(f.Kind))
		}
	}
	for _, row := range rows {
		for _, p := range o.Evaluated {
			r.count(row, p, o.violation(p) >= 0)
		}
	}
}

func (r *Report) count(row string, p *Promise, broken bool) {
	if r.cells == nil {
		r.cells = map[string]map[*Promise]*cell{}
	}
	if r.cells[row] == nil {
		r.cells[row] = map[*Promise]*cell{}
	}
	c := r.cells[row][p]
	if c == nil {
		c = &cell{}
		r.cells[row][p] = c
	}
	c.runs++
	if broken {
		c.broken++
	}
}

// Write writes the table as Markdown. A cell has the runs, and those that broke the promise; it is
// empty where the contract does not make the promise.
func (r *Report) Write(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(w, "| fault |")
	for _, p := range Promises {
		fmt.Fprintf(w, " %s |", p.Name)
	}
	fmt.Fprintf(w, "\n|---%s|\n", strings.Repeat("|---", len(Promises)))
	rows := make([]string, 0, len(r.cells))
	for row := range r.cells {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |", row)
		for _, p := range Promises {
			fmt.Fprintf(w, " %v |", r.cells[row][p])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nEach cell: environments with the fault in which the promise was checked.\n")
	if missing := r.notTried(); len(missing) > 0 {
		fmt.Fprintf(w, "Not tried: %s.\n", strings.Join(missing, ", "))
	}
	r.writeStates(w)
}

// notTried returns the possible faults that no environment had.
func (r *Report) notTried() (missing []string) {
	all := Plan{Mode: Mode{Storage: true, Elector: true}}
	for _, kind := range all.possibleFaults() {
		if r.cells[string(kind)] == nil && !slices.Contains(missing, string(kind)) {
			missing = append(missing, string(kind))
		}
	}
	return missing
}

func (c *cell) String() string {
	switch {
	case c == nil:
		return ""
	case c.broken > 0:
		return fmt.Sprintf("**%d of %d broken**", c.broken, c.runs)
	default:
		return fmt.Sprint(c.runs)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// result is what a scenario found out.
type result struct {
	Text   string // what was done, as Markdown
	Table  string // as Markdown; empty: the groups side by side
	Groups []group
	Notes  []string // what a reader should know of the figures, as Markdown
}

// group has the figures of a setup.
type group struct {
	Title   string
	Figures []figure
}

// figure is a row of a scenario's table. Less is better, unless it has a goal that is a lower bound.
type figure struct {
	Name, Unit   string
	Ours, Theirs []float64 // one of each round
	Goal         *goal
}

// goal is a bound for our worst round, or for the ratio of our median to theirs.
type goal struct {
	ratio, atLeast bool
	bound          float64
}

func ratioAtMost(bound float64) *goal { return &goal{ratio: true, bound: bound} }
func oursAtMost(bound float64) *goal  { return &goal{bound: bound} }
func oursAtLeast(bound float64) *goal { return &goal{bound: bound, atLeast: true} }

// missed returns what was measured and the goal, if the goal was not met.
func (f figure) missed() (text string, missed bool) {
	if f.Goal == nil {
		return "", false
	}
	least, most, measured, bound := math.NaN(), math.NaN(), f.cell(f.Ours)+" "+f.Unit, decimal(f.Goal.bound)
	if len(f.Ours) > 0 {
		least, most = slices.Min(f.Ours), slices.Max(f.Ours)
	}
	if f.Goal.ratio {
		if len(f.Theirs) == 0 {
			return "", false
		}
		least = median(f.Ours) / median(f.Theirs)
		most = least
		measured, bound = "ratio "+decimal(least), "ratio "+bound
	}
	if f.Goal.atLeast {
		return fmt.Sprintf("%s: %s (goal: ≥ %s)", f.Name, strings.TrimSpace(measured), bound), !(least >= f.Goal.bound)
	}
	return fmt.Sprintf("%s: %s (goal: ≤ %s)", f.Name, strings.TrimSpace(measured), bound), !(most <= f.Goal.bound)
}

// missedGoals returns all goals that were not met.
func (r result) missedGoals() (missed []string) {
	for _, g := range r.Groups {
		for _, f := range g.Figures {
			if text, isMissed := f.missed(); isMissed && g.Title != "" {
				missed = append(missed, g.Title+": "+text)
			} else if isMissed {
				missed = append(missed, text)
			}
		}
	}
	return missed
}

// cell is the median, and the spread where there is one.
func (figure) cell(rounds []float64) string {
	if len(rounds) == 0 {
		return "–"
	}
	text := decimal(median(rounds))
	if low, high := decimal(slices.Min(rounds)), decimal(slices.Max(rounds)); low != high {
		text += " (" + low + "–" + high + ")"
	}
	return text
}

// median is that of the rounds; NaN if there are none.
func median(rounds []float64) float64 {
	if len(rounds) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(rounds))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// decimal writes a number with about three significant digits.
func decimal(value float64) string {
	digits := 0
	switch magnitude := math.Abs(value); {
	case magnitude < 1:
		digits = 3
	case magnitude < 10:
		digits = 2
	case magnitude < 100:
		digits = 1
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'f', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// table returns the groups side by side, and the baseline if it has values.
func table(groups []group) string {
	head, rule := "| | |", "|---|---|"
	var names []string
	hasBaseline := false
	for _, g := range groups {
		head, rule = head+" "+g.Title+" |", rule+"--:|"
		for _, f := range g.Figures {
			hasBaseline = hasBaseline || len(f.Theirs) > 0
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	if hasBaseline {
		head, rule = head+" k8s_events |", rule+"--:|"
	}
	lines := []string{head, rule}
	for _, name := range names {
		unit, theirs, cells := "", "–", ""
		for _, g := range groups {
			f := g.named(name)
			cells += " " + f.cell(f.Ours) + " |"
			if f.Name != "" {
				unit, theirs = f.Unit, f.cell(f.Theirs)
			}
		}
		if hasBaseline {
			cells += " " + theirs + " |"
		}
		lines = append(lines, "| "+name+" | "+unit+" |"+cells)
	}
	return strings.Join(lines, "\n")
}

// named returns the figure with a name; a zero figure if there is none.
func (g group) named(name string) figure {
	i := slices.IndexFunc(g.Figures, func(f figure) bool { return f.Name == name })
	if i < 0 {
		return figure{}
	}
	return g.Figures[i]
}

// section returns the part of the page without its heading.
func (r result) section(s scenario, v versions, date string) string {
	shown := r.Table
	if shown == "" {
		shown = table(r.Groups)
	}
	parts := []string{r.Text, shown}
	if len(r.Notes) > 0 {
		parts = append(parts, strings.Join(r.Notes, " "))
	}
	if missed := r.missedGoals(); len(missed) > 0 {
		parts = append(parts, "Goals that were not met:\n\n- "+strings.Join(missed, "\n- "))
	}
	parts = append(parts, fmt.Sprintf("Measured on %s at commit `%s`: %v (`SCENARIOS=%s`)", date, v.commit, v, s.name))
	return strings.Join(parts, "\n\n")
}

// values are what one run of one Collector measured, by the figure's name.
type values map[string]float64

// String lists them by name, for the progress report.
func (v values) String() string {
	parts := make([]string, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, name+" "+decimal(v[name]))
	}
	return strings.Join(parts, ", ")
}

// suffixed returns the values under longer names.
func (v values) suffixed(suffix string) values {
	longer := values{}
	for name, value := range v {
		longer[name+suffix] = value
	}
	return longer
}

// suffixed returns the figures under longer names.
func suffixed(figures []figure, suffix string) []figure {
	for i := range figures {
		figures[i].Name += suffix
	}
	return figures
}

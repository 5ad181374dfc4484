// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// result is what a scenario found out, as the file of the results keeps it.
type result struct {
	// What main fills in.
	Title    string   `json:"title"`
	Date     string   `json:"date"`
	Versions versions `json:"versions"`

	// What the scenario fills in.
	Text    string   `json:"text,omitempty"` // what was done, as Markdown
	Figures []figure `json:"figures,omitempty"`
	Groups  []group  `json:"groups,omitempty"` // tables after that of the figures
	Notes   []string `json:"notes,omitempty"`  // what a reader should know of the figures, as Markdown
	Charts  []chart  `json:"charts,omitempty"`
	Grids   []grid   `json:"grids,omitempty"` // tables with a column for each Collector
}

// group is a table of its own: a setup that is compared with the baseline.
type group struct {
	Title   string   `json:"title"`
	Column  string   `json:"column"` // whose values the column "ours" has
	Figures []figure `json:"figures"`
}

// grid is a table of one figure: a column for each Collector, and a row for each load.
type grid struct {
	Title   string    `json:"title"`
	Unit    string    `json:"unit,omitempty"`
	Rows    string    `json:"rows"` // what the rows are
	Columns []string  `json:"columns"`
	Values  []gridRow `json:"values"`
}

type gridRow struct {
	Name  string    `json:"name"`
	Cells []float64 `json:"cells"`
}

// Heading returns the title with the unit.
func (g grid) Heading() string {
	heading := capitalized(g.Title)
	if g.Unit == "" {
		return heading
	}
	return heading + " (" + g.Unit + ")"
}

// capitalized returns a title with its first letter in upper case.
func capitalized(title string) string {
	if title == "" {
		return ""
	}
	return strings.ToUpper(title[:1]) + title[1:]
}

// isZero reports whether every value is 0.
func (g grid) isZero() bool {
	return !slices.ContainsFunc(g.Values, func(row gridRow) bool {
		return slices.ContainsFunc(row.Cells, func(value float64) bool { return value != 0 })
	})
}

// lines returns the cells of the table: its head, and its rows.
func (g grid) lines() [][]string {
	lines := [][]string{append([]string{g.Heading() + ", by " + g.Rows}, g.Columns...)}
	for _, row := range g.Values {
		cells := []string{row.Name}
		for _, value := range row.Cells {
			cells = append(cells, decimal(value))
		}
		lines = append(lines, cells)
	}
	return lines
}

// Markdown returns the table.
func (g grid) Markdown() string {
	var text strings.Builder
	for i, line := range g.lines() {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			text.WriteString("|" + strings.Repeat("--:|", len(line)) + "\n")
		}
	}
	return text.String()
}

// Tables returns all tables of the result. That of the figures has no title.
func (r result) Tables() []group {
	var tables []group
	if len(r.Figures) > 0 {
		tables = append(tables, group{Column: kubeEventsReceiver, Figures: r.Figures})
	}
	return append(tables, r.Groups...)
}

// figure is a row of a scenario's table. Less is better, unless it has a goal that is a lower
// bound.
type figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit,omitempty"`
	Ours   []float64 `json:"ours,omitempty"`   // one of each round
	Theirs []float64 `json:"theirs,omitempty"` // likewise
	Goal   *goal     `json:"goal,omitempty"`
}

// goal is a bound for our worst round, or for the ratio of our median to theirs.
type goal struct {
	Ratio   bool    `json:"ratio,omitempty"`
	Nine    bool    `json:"nineOfTen,omitempty"` // nine of ten of our runs reach the bound, not the median
	AtLeast bool    `json:"atLeast,omitempty"`
	Bound   float64 `json:"bound"`
}

func ratioAtMost(bound float64) *goal { return &goal{Ratio: true, Bound: bound} }
func mostRunsAtMost(bound float64) *goal {
	return &goal{Ratio: true, Nine: true, Bound: bound}
}
func oursAtMost(bound float64) *goal  { return &goal{Bound: bound} }
func oursAtLeast(bound float64) *goal { return &goal{Bound: bound, AtLeast: true} }

func (g *goal) String() string {
	if g == nil {
		return ""
	}
	sign, of := "≤", ""
	if g.AtLeast {
		sign = "≥"
	}
	if g.Ratio {
		of = "ratio "
	}
	if g.Nine {
		return of + sign + " " + decimal(g.Bound) + " in 9 of 10 runs"
	}
	return of + sign + " " + decimal(g.Bound)
}

// Met reports whether the goal is reached; empty if there is none.
func (f figure) Met() string {
	if f.Goal == nil {
		return ""
	}
	if len(f.Ours) > 0 && f.Goal.reached(f) {
		return "yes"
	}
	return "no"
}

func (g *goal) reached(f figure) bool {
	least, most := slices.Min(f.Ours), slices.Max(f.Ours)
	if g.Ratio {
		ours := median(f.Ours)
		if g.Nine {
			ours = nineOfTen(f.Ours)
		}
		least = ours / median(f.Theirs)
		most = least
	}
	if g.AtLeast {
		return least >= g.Bound
	}
	return most <= g.Bound
}

// Ratio is our median over theirs, for the table.
func (f figure) Ratio() string {
	theirs := median(f.Theirs)
	if theirs == 0 || math.IsNaN(theirs) || len(f.Ours) == 0 {
		return "–"
	}
	return strconv.FormatFloat(median(f.Ours)/theirs, 'f', 2, 64)
}

// Cell is the median, and the spread where there is one, for the table.
func (f figure) Cell(rounds []float64) string {
	if len(rounds) == 0 {
		return "–"
	}
	text := decimal(median(rounds))
	if low, high := decimal(slices.Min(rounds)), decimal(slices.Max(rounds)); low != high {
		text += " (" + low + "–" + high + ")"
	}
	return text
}

// nineOfTen returns the value that nine of ten runs do not exceed.
func nineOfTen(runs []float64) float64 {
	sorted := slices.Sorted(slices.Values(runs))
	return sorted[(9*len(sorted)+9)/10-1]
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

// decimal writes a number as short as it may be, with about three digits that say something.
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

// columns are a figure's cells.
func (f figure) columns() []string {
	return []string{f.Name, f.Unit, f.Cell(f.Ours), f.Cell(f.Theirs), f.Ratio(), f.Goal.String(), f.Met()}
}

// printTable shows the result to the user.
func printTable(w io.Writer, r result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range r.Tables() {
		if g.Title != "" {
			fmt.Fprintln(table, "\n"+g.Title)
		}
		fmt.Fprintln(table, "FIGURE\tUNIT\t"+g.Column+"\tBASELINE\tRATIO\tGOAL\tMET")
		for _, f := range g.Figures {
			fmt.Fprintln(table, strings.Join(f.columns(), "\t"))
		}
	}
	for _, g := range r.Grids {
		fmt.Fprintln(table)
		for _, line := range g.lines() {
			fmt.Fprintln(table, strings.Join(line, "\t"))
		}
	}
	return table.Flush()
}

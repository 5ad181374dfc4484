// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// page is test/PERFORMANCE.md, with the results that it is written from.
type page struct {
	docs    string // the directory
	data    string // the file with the results
	results map[string]result
}

// newPage returns the page for results of a commit. It is empty if all of it is written again;
// otherwise, it has the results so far, which must be from the same commit.
func newPage(docs, data string, v versions, all bool) (*page, error) {
	if strings.HasSuffix(v.Commit, dirtySuffix) {
		return nil, fmt.Errorf("the working tree has changes (%s): commit them, because the page is measured on one clean commit; to only print results, name scenarios without -write", v.Commit)
	}
	p := &page{docs: docs, data: data, results: map[string]result{}}
	if all {
		return p, nil
	}
	var err error
	if p.results, err = readResults(data); err != nil {
		return nil, fmt.Errorf("cannot read the results of the other scenarios: %w: run `make bench-e2e` without SCENARIOS to measure the whole page", err)
	}
	for name, r := range p.results {
		if r.Versions.Commit != v.Commit {
			return nil, fmt.Errorf("the scenario %s of %s was measured at commit %q, not %s: run `make bench-e2e` without SCENARIOS to measure the whole page", name, data, r.Versions.Commit, v.Commit)
		}
	}
	return p, nil
}

// keep replaces the last result of the scenario and writes the page.
func (p *page) keep(name string, r result) error {
	p.results[name] = r
	kept, err := json.MarshalIndent(p.results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.data, append(kept, '\n'), 0o600); err != nil { //nolint:gosec // The path is the command line's.
		return err
	}
	if err := keepCharts(p.docs, name, r.Charts); err != nil {
		return err
	}
	return p.write()
}

// write writes the page from the results.
func (p *page) write() error {
	text, err := render(p.results)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.docs, "PERFORMANCE.md"), text, 0o600) //nolint:gosec // Likewise.
}

func readResults(path string) (results map[string]result, err error) {
	kept, err := os.ReadFile(path) //nolint:gosec // The path is the command line's.
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(kept, &results); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return results, nil
}

//go:embed performance.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("performance.md").Parse(pageText))

// section is a scenario's part of the page.
type section struct {
	Name string
	result
}

// Shown returns the tables of figures that the page shows.
func (s section) Shown() (tables []table) {
	for _, groups := range sideBySide(s.Tables()) {
		if t := newTable(s.Name, groups); len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// ShownGrids returns the tables of loads that the page shows.
func (s section) ShownGrids() (grids []grid) {
	for _, g := range s.Grids {
		if !isLeftOut(s.Name, g.Title) && !g.isZero() {
			grids = append(grids, g)
		}
	}
	return grids
}

// Zeros returns the headings of the tables of loads in which every value is 0: a sentence is enough.
func (s section) Zeros() (titles []string) {
	for _, g := range s.Grids {
		if g.isZero() {
			titles = append(titles, g.Heading())
		}
	}
	return titles
}

// Remarks returns what a reader should know of the figures.
func (s section) Remarks() string { return strings.Join(s.Notes, " ") }

// view is what the template shows.
type view struct {
	Versions versions // of all sections
	Dates    string
	Size     struct{ Namespaces, Deployments, Pods string }
	Sections []section
	Missing  []string // scenarios without a result
	Everyday []string // rows of the table of usual rates
	// LosesNothing reports whether no record was lost at any rate.
	LosesNothing bool
	Unmet        []unmet // the goals that were not met
	Goals        int     // how many goals there are
}

// usual are the rates of the first table: most clusters have less than 100.
var usual = sizes{1, 10, 100, 1_000, 10_000}

// everyday returns two rows for each usual rate: the baseline, and the receiver as recommended. There
// are none if such a rate was not measured.
func everyday(curves result) (rows []string) {
	for _, rate := range usual {
		for i, name := range []string{"k8s_events", kubeEventsReceiver} {
			cells := []string{thousands(rate), name}
			if i > 0 {
				cells[0] = ""
			}
			for _, title := range []string{cpuPerObservation, peakRSS, latencyHalf, latencyTail} {
				cell, found := curves.at(title, thousands(rate), name)
				if !found {
					return nil
				}
				cells = append(cells, cell)
			}
			rows = append(rows, "| "+strings.TrimPrefix(strings.Join(cells, " | ")+" |", " "))
		}
	}
	return rows
}

// at returns the value of a grid, in the first column whose title begins with the name of a receiver.
func (r result) at(title, load, receiver string) (cell string, found bool) {
	for _, g := range r.Grids {
		column := slices.IndexFunc(g.Columns, func(c string) bool { return strings.HasPrefix(c, receiver) })
		row := slices.IndexFunc(g.Values, func(row gridRow) bool { return row.Name == load })
		if g.Title == title && column >= 0 && row >= 0 {
			return decimal(g.Values[row].Cells[column]) + " " + g.Unit, true
		}
	}
	return "", false
}

// unmet is a goal that was not met.
type unmet struct {
	Section, Figure, Measured, Goal string
}

// countGoals notes the goals of a section.
func (v *view) countGoals(s section) {
	for _, g := range s.Tables() {
		for _, f := range g.Figures {
			if f.Goal == nil {
				continue
			}
			v.Goals++
			if f.Met() == "yes" {
				continue
			}
			u := unmet{Section: s.Title, Figure: f.Name, Measured: strings.TrimSpace(f.Cell(f.Ours) + " " + f.Unit), Goal: f.Goal.String()}
			if g.Title != "" {
				u.Figure += " (" + strings.ToLower(g.Title[:1]) + g.Title[1:] + ")"
			}
			if f.Goal.Ratio {
				u.Measured = "ratio " + f.Ratio()
			}
			v.Unmet = append(v.Unmet, u)
		}
	}
}

// render writes the page of all results, in the order of the scenarios.
func render(results map[string]result) ([]byte, error) {
	var v view
	v.Size.Namespaces, v.Size.Deployments, v.Size.Pods = thousands(fullSize.namespaces), thousands(fullSize.deployments), thousands(fullSize.pods)
	first, last := "", ""
	for _, s := range scenarios {
		r, ok := results[s.name]
		if !ok {
			v.Missing = append(v.Missing, s.name)
			continue
		}
		v.Sections, v.Versions = append(v.Sections, section{s.name, r}), r.Versions
		v.countGoals(section{s.name, r})
		if s.name == curvesScenario.name {
			v.Everyday, v.LosesNothing = everyday(r), slices.Contains(section{s.name, r}.Zeros(), capitalized(lost))
		}
		if first == "" || r.Date < first {
			first = r.Date
		}
		last = max(last, r.Date)
	}
	v.Dates = first
	if last != first {
		v.Dates += " to " + last
	}
	var text bytes.Buffer
	err := pageTemplate.Execute(&text, v)
	return text.Bytes(), err
}

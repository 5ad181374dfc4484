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

// page is docs/performance.md, with the results that it is written from.
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
	return os.WriteFile(filepath.Join(p.docs, "performance.md"), text, 0o600) //nolint:gosec // Likewise.
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

// view is what the template shows.
type view struct {
	Versions versions // of all sections
	Dates    string
	Size     struct{ Namespaces, Deployments, Pods string }
	Sections []section
	Missing  []string // scenarios without a result
	Short    []shortRow
	Unmet    []string // the goals that were not met, by section
	Goals    int      // how many goals there are
}

// shortRow has the medians of one configuration under load.
type shortRow struct {
	Title string
	Cells []string
}

// shortRows returns the baseline and the configurations of this receiver.
func shortRows(load result) (rows []shortRow) {
	row := func(title string, g group, values func(figure) []float64) {
		r := shortRow{Title: title}
		for _, name := range []string{cpuPerObservation, peakRSS, latencyHalf, latencyTail, lost} {
			i := slices.IndexFunc(g.Figures, func(f figure) bool { return f.Name == name })
			if i < 0 {
				return
			}
			f := g.Figures[i]
			r.Cells = append(r.Cells, strings.TrimSpace(decimal(median(values(f)))+" "+f.Unit))
		}
		rows = append(rows, r)
	}
	for i, g := range load.Groups {
		if i == 0 {
			row("k8s_events"+withBatches, g, func(f figure) []float64 { return f.Theirs })
		}
		if g.Column == kubeEventsReceiver {
			row(kubeEventsReceiver+", "+strings.ToLower(g.Title[:1])+g.Title[1:], g, func(f figure) []float64 { return f.Ours })
		}
	}
	return rows
}

// countGoals notes the goals of a section.
func (v *view) countGoals(s section) {
	unmet := 0
	for _, table := range s.Tables() {
		for _, f := range table.Figures {
			if f.Goal == nil {
				continue
			}
			v.Goals++
			if f.Met() != "yes" {
				unmet++
			}
		}
	}
	if unmet > 0 {
		v.Unmet = append(v.Unmet, fmt.Sprintf("%d in %q", unmet, s.Title))
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
		if s.name == loadScenario.name {
			v.Short = shortRows(r)
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

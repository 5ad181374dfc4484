// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// leftOut are figures that the page leaves out, by scenario: those that follow from others, and those
// that only developers of the receiver need. `make bench-e2e SCENARIOS=…` prints all of them.
var leftOut = map[string]*regexp.Regexp{
	curvesScenario.name: regexp.MustCompile(`^latency|^processor time|^peak memory`), // The first table and the charts have them.
	dayScenario.name:    regexp.MustCompile(`^records (lost|too many)`),
	loadScenario.name:   regexp.MustCompile(`^records too many|^rate that was reached`),
	killScenario.name:   regexp.MustCompile(`^records without all owners`),
	haScenario.name:     regexp.MustCompile(`^records lost, [0-9,]+ a second|^records without all owners`),
	startScenario.name:  regexp.MustCompile("processor time|records lost|without all owners|requests for owners|^`start_at: beginning`"),
	replayScenario.name: regexp.MustCompile(`^records a second|^records lost`),
	backendScenario.name: regexp.MustCompile(
		`^latency, median|^processor time|^records in a request`),
	growthScenario.name: regexp.MustCompile(`^heap, (1|10|100),000 live|^checkpoint bytes, |over fewest|` +
		`^checkpoint bytes for a change, (1|10|100),000 live|^size of the checkpoint, (1|10|100),000 live|^changes lost|^heap for each|` +
		`^peak memory \(RSS\), 1,000 live|^ledger, for each of (10|30|100|300),000 |^resolver, for each of 100?,000 `),
	stormScenario.name: regexp.MustCompile(`^records (lost|too many)|^single reads|^latency, (median|greatest)|` +
		`^objects in the cache|, without storage$|^(records|latency|peak|processors).*cache_size|^requests for owners for each 50 records$`),
	namespacesScenario.name: regexp.MustCompile(`^records with|latency, median|^requests, |^objects read|^processor time|` +
		`over that of|^(requests for each namespace|peak memory \(RSS\)), (10|200) |^latency.*, 10 namespaces.*, 50 ms|^(requests|peak).*, 50 ms`),
	hangingScenario.name: regexp.MustCompile(`latency, median|^processor time|^peak memory|over that without|known part|` +
		`^healthy records with|^records of such`),
	listingScenario.name:  regexp.MustCompile(`^processor time`),
	clustersScenario.name: regexp.MustCompile(`^records (lost$|without)|^time until|^latency, median`),
	rolloutsScenario.name: regexp.MustCompile(`^records lost|^spans`),
	idleScenario.name:     regexp.MustCompile(`^watches that restart`),
}

// isLeftOut reports whether the page leaves a figure of the scenario out.
func isLeftOut(scenario, figure string) bool {
	pattern, found := leftOut[scenario]
	return found && pattern.MatchString(figure)
}

// table shows the figures of one or several setups side by side.
type table struct {
	Head []string
	Rows [][]string
}

// newTable returns a column for each group, and one for the baseline if anything was measured there.
func newTable(scenario string, groups []group) table {
	t := table{Head: []string{"", ""}}
	for _, g := range groups {
		title := g.Title
		if title == "" {
			title = g.Column
		}
		t.Head = append(t.Head, title)
	}
	hasBaseline := false
	for _, name := range namesIn(groups) {
		if isLeftOut(scenario, name) {
			continue
		}
		row, baseline := []string{name, ""}, ""
		for _, g := range groups {
			f := g.named(name)
			row = append(row, f.Cell(f.Ours))
			if f.Name != "" {
				row[1], baseline = f.Unit, f.Cell(f.Theirs)
			}
			hasBaseline = hasBaseline || len(f.Theirs) > 0
		}
		t.Rows = append(t.Rows, append(row, baseline))
	}
	if hasBaseline {
		t.Head = append(t.Head, "k8s_events")
		return t
	}
	for i, row := range t.Rows {
		t.Rows[i] = row[:len(row)-1]
	}
	return t
}

// Markdown returns the table.
func (t table) Markdown() string {
	rule := "|---|---|" + strings.Repeat("--:|", len(t.Head)-2)
	lines := []string{"| " + strings.Join(t.Head, " | ") + " |", rule}
	for _, row := range t.Rows {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
	}
	return strings.Join(lines, "\n") + "\n"
}

// namesIn returns the names of all figures, in the order in which they first appear.
func namesIn(groups []group) (names []string) {
	for _, g := range groups {
		for _, f := range g.Figures {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// named returns the figure with a name; without a name, there is none.
func (g group) named(name string) figure {
	i := slices.IndexFunc(g.Figures, func(f figure) bool { return f.Name == name })
	if i < 0 {
		return figure{}
	}
	return g.Figures[i]
}

// sideBySide puts groups into one table while each has a figure of the first one.
func sideBySide(groups []group) (tables [][]group) {
	for _, g := range groups {
		last := len(tables) - 1
		if last >= 0 && slices.ContainsFunc(g.Figures, func(f figure) bool { return tables[last][0].named(f.Name).Name != "" }) {
			tables[last] = append(tables[last], g)
			continue
		}
		tables = append(tables, []group{g})
	}
	return tables
}

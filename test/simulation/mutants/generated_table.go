// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// generatedTable writes what found the generated mutants in Markdown, with one row per package, and a
// list of those that nothing found. The sample is a part of all mutants.
func generatedTable(all []mutant, results []*result) string {
	rows := map[string]*row{}
	for _, m := range all {
		if rows[m.packageOf()] == nil {
			rows[m.packageOf()] = &row{}
		}
		rows[m.packageOf()].made++
	}
	total := &row{}
	for _, r := range results {
		rows[r.mutant.packageOf()].add(r)
		total.add(r)
	}
	var b strings.Builder
	b.WriteString("| Package in `internal/` | Mutants | Tried | Found by its tests | by the simulation | by other tests | Not faults | Not found | Found |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		total.made += rows[name].made
		rows[name].write(&b, "`"+strings.TrimPrefix(name, "internal/")+"`")
	}
	total.write(&b, "all")
	writeReasons(&b, results)
	return b.String()
}

// row counts the mutants of a package.
type row struct{ made, tried, byOwn, bySimulation, byOthers, noFaults, notFound int }

func (w *row) add(r *result) {
	w.tried++
	switch {
	case r.directory == r.mutant.packageOf():
		w.byOwn++
	case r.directory == simulation:
		w.bySimulation++
	case r.directory != "":
		w.byOthers++
	case reasonOf(r.mutant) != "":
		w.noFaults++
	default:
		w.notFound++
	}
}

func (w *row) write(b *strings.Builder, name string) {
	found := w.byOwn + w.bySimulation + w.byOthers
	share := "–"
	if found+w.notFound > 0 {
		share = fmt.Sprintf("%d %%", 100*found/(found+w.notFound))
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d | %d | %s |\n",
		name, w.made, w.tried, w.byOwn, w.bySimulation, w.byOthers, w.noFaults, w.notFound, share)
}

// writeReasons lists the mutants that nothing found.
func writeReasons(b *strings.Builder, results []*result) {
	b.WriteString("\n| Generated fault that nothing finds | Why |\n|---|---|\n")
	var lines []string
	for _, r := range results {
		if r.by != "" {
			continue
		}
		reason := reasonOf(r.mutant)
		if reason == "" {
			reason = "**not known**"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s |\n", cell(strings.TrimPrefix(r.mutant.name, "internal/")), reason))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(slices.Compact(lines), ""))
}

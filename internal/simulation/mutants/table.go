// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// table writes the results in Markdown.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| fault put into the receiver: it … | promise that broke | seeds needed |\n")
	b.WriteString("|---|---|--:|\n")
	for _, r := range results {
		promise, seeds := r.promise, fmt.Sprint(r.seeds)
		if !r.found() {
			promise, seeds = "**none**", fmt.Sprintf("not found in %d", r.seeds)
		}
		if r.err != nil {
			seeds = r.err.Error()
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(r.mutant.name), cell(promise), seeds)
	}
	return b.String()
}

// cell escapes what would end a cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

const (
	begin = "<!-- mutants: begin -->\n"
	end   = "<!-- mutants: end -->"
)

// replaceTable replaces what is between the two marks of a file.
func replaceTable(path, table string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, hasBegin := strings.Cut(string(content), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s has no table to replace: add the lines %q and %q",
			path, strings.TrimSpace(begin), end)
	}
	//nolint:gosec // Everybody may read a document.
	return os.WriteFile(path, []byte(before+begin+table+end+after), 0o644)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// table writes the results in Markdown.
func table(results []*result) string {
	var b strings.Builder
	b.WriteString("| fault put into the receiver: it … | promise that broke, or test that failed | seeds needed |\n")
	b.WriteString("|---|---|--:|\n")
	for _, r := range results {
		by := r.by
		if by == "" {
			by = "**" + r.String() + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(r.mutant.name), cell(by), r.seeds)
	}
	return b.String()
}

// cell escapes what would end a cell, or its row.
func cell(text string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text) }

// replaceTable replaces what is between the two marks of a name in a file.
func replaceTable(path, name, table string) error {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keep replaces the section of a scenario in PERFORMANCE.md.
func keep(s scenario, section string) error {
	path := filepath.Join("..", "test", "PERFORMANCE.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaced(string(page), s.title, section)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600) //nolint:gosec // The path is in the repository.
}

// replaced returns the page with another text below a heading.
func replaced(page, title, section string) (string, error) {
	before, after, found := strings.Cut(page, "\n## "+title+"\n")
	if !found {
		return "", fmt.Errorf("the page has no section %q", title)
	}
	text := before + "\n## " + title + "\n\n" + section + "\n"
	if next := strings.Index(after, "\n## "); next >= 0 {
		text += after[next:]
	}
	return text, nil
}

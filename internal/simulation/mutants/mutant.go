// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a deliberate fault: one text of a file that another one replaces.
type mutant struct {
	name string // what the receiver then does wrong: "it …"
	file string // relative to the repository, where the runner is started
	from string // must occur exactly once
	to   string
}

// overlay is what `go test -overlay` reads.
type overlay struct{ Replace map[string]string }

// read returns the content of the file.
func (m *mutant) read() (string, error) {
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w; start the runner in the directory of go.mod, "+
			"or adapt the mutant", m.name, err)
	}
	return string(content), nil
}

// apply returns the changed content.
func (m *mutant) apply(content string) (string, error) {
	if n := strings.Count(content, m.from); n != 1 {
		return "", fmt.Errorf("mutant %q: its text is %d times in %s instead of once: "+
			"the code has changed, adapt the mutant", m.name, n, m.file)
	}
	return strings.Replace(content, m.from, m.to, 1), nil
}

// overlayOf returns the path of an overlay with the mutants, and with the files of another one.
func overlayOf(changes []mutant, directory string, other overlay) (string, error) {
	contents := map[string]string{}
	if err := applyAll(changes, contents); err != nil {
		return "", err
	}
	return writeOverlay(contents, directory, other)
}

// applyAll changes the contents of files, by their names. A file that has none yet is read.
func applyAll(changes []mutant, contents map[string]string) error {
	for i := range changes {
		m := &changes[i]
		if _, known := contents[m.file]; !known {
			content, err := m.read()
			if err != nil {
				return err
			}
			contents[m.file] = content
		}
		changed, err := m.apply(contents[m.file])
		if err != nil {
			return err
		}
		contents[m.file] = changed
	}
	return nil
}

// writeOverlay writes files with changed contents to the directory, and the file that lets `go test
// -overlay` use them and those of another overlay. It returns the path of the latter.
func writeOverlay(contents map[string]string, directory string, other overlay) (string, error) {
	replace := maps.Clone(other.Replace)
	if replace == nil {
		replace = map[string]string{}
	}
	for file, content := range contents {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(directory, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	written, err := json.Marshal(overlay{replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "overlay.json")
	return path, os.WriteFile(path, written, 0o600)
}

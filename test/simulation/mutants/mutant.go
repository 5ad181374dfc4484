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

// change is one text of a file that another one replaces.
type change struct {
	name string // what the receiver then does wrong: "it …"
	file string // relative to the repository, where the runner is started
	from string // must occur exactly once
	to   string
}

// mutant is a deliberate fault: a change, or a generated one that has a number.
type mutant struct {
	change
	number int
	at     string // its line
}

// env returns the environment variable that makes a receiver the mutant.
func (m *mutant) env() string { return fmt.Sprintf("%s=%d", numberVariable, m.number) }

// overlay is what `go test -overlay` reads.
type overlay struct{ Replace map[string]string }

// read returns the content of the file.
func (m *change) read() (string, error) {
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w; start the runner in the directory of go.mod, "+
			"or adapt the mutant", m.name, err)
	}
	return string(content), nil
}

// apply returns the changed content.
func (m *change) apply(content string) (string, error) {
	if n := strings.Count(content, m.from); n != 1 {
		return "", fmt.Errorf("mutant %q: its text is %d times in %s instead of once: "+
			"the code has changed, adapt the mutant", m.name, n, m.file)
	}
	return strings.Replace(content, m.from, m.to, 1), nil
}

// applyAll changes the contents of files, by their names. A file that has none yet is read.
func applyAll(changes []change, contents map[string]string) error {
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
// -overlay` use them and those of another overlay.
func writeOverlay(contents map[string]string, directory, name string, other overlay) error {
	replace := maps.Clone(other.Replace)
	for file, content := range contents {
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(directory, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[original], []byte(content), 0o600); err != nil {
			return err
		}
	}
	written, err := json.Marshal(overlay{replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, name), written, 0o600)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
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

// apply returns the changed content of the file.
func (m *mutant) apply() (string, error) {
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w; start the runner in the directory of go.mod, "+
			"or adapt the mutant", m.name, err)
	}
	if n := strings.Count(string(content), m.from); n != 1 {
		return "", fmt.Errorf("mutant %q: its text is %d times in %s instead of once: "+
			"the code has changed, adapt the mutant", m.name, n, m.file)
	}
	return strings.Replace(string(content), m.from, m.to, 1), nil
}

// overlay writes the changed file to the directory, and the file that lets `go test -overlay` use
// it. It returns the path of the latter.
func (m *mutant) overlay(directory string) (string, error) {
	content, err := m.apply()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(directory, "mutant.go")
	if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

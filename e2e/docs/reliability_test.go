// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var (
	nextBlock = regexp.MustCompile(`\n\n|\n- |\n\|`)
	testName  = regexp.MustCompile(`^func (Test\w+)\(`)
)

// promise is a part of the page, and what fails if it is not true.
type promise struct {
	Part string `json:"part"` // words of its beginning, which the page has once

	Tests      []string `json:"tests"`      // with the name of a row after a slash
	Faults     []string `json:"faults"`     // rows of e2e/faults
	Simulation []string `json:"simulation"` // promises and scenarios
	Untested   string   `json:"untested"`   // why there is none
}

// TestEachPromiseHasItsTests: testdata/promises.yaml names tests for each part of the page, and all of them
// exist.
func TestEachPromiseHasItsTests(t *testing.T) {
	t.Parallel()
	var promises []promise
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "e2e/docs/testdata/promises.yaml")), &promises))
	tests, sources := testsOfTheRepository(t)
	has := func(text string) bool { return strings.Contains(sources, text) } // A failure would print all sources.
	for _, p := range promises {
		assert.True(t, len(p.Tests)+len(p.Faults)+len(p.Simulation) > 0 || p.Untested != "", p.Part)
		for _, test := range p.Tests {
			name, row, _ := strings.Cut(test, "/")
			assert.Contains(t, tests, name, p.Part)
			assert.True(t, has(row), "%s has no row %s", name, row)
		}
		for _, name := range append(p.Faults, p.Simulation...) {
			assert.True(t, has(`"`+name+`"`), "%s: %s", p.Part, name)
		}
	}
	page := fence.ReplaceAllString(harness.Read(t, "docs/reliability.md"), "")
	for _, p := range promises {
		assert.Equal(t, 1, strings.Count(oneLine(page), p.Part), "how often the page has: %s", p.Part)
	}
	for _, block := range nextBlock.Split(page, -1) {
		isTested := func(p promise) bool { return strings.Contains(oneLine(block), p.Part) }
		assert.True(t, !isProse(block) || slices.ContainsFunc(promises, isTested), "no test is named for: %s", block)
	}
}

// oneLine is a text without its line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// isProse reports whether a block says something: it is no heading, no head of a table, and no sentence
// that leads to a list.
func isProse(block string) bool {
	block = strings.TrimSpace(block)
	isOther := func(begin string) bool { return strings.HasPrefix(block, begin) }
	return block != "" && !slices.ContainsFunc([]string{"#", "|", "---"}, isOther) && !strings.HasSuffix(block, ":")
}

// testsOfTheRepository are the names of all tests, and the texts of the files that have them or the
// simulation.
func testsOfTheRepository(t *testing.T) (names []string, sources string) {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(harness.InRepository(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "build" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"), !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "simulation"):
			return nil
		}
		source, err := os.ReadFile(path)
		all.Write(source)
		for line := range strings.Lines(string(source)) {
			if match := testName.FindStringSubmatch(line); match != nil {
				names = append(names, match[1])
			}
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names, all.String()
}

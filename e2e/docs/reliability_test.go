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

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var (
	comment   = regexp.MustCompile(`<!-- (.*?) -->`)
	nextBlock = regexp.MustCompile(`\n\n|\n- |\n\|`)
	testName  = regexp.MustCompile(`^func (Test\w+)\(`)
)

// TestEachPromiseNamesItsTests: comments on the page name the tests that fail if a sentence is not true.
// The tests exist, and no part of the page is without one.
func TestEachPromiseNamesItsTests(t *testing.T) {
	t.Parallel()
	page := fence.ReplaceAllString(harness.Read(t, "docs/reliability.md"), "")
	tests, sources := testsOfTheRepository(t)
	has := func(text string) bool { return strings.Contains(sources, text) } // A failure would print all sources.
	for _, match := range comment.FindAllStringSubmatch(page, -1) {
		for _, entry := range strings.Split(match[1], "; ") {
			kind, name, other := strings.Cut(entry, ": ")
			switch {
			case other && (kind == "fault" || kind == "simulation"):
				assert.True(t, has(`"`+name+`"`), entry)
				continue
			case other && kind == "no test": // With the reason.
				continue
			}
			for _, name := range strings.Split(entry, ", ") {
				name, row, _ := strings.Cut(name, "/")
				assert.Contains(t, tests, name)
				assert.True(t, has(row), "%s has no row %s", name, row)
			}
		}
	}
	for _, block := range nextBlock.Split(page, -1) {
		if isProse(block) {
			assert.Regexp(t, comment, block, "no test is named for this part of the page")
		}
	}
}

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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var update = flag.Bool("update", false, "write the golden file")

func TestPage(t *testing.T) {
	older := result{
		Kubernetes: "1.9.11", Commit: "0123456789", Date: "2026-01-02",
		Features: map[string]bool{features.NoManagedFields.Name: false, features.Metadata.Name: true},
		Tests:    counts{Passed: 23, Failed: 1, Skipped: 2},
		Failed:   []string{"TestA/one case"}, Skipped: []string{"TestB", "TestC"},
	}
	newer := result{
		Kubernetes: "1.10.0", Commit: "9876543210", Date: "2026-01-03",
		Features: map[string]bool{features.NoManagedFields.Name: true, features.Metadata.Name: true},
		Tests:    counts{Passed: 26}, Repeated: []string{"TestD"},
	}
	onKine := newer
	onKine.Store, onKine.Repeated = "kine v0.2.0", nil
	p := page{Results: []result{older, newer, onKine}, Untested: []string{"1.9.12", "1.9.13"}}
	file := filepath.Join(t.TempDir(), "compatibility.md")
	require.NoError(t, p.write(file))

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	golden := filepath.Join("testdata", "page.md")
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o600))
	}
	expected, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(expected), string(text), "go test ./versions -update writes the file")

	empty := page{}
	assert.ErrorContains(t, empty.write(file), "no results")
}

// TestThePageHasTheTextOfItsTemplate in both directions, so that the next run drops nothing.
func TestThePageHasTheTextOfItsTemplate(t *testing.T) {
	written := harness.Read(t, "docs", "compatibility.md")
	action := regexp.MustCompile(`\{\{.*?\}\}`)
	var patterns []*regexp.Regexp
	for line := range strings.Lines(pageText) {
		line = strings.TrimSpace(line)
		if !action.MatchString(line) {
			assert.Contains(t, written, line)
		}
		parts := action.Split(line, -1)
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		patterns = append(patterns, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	for line := range strings.Lines(written) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|") || line == "" {
			continue
		}
		assert.True(t, slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool {
			return strings.Trim(p.String(), "^.*$") != "" && p.MatchString(line)
		}), "the template lacks: %s", line)
	}
}

// TestThePageIsOfThePinnedVersions: a new oldest or newest version, which CI runs, is tested before
// it is pinned.
func TestThePageIsOfThePinnedVersions(t *testing.T) {
	pinned, err := pinned(harness.InRepository())
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| \|(.*)\|$`).FindStringSubmatch(harness.Read(t, "docs", "compatibility.md"))
	require.NotNil(t, row)
	var tested []string
	for column := range strings.SplitSeq(row[1], "|") {
		tested = append(tested, strings.Fields(column)[0])
	}
	assert.Subset(t, pinned, tested, "run make test-versions")
	newest, oldest := pinned[0], pinned[1] // The newest is in tools/kubernetes; the others follow in order.
	assert.Contains(t, tested, oldest, "run make test-versions")
	assert.Contains(t, tested, newest, "run make test-versions")
}

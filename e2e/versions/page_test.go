// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
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
		Features: map[string]bool{features.StreamingLists.Name: false, features.Metadata.Name: true},
		Areas:    map[string]counts{areas[0].title: {Passed: 3, Failed: 1}, areas[1].title: {Passed: 20, Skipped: 2}},
		Failed:   []string{"TestA/one case"}, Skipped: []string{"TestB", "TestC"},
	}
	newer := result{
		Kubernetes: "1.10.0", Commit: "9876543210", Date: "2026-01-03",
		Features: map[string]bool{features.StreamingLists.Name: true, features.Metadata.Name: true},
		Areas:    map[string]counts{areas[0].title: {Passed: 4}, areas[1].title: {Passed: 22}},
		Repeated: []string{"TestD"},
	}
	p := &page{docs: t.TempDir()}
	p.keep(newer)
	p.keep(result{Kubernetes: "1.9.10"})
	p.keep(older) // It replaces the other version of the same minor.
	require.NoError(t, p.write())

	text, err := os.ReadFile(filepath.Join(p.docs, "compatibility.md"))
	require.NoError(t, err)
	golden := filepath.Join("testdata", "page.md")
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o600))
	}
	expected, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(expected), string(text), "go test ./versions -update writes the file")

	read, err := readPage(p.docs)
	require.NoError(t, err)
	assert.Equal(t, []result{older, newer}, read.results)
}

// TestThePageHasThePinnedVersions: whoever pins another version also tests it.
func TestThePageHasThePinnedVersions(t *testing.T) {
	p, err := readPage(harness.InRepository("docs"))
	require.NoError(t, err)
	var tested []string
	for _, r := range p.results {
		tested = append(tested, r.Kubernetes)
	}
	modules, err := filepath.Glob(harness.InRepository("tools", "kubernetes*", "go.mod"))
	require.NoError(t, err)
	var pinned []string
	for _, module := range modules {
		text, err := os.ReadFile(module)
		require.NoError(t, err)
		version := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)`).FindSubmatch(text)
		require.NotNil(t, version, module)
		pinned = append(pinned, string(version[1]))
	}
	assert.ElementsMatch(t, pinned, tested, "run make test-versions")

	text, err := render(p.results)
	require.NoError(t, err)
	assert.Equal(t, harness.Read(t, "docs", "compatibility.md"), text, "docs/compatibility.md: run go run ./versions -render in e2e/")
}

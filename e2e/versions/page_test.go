// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	onKine := newer
	onKine.Store, onKine.Repeated = "kine v0.2.0", nil
	repository := t.TempDir()
	writeModules(t, repository, "1.9.11", "1.10.0", "1.8.15")
	p, err := readPage(repository)
	require.NoError(t, err)
	p.keep(newer)
	p.keep(result{Kubernetes: "1.9.10"})
	p.keep(older) // It replaces the other version of the same minor.
	p.keep(result{Kubernetes: "1.10.0", Store: "kine v0.1.0"})
	p.keep(onKine) // It replaces the other version of kine.
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

	read, err := readPage(repository)
	require.NoError(t, err)
	assert.Equal(t, []result{older, newer, onKine}, read.results)
}

// writeModules writes the modules that pin versions of Kubernetes.
func writeModules(t *testing.T, repository string, versions ...string) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(repository, "docs"), 0o700))
	for _, version := range versions {
		folder := filepath.Join(repository, "tools", "kubernetes-"+version)
		require.NoError(t, os.MkdirAll(folder, 0o700))
		module := fmt.Appendf(nil, "require (\n\tk8s.io/kubernetes v%s // indirect\n)\n", version)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), module, 0o600))
	}
}

// TestThePageIsOfThePinnedVersions: a new oldest or newest version, which CI runs, is tested before
// it is pinned.
func TestThePageIsOfThePinnedVersions(t *testing.T) {
	p, err := readPage(harness.InRepository())
	require.NoError(t, err)
	var tested []string
	for _, r := range p.results {
		tested = append(tested, r.Kubernetes)
	}
	assert.Subset(t, p.pinned, tested, "run make test-versions")
	assert.Contains(t, tested, p.pinned[0], "run make test-versions")
	assert.Contains(t, tested, p.pinned[len(p.pinned)-1], "run make test-versions")

	text, err := p.render()
	require.NoError(t, err)
	assert.Equal(t, harness.Read(t, "docs", "compatibility.md"), text, "run go run ./versions -render in e2e/")
}

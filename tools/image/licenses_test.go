// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newCache returns a module cache with these files.
func newCache(t *testing.T, files map[string]string) string {
	t.Helper()
	cache := t.TempDir()
	for path, text := range files {
		path = filepath.Join(cache, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return cache
}

func TestLicensesAndNoticesAccompanyTheProgram(t *testing.T) {
	t.Parallel()
	cache := newCache(t, map[string]string{
		"example.com/one@v1.0.0/LICENSE":        "Everybody may use it.\n",
		"example.com/one@v1.0.0/NOTICE.txt":     "Made by one.",
		"example.com/one@v1.0.0/license.go":     "package license",
		"example.com/two@v1.0.0/LICENCE.md":     "Everybody may use it.",
		"example.com/!fork/v2@v2.0.1/COPYING":   "Nobody may sell it.",
		"example.com/required@v1.0.0/LICENSE":   "It is not in the program.",
		"example.com/one@v1.0.0/sub/LICENSE":    "Of a part that may not be in the program.",
		"example.com/unused@v1.0.0/LICENSE.txt": "It is not in the program either.",
	})
	text, err := licenses(&buildinfo.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/one", Version: "v1.0.0"},
		{Path: "example.com/two", Version: "v1.0.0"},
		{Path: "example.com/required", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/Fork/v2", Version: "v2.0.1"}},
		{Path: "example.com/here", Version: "v0.0.0", Replace: &debug.Module{Path: "../..", Version: "(devel)"}},
	}}, cache)
	require.NoError(t, err)
	line := strings.Repeat("=", 80) + "\n"
	_, sections, found := strings.Cut(string(text), "\n\n")
	require.True(t, found)
	assert.Equal(t, line+"example.com/one v1.0.0\nexample.com/two v1.0.0\n\nEverybody may use it.\n\n"+
		line+"example.com/one v1.0.0\n\nMade by one.\n\n"+
		line+"example.com/Fork/v2 v2.0.1\n\nNobody may sell it.\n", sections)
}

func TestModulesWithoutALicenseAreRejected(t *testing.T) {
	t.Parallel()
	cache := newCache(t, map[string]string{"example.com/secret@v1.0.0/README": "Nobody may use it."})
	for name, expected := range map[string]string{"secret": "has no file LICENSE", "missing": "no such file"} {
		_, err := licenses(&buildinfo.BuildInfo{Deps: []*debug.Module{{Path: "example.com/" + name, Version: "v1.0.0"}}}, cache)
		assert.ErrorContains(t, err, "no license of example.com/"+name)
		assert.ErrorContains(t, err, expected)
	}
}

// SPDX-License-Identifier: Apache-2.0

package internal

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestModulesShareVersions: what make test builds, and what the linter reads, has the versions of
// this module's dependencies. With another version of client-go or of a package below it, Go would
// compile hundreds of packages once more. To align a module: go get MODULE@VERSION in its directory.
// If another dependency asks for more, exclude that version. A replacement is not enough: with
// -trimpath, what Go compiles has the version that is replaced.
func TestModulesShareVersions(t *testing.T) {
	t.Parallel()
	ours := versionsIn(t, "go.mod")
	require.Greater(t, len(ours), 30)
	for _, module := range []string{
		"controlplane", "distribution/literalenvprovider", "distribution/otelcol", "distribution/pageexporter",
		"distribution/prometheus", "distribution/incidentsconnector", "distribution/ownersprocessor", "distribution/statusextension",
		"e2e", "resolver", "resolver/test", "tools", "tools/kubernetes",
	} {
		theirs, shared := versionsIn(t, module+"/go.mod"), 0
		for dependency, version := range ours {
			if theirs[dependency] == "" {
				continue
			}
			shared++
			assert.Equal(t, version, theirs[dependency], "%s in %s/go.mod", dependency, module)
		}
		assert.Positive(t, shared, module)
	}
}

// TestOwnModulesHaveTheVersion of the file VERSION: users get a component's module without the
// replacements in its go.mod.
func TestOwnModulesHaveTheVersion(t *testing.T) {
	t.Parallel()
	version := strings.TrimSpace(read(t, "VERSION"))
	for _, file := range []string{
		"distribution/builder.yaml", "distribution/otelcol/go.mod", "distribution/pageexporter/go.mod", "distribution/incidentsconnector/go.mod",
		"distribution/ownersprocessor/go.mod", "go.mod",
	} {
		named := own.FindAllStringSubmatch(read(t, file), -1)
		assert.NotEmpty(t, named, file)
		for _, match := range named {
			assert.Equal(t, "v"+version, match[2], "%s in %s", match[1], file)
		}
	}
}

var own = regexp.MustCompile(`(github\.com/kubeevents/\S+) (v\d\S*)`)

var required = regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+) (v\d\S*)`)

// versionsIn returns the version of each dependency in a go.mod, except for modules of this
// repository.
func versionsIn(t *testing.T, path string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, match := range required.FindAllStringSubmatch(read(t, path), -1) {
		if !strings.HasPrefix(match[1], "github.com/kubeevents/") {
			versions[match[1]] = match[2]
		}
	}
	return versions
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", path))
	require.NoError(t, err)
	return string(content)
}

// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstalled(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(second, "runc"), nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(second, "text"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(second, "directory"), 0o700))
	path := first + ":" + second
	for name, test := range map[string]struct {
		program, path string
		want          bool
	}{
		"in the second directory":     {"runc", path, true},
		"in no directory":             {"runc", first, false},
		"with its directory":          {filepath.Join(second, "runc"), "", true},
		"missing, with its directory": {filepath.Join(first, "runc"), path, false},
		"not a program":               {"text", path, false},
		"a directory":                 {"directory", path, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, isInstalled(test.program, test.path)) })
	}
}

func TestMissingNamesThePackage(t *testing.T) {
	saved := requirements
	t.Cleanup(func() { requirements = saved })
	requirements = []requirement{{"/no/such/program", "some-package"}, {"/bin/sh", "dash"}}
	missing := Missing()
	assert.Contains(t, missing, "/no/such/program (Debian: apt-get install some-package)")
	assert.NotContains(t, missing, "/bin/sh (Debian: apt-get install dash)")
}

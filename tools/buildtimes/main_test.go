// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTimeOfPackagesIsSummedByModule(t *testing.T) {
	t.Parallel()
	graph := filepath.Join(t.TempDir(), "graph.json")
	require.NoError(t, os.WriteFile(graph, []byte(`[
		{"Mode": "build", "Package": "k8s.io/api/apps/v1", "CmdUser": 3000000000, "CmdSys": 500000000},
		{"Mode": "build", "Package": "k8s.io/api/core/v1", "CmdUser": 6000000000},
		{"Mode": "build", "Package": "github.com/a/b/c", "CmdUser": 1000000000},
		{"Mode": "build", "Package": "net/http", "CmdUser": 2000000000},
		{"Mode": "build", "Package": "in/the/cache"},
		{"Mode": "link", "Package": "github.com/a/b/cmd", "CmdUser": 4000000000}
	]`), 0o600))
	var printed strings.Builder
	require.NoError(t, run([]string{graph}, &printed))
	assert.Equal(t, `
 seconds  packages of module
    16.5  all (5)
     9.5  k8s.io/api (2)
     4.0  link github.com/a/b/cmd
     2.0  Go itself
     1.0  github.com/a/b

 seconds  package
    16.5  all (5)
     6.0  k8s.io/api/core/v1
     4.0  link github.com/a/b/cmd
     3.5  k8s.io/api/apps/v1
     2.0  net/http
     1.0  github.com/a/b/c
`, printed.String())
}

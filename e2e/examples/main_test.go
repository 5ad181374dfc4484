// SPDX-License-Identifier: Apache-2.0

// Package examples runs every recipe of examples/, with exactly its files, against a real control
// plane; that of backends runs where the backends are, in e2e/backends. Where a recipe is about
// controllers that are not here, the test applies what they would make, and records the events that
// they would.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// kube is the cluster that all recipes share, each in a namespace of its own.
var kube *harness.Cluster

func TestMain(m *testing.M) {
	os.Exit(harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2}, &kube))
}

// reader has the permissions of the Collector wherever it is deployed.
const reader = "deploy/manifests/default.yaml"

// integrations has its permissions for other projects.
const integrations = "deploy/manifests/integrations.yaml"

// run runs the recipe's Collector with the permissions that the README lists.
func run(t *testing.T, recipe string, env ...string) *harness.Collector {
	t.Helper()
	roles := []string{reader, integrations}
	if own := file(recipe, "clusterrole.yaml"); exists(own) {
		roles = append(roles, own)
	}
	kubeconfig := kube.KubeconfigFor(t, recipe, roles...)
	return harness.Run(t, harness.Otelcol(t), harness.InRepository("examples", recipe, "collector.yaml"), append(env, "KUBECONFIG="+kubeconfig)...)
}

func file(recipe, name string) string { return filepath.Join("examples", recipe, name) }

func exists(path string) bool {
	_, err := os.Stat(harness.InRepository(path))
	return err == nil
}

// kubectl skips the test where there is none.
func kubectl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("this recipe runs a script that calls kubectl, which is not installed: ", err)
	}
}

// commandsOf are the commands of the recipe's README, but for the Collector itself.
func commandsOf(t *testing.T, recipe string) (commands []string) {
	t.Helper()
	_, block, found := strings.Cut(harness.Read(t, "examples", recipe, "README.md"), "```sh\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	for command := range strings.Lines(block) {
		if !strings.Contains(command, "build/otelcol-kubeevents") {
			commands = append(commands, command)
		}
	}
	return commands
}

// sh runs a command from the repository's root, as an administrator.
func sh(t *testing.T, command string) {
	t.Helper()
	_, err := proc.Shell(harness.InRepository(), command, "KUBECONFIG="+kube.Kubeconfig())
	require.NoError(t, err)
}

var (
	pathInExamples = regexp.MustCompile(`examples/[\w./-]+\.(?:yaml|sh)`)
	variable       = regexp.MustCompile(`\$\{env:(\w+)\}`)
)

// TestCommandsNameWhatThereIs: the files that the commands of the READMEs name, and the variables
// without which a configuration does not work.
func TestCommandsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob(harness.InRepository("examples", "*", "README.md"))
	require.NoError(t, err)
	require.NotEmpty(t, readmes)
	for _, readme := range append(readmes, harness.InRepository("examples", "README.md")) {
		text, err := os.ReadFile(readme)
		require.NoError(t, err)
		for _, path := range pathInExamples.FindAllString(string(text), -1) {
			assert.True(t, exists(path), "%s names %s", readme, path)
		}
		configs, err := filepath.Glob(filepath.Join(filepath.Dir(readme), "collector*.yaml"))
		require.NoError(t, err)
		for _, path := range configs {
			config, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, name := range variable.FindAllStringSubmatch(string(config), -1) {
				assert.Contains(t, string(text), name[1], readme)
			}
		}
	}
}

func TestEveryRecipeIsListedAndNamesItsFiles(t *testing.T) {
	t.Parallel()
	recipes, err := os.ReadDir(harness.InRepository("examples"))
	require.NoError(t, err)
	list := harness.Read(t, "examples", "README.md")
	for _, recipe := range recipes {
		if !recipe.IsDir() {
			continue
		}
		assert.Contains(t, list, "["+recipe.Name()+"]("+recipe.Name()+")")
		readme := harness.Read(t, "examples", recipe.Name(), "README.md")
		files, err := os.ReadDir(harness.InRepository("examples", recipe.Name()))
		require.NoError(t, err)
		for _, f := range files {
			if f.Name() != "README.md" {
				assert.Contains(t, readme, f.Name(), "the README of %s", recipe.Name())
			}
		}
	}
}

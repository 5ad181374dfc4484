// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// program is how READMEs name the Collector.
const program = "build/otelcol-kubeevents"

// kubectl skips the test where there is none.
func kubectl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("this recipe has commands that call kubectl, which is not installed: ", err)
	}
}

// commandsIn are the commands in the shell blocks of a README.
func commandsIn(readme string) (commands []string) {
	for _, block := range strings.Split(readme, "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for command := range strings.Lines(block) {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// commandsOf are the commands of the recipe's README, but for the Collector itself.
func commandsOf(t *testing.T, recipe string) (commands []string) {
	t.Helper()
	for _, command := range commandsIn(harness.Read(t, "examples", recipe, "README.md")) {
		if !strings.Contains(command, program) {
			commands = append(commands, command)
		}
	}
	require.NotEmpty(t, commands)
	return commands
}

// sh runs a command from the repository's root, as an administrator.
func sh(t *testing.T, command string) {
	t.Helper()
	_, err := process.Shell(harness.InRepository(), command, "KUBECONFIG="+kube.Kubeconfig())
	require.NoError(t, err)
}

// runCommand runs the Collector with the command of the recipe's README, which shows the records on
// the terminal.
func runCommand(t *testing.T, recipe string) *harness.Collector {
	t.Helper()
	for _, line := range commandsIn(harness.Read(t, "examples", recipe, "README.md")) {
		if strings.Contains(line, program) && strings.Contains(line, "terminal.yaml") {
			line = strings.Replace(line, program, harness.Otelcol(t), 1)
			command := exec.Command("sh", "-c", "exec env "+line)
			command.Dir = harness.InRepository()
			return harness.Start(t, command, "KUBECONFIG="+kubeconfigFor(t, recipe))
		}
	}
	t.Fatal("the README has no command of the Collector with terminal.yaml: ", recipe)
	return nil
}

// TestCommandsOfTheCollectorAreValid: the Collector accepts the configurations and options of every
// command in the READMEs.
func TestCommandsOfTheCollectorAreValid(t *testing.T) {
	t.Parallel()
	validated := 0
	for _, readme := range readmes(t) {
		text, err := os.ReadFile(readme)
		require.NoError(t, err)
		for _, command := range commandsIn(string(text)) {
			if !strings.Contains(command, program+" --config examples/") {
				continue
			}
			command = strings.Replace(strings.TrimSuffix(command, "&"), program, harness.Otelcol(t)+" validate", 1)
			_, err := process.Shell(harness.InRepository(), command)
			assert.NoError(t, err, readme)
			validated++
		}
	}
	assert.Greater(t, validated, 10)
}

// readmes are the paths of all READMEs of recipes.
func readmes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(harness.InRepository("examples", "*", "README.md"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return append(paths, harness.InRepository("examples", "README.md"))
}

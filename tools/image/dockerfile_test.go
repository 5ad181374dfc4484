// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dockerfile runs the steps of a Dockerfile without a container engine. This machine is in place of the image golang,
// and each stage has a directory in place of its files. It knows only what examples/own-image has.
type dockerfile struct {
	context     string            // the directory of the Dockerfile
	env         []string          // of each step RUN
	stages      map[string]string // the directory of each stage, by name
	root, work  string            // of the current stage
	onMachine   bool              // whether the current stage is this machine
	user        string
	entrypoint  []string
	instruction string
}

// buildDockerfile returns the last stage.
func buildDockerfile(t *testing.T, context string, env []string) *dockerfile {
	t.Helper()
	d := &dockerfile{context: context, env: env, stages: map[string]string{}}
	for line := range strings.Lines(read(t, context, "Dockerfile")) {
		d.instruction = strings.TrimSpace(line)
		name, arguments, _ := strings.Cut(d.instruction, " ")
		switch name {
		case "", "#":
		case "FROM":
			d.from(t, strings.Fields(arguments))
		case "WORKDIR":
			d.work = arguments
			require.NoError(t, os.MkdirAll(filepath.Join(d.root, d.work), 0o700))
		case "COPY":
			d.copy(t, strings.Fields(arguments))
		case "RUN":
			d.run(t, arguments)
		case "USER":
			d.user = arguments
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(arguments), &d.entrypoint))
		default:
			require.Fail(t, "an unknown instruction", d.instruction)
		}
	}
	return d
}

func (d *dockerfile) from(t *testing.T, arguments []string) {
	t.Helper()
	d.root, d.work, d.onMachine = t.TempDir(), "/", arguments[0] != "scratch"
	if d.onMachine {
		require.Regexp(t, `^golang:1\.\d+$`, arguments[0])
	}
	if len(arguments) == 3 {
		d.stages[arguments[2]] = d.root
	}
}

// copy copies a file of the context or of another stage. A stage that is this machine has its files, too.
func (d *dockerfile) copy(t *testing.T, arguments []string) {
	t.Helper()
	source := d.context
	stage, fromStage := strings.CutPrefix(arguments[0], "--from=")
	if fromStage {
		source, arguments = d.stages[stage], arguments[1:]
		require.NotEmpty(t, source, d.instruction)
	}
	require.Len(t, arguments, 2, d.instruction)
	content, err := os.ReadFile(filepath.Join(source, arguments[0]))
	if os.IsNotExist(err) && fromStage {
		content, err = os.ReadFile(arguments[0])
	}
	require.NoError(t, err, d.instruction)
	to := arguments[1]
	if !filepath.IsAbs(to) {
		to = filepath.Join(d.work, to) + string(filepath.Separator)
	}
	if strings.HasSuffix(to, "/") {
		to = filepath.Join(to, filepath.Base(arguments[0]))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(d.root, to)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.root, to), content, 0o700))
}

func (d *dockerfile) run(t *testing.T, script string) {
	t.Helper()
	require.True(t, d.onMachine, "scratch has no shell: %s", d.instruction)
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir = filepath.Join(d.root, d.work)
	command.Env = append(os.Environ(), d.env...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", d.instruction, output)
}

// program is the path of what the image starts, which needs nothing else: no loader and no library.
func (d *dockerfile) program(t *testing.T) string {
	t.Helper()
	require.Len(t, d.entrypoint, 1)
	program := filepath.Join(d.root, d.entrypoint[0])
	binary, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { require.NoError(t, binary.Close()) }()
	for _, part := range binary.Progs {
		assert.NotEqual(t, elf.PT_INTERP, part.Type, "scratch has no loader")
	}
	return program
}

// TestTheDockerfileForUsersHasTheVersionsOfTheDistribution: those of Go and of the builder. TestRehearsal runs its steps.
func TestTheDockerfileForUsersHasTheVersionsOfTheDistribution(t *testing.T) {
	t.Parallel()
	text := read(t, repository, "examples/own-image/Dockerfile")
	_, goVersion, _ := strings.Cut(read(t, repository, "go.mod"), "\ngo ")
	_, builder, _ := strings.Cut(read(t, repository, "tools/collector/go.mod"), "go.opentelemetry.io/collector/cmd/builder ")
	step := "go run go.opentelemetry.io/collector/cmd/builder@" + strings.Fields(builder)[0] + " --config builder.yaml\n"
	assert.Contains(t, text, "FROM golang:"+strings.Join(strings.Split(goVersion, ".")[:2], ".")+" AS build\n")
	assert.Contains(t, text, step)
	assert.Contains(t, read(t, repository, "distribution/README.md"), step)
	assert.Contains(t, text, "\nUSER 65532:65532\n", "the user of the chart's pods")
}

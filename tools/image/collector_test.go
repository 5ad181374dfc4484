// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runTarget runs a target in a directory with the sources.
func runTarget(t *testing.T, sources string, arguments ...string) (printed string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", arguments...)
	command.Dir = sources
	for _, variable := range os.Environ() {
		// Of the make that runs this test.
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			command.Env = append(command.Env, variable)
		}
	}
	text, err := command.CombinedOutput()
	return string(text), err
}

// makeImage makes the image of the Collector for the processor of this machine, with the sources in a
// directory.
func makeImage(t *testing.T, sources string, variables ...string) v1.Image {
	t.Helper()
	output := t.TempDir()
	printed, err := runTarget(t, sources, append(variables, "image", "IMAGE="+testName, "IMAGE_PLATFORMS=linux/"+runtime.GOARCH, "IMAGE_OUTPUT="+output)...)
	require.NoError(t, err, printed)
	return load(t, filepath.Join(output, "otelcol-kubeevents-linux-"+runtime.GOARCH+".tar"))
}

// TestTheImageOfTheCollector looks at what make image makes. Without the Collector's program, building it
// takes minutes, so the test is then skipped.
func TestTheImageOfTheCollector(t *testing.T) {
	t.Parallel()
	built := filepath.Join(repository, "build", "dist", fmt.Sprintf("otelcol-kubeevents_%s_linux_%s", version(t), runtime.GOARCH))
	if _, err := os.Stat(built); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err, "make image builds it")
		}
		t.Skipf("%v: make image builds it", err)
	}
	i := makeImage(t, repository)
	root := rootOf(t, i)
	t.Run("the program needs nothing from the image", func(t *testing.T) { checkProgram(t, filepath.Join(root, title)) })
	t.Run("the modules of the program are listed with their licenses", func(t *testing.T) { checkModules(t, root) })
	t.Run("two builds of a commit are the same", func(t *testing.T) { checkSecondBuild(t, i) })
	if runtime.GOOS == "linux" {
		t.Run("the Collector starts with the default configuration", func(t *testing.T) { checkStart(t, i, root) })
		t.Run("the program has the components that the documentation lists", func(t *testing.T) { checkDocumentation(t, root) })
	}
}

func checkProgram(t *testing.T, program string) {
	binary, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = binary.Close() }()
	assert.Equal(t, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH], binary.Machine)
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
	for _, header := range binary.Progs {
		assert.NotEqual(t, elf.PT_INTERP, header.Type, "a static program has no dynamic linker")
	}
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(content, []byte("Antarctica/DumontDUrville")), "the image has no time zones, so the program has them")
}

func checkModules(t *testing.T, root string) {
	bom := decode(t, []byte(read(t, root, sbomPath)))
	info, err := buildinfo.ReadFile(filepath.Join(root, title))
	require.NoError(t, err)
	assert.Len(t, *bom.Components, len(info.Deps)+1, "all modules, and the standard library")
	assert.Contains(t, urls(bom), "pkg:golang/github.com/kubeevents/kubeeventsreceiver@v"+version(t))
	licenses := read(t, root, modulesPath)
	for _, m := range info.Deps {
		if m.Replace == nil {
			assert.Contains(t, licenses, "\n"+m.Path+" "+m.Version+"\n")
		}
	}
}

// checkSecondBuild builds the commit again, from a copy of the sources in another directory and without
// its Git history.
func checkSecondBuild(t *testing.T, one v1.Image) {
	config, err := one.ConfigFile()
	require.NoError(t, err)
	sources := t.TempDir()
	copySources(t, sources)
	two := makeImage(t, sources, "REVISION="+config.Config.Labels["org.opencontainers.image.revision"], fmt.Sprint("CREATED=", config.Created.Unix()))
	first, err := one.ConfigName()
	require.NoError(t, err)
	second, err := two.ConfigName()
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func checkStart(t *testing.T, i v1.Image, root string) {
	config, err := i.ConfigFile()
	require.NoError(t, err)
	program := filepath.Join(root, config.Config.Entrypoint[0])
	assert.Equal(t, "otelcol-kubeevents version "+version(t)+"\n", outputOf(t, program, "--version"))
	arguments := []string{"validate"}
	for _, argument := range config.Config.Cmd {
		arguments = append(arguments, strings.Replace(argument, "=/", "="+root+"/", 1))
	}
	assert.Empty(t, outputOf(t, program, arguments...))
}

// outputOf returns what a program prints, which must succeed.
func outputOf(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return string(output)
}

// checkDocumentation: the table of distribution/README.md names what the program has, and nothing else.
func checkDocumentation(t *testing.T, root string) {
	components, _, found := strings.Cut(outputOf(t, filepath.Join(root, title), "components"), "\nproviders:")
	require.True(t, found)
	matches := func(pattern, text string) (all []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
		return all
	}
	rows := matches(`(?m)^\| (?:receivers|connectors|processors|exporters|extensions) \|(.*)$`, read(t, repository, "distribution/README.md"))
	assert.ElementsMatch(t, matches("`([^`]+)`", strings.Join(rows, "")), matches(`(?m)^ +- name: (\S+)$`, components))
}

// copySources copies the files that Git knows, and those that it would add.
func copySources(t *testing.T, to string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	command.Dir = repository
	var stderr bytes.Buffer
	command.Stderr = &stderr
	list, err := command.Output()
	if err != nil {
		t.Skipf("the sources are not a Git repository: %v: %s", err, stderr.String())
	}
	for _, path := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(repository, path))
		if os.IsNotExist(err) {
			continue // It was removed, but not yet from Git.
		}
		require.NoError(t, err)
		content, err := os.ReadFile(filepath.Join(repository, path))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, path), content, info.Mode().Perm()))
	}
}

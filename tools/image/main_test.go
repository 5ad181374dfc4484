// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// repository is the directory of the sources.
const repository = "../.."

// testName is the name of the images that tests make.
const testName = "registry.example.com/test/otelcol-kubeevents:1.2.3"

// compile compiles a program that does nothing, for a platform: it is small, so tests are fast.
func compile(t *testing.T, goos, goarch string) string {
	t.Helper()
	directory := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "go.mod"), []byte("module example.com/small\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "program", ".")
	command.Dir = directory
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return filepath.Join(directory, "program")
}

// buildSmall runs `image build` with small programs for both platforms, and returns the directory
// of the archives and what was printed.
func buildSmall(t *testing.T) (directory, printed string) {
	t.Helper()
	directory = filepath.Join(t.TempDir(), "archives")
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"build", "-name", testName, "-revision", "0123abcd", "-created", "1767225600", "-repository", repository, "-output", directory,
		compile(t, "linux", "amd64"), compile(t, "linux", "arm64"),
	}, &stdout))
	return directory, stdout.String()
}

// load reads the image of an archive, as `docker load` does.
func load(t *testing.T, archive string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(testName)
	require.NoError(t, err)
	i, err := tarball.ImageFromPath(archive, &tag)
	require.NoError(t, err)
	return i
}

// rootOf unpacks what a container of an image has as its root.
func rootOf(t *testing.T, i v1.Image) string {
	t.Helper()
	root, content := t.TempDir(), mutate.Extract(i)
	defer content.Close()
	command := exec.CommandContext(t.Context(), "tar", "-x", "-C", root, "--no-same-owner")
	command.Stdin = content
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return root
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

func version(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(read(t, repository, "VERSION"))
}

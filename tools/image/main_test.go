// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
)

// repository is the directory of the sources.
const repository = "../.."

// temporary is a directory for what tests share. It is removed at the end.
var temporary string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	var err error
	if temporary, err = os.MkdirTemp("", "image-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	return m.Run()
}

// testName is the name of the images that tests make.
const testName = "registry.example.com/test/otelcol-kubeevents:1.2.3"

// compiled are the small programs, which all tests share, by platform.
var compiled = struct {
	sync.Mutex

	paths map[string]string
}{paths: map[string]string{}}

// compile compiles a program that does nothing, for a platform: it is small, so tests are fast.
func compile(t *testing.T, goos, goarch string) string {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	platform := goos + "-" + goarch
	if compiled.paths[platform] == "" {
		compiled.paths[platform] = compileSmall(t, goos, goarch)
	}
	return compiled.paths[platform]
}

func compileSmall(t *testing.T, goos, goarch string) string {
	t.Helper()
	directory, err := os.MkdirTemp(temporary, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "go.mod"), []byte("module example.com/small\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	path := filepath.Join(directory, goos+"-"+goarch)
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	command.Dir = directory
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
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

// open returns the index of an archive. Its blobs are there until the test ends.
func open(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	index, err := readArchive(archive, t.TempDir())
	require.NoError(t, err)
	return index
}

// onlyImage returns the image of an archive for one platform.
func onlyImage(t *testing.T, archive string) v1.Image {
	t.Helper()
	index := open(t, archive)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	i, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return i
}

func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "VERSION"))
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

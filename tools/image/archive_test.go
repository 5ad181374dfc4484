// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startRegistry starts a registry in memory, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestPushedPlatformsArePulledByOneName: the archive of a platform has the same image.
func TestPushedPlatformsArePulledByOneName(t *testing.T) {
	t.Parallel()
	directory, built := buildSmall(t)
	to := startRegistry(t) + "/team/otelcol-kubeevents:1.2.3"
	var printed bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"push", filepath.Join(directory, "oci"), to}, &printed))

	tag, err := name.NewTag(to)
	require.NoError(t, err)
	index, err := remote.Index(tag, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Equal(t, "pushed "+to+"@"+digest.String()+"\n", printed.String())
	assert.Contains(t, built, digest.String()+" "+filepath.Join(directory, "oci")+"\n")
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, types.OCIImageIndex, manifest.MediaType)
	assert.Equal(t, "Apache-2.0", manifest.Annotations["org.opencontainers.image.licenses"], "registries show it")

	for _, architecture := range []string{"amd64", "arm64"} {
		platform := v1.Platform{OS: "linux", Architecture: architecture}
		pulled, err := remote.Image(tag, remote.WithPlatform(platform), remote.WithContext(t.Context()))
		require.NoError(t, err)
		checkLabels(t, pulled, architecture)
		archive := load(t, filepath.Join(directory, "otelcol-kubeevents-linux-"+architecture+".tar"))
		require.NoError(t, validate.Image(archive))
		expected, err := pulled.ConfigName()
		require.NoError(t, err)
		loaded, err := archive.ConfigName()
		require.NoError(t, err)
		assert.Equal(t, expected, loaded)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments []string
		expected  string
	}{
		"none":                         {nil, "usage: "},
		"no such command":              {[]string{"pull", "directory", testName}, "usage: "},
		"no program":                   {[]string{"build", "-repository", repository}, "usage: "},
		"a missing program":            {[]string{"sbom", "-repository", repository, "/missing"}, "/missing"},
		"a name without a registry":    {[]string{"build", "-repository", repository, "-name", "image:1", "program"}, `"image:1" is not REGISTRY/NAME:TAG: `},
		"a push of nothing":            {[]string{"push", "/missing", testName}, "/missing"},
		"a push without a tag":         {[]string{"push", "/missing", "registry.example.com/image"}, "is not REGISTRY/NAME:TAG"},
		"a program for another system": {buildWith(compile(t, "windows", "amd64")), `the program is for "windows"`},
		"two programs for a platform":  {buildWith(compile(t, "linux", "amd64"), compile(t, "linux", "amd64")), "another program is also for linux/amd64"},
		"not a Go program":             {buildWith("main.go"), "main.go"},
	} {
		assert.ErrorContains(t, run(t.Context(), test.arguments, io.Discard), test.expected, name)
	}
}

// buildWith are arguments for an image of programs that cannot become one.
func buildWith(programs ...string) []string {
	return append([]string{"build", "-name", testName, "-repository", repository, "-output", "/missing"}, programs...)
}

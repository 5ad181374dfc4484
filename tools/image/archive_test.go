// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryEngineLoadsTheArchiveOfAPlatform: `docker load` of each version reads manifest.json, or
// the OCI image layout. containerd (ctr, kind) and Podman read the layout.
func TestEveryEngineLoadsTheArchiveOfAPlatform(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	for _, architecture := range []string{"amd64", "arm64"} {
		archive := filepath.Join(directory, "otelcol-kubeevents-linux-"+architecture+".tar")
		tag, err := name.NewTag(testName)
		require.NoError(t, err)
		docker, err := tarball.ImageFromPath(archive, &tag)
		require.NoError(t, err)
		require.NoError(t, validate.Image(docker))

		oci := onlyImage(t, archive)
		require.NoError(t, validate.Image(oci))
		assert.Equal(t, configDigest(t, oci), configDigest(t, docker), "both are the same image")
		manifest, err := oci.Manifest()
		require.NoError(t, err)
		assert.Equal(t, types.OCIManifestSchema1, manifest.MediaType)
		assert.Equal(t, types.OCIConfigJSON, manifest.Config.MediaType)
		assert.Equal(t, types.OCILayer, manifest.Layers[0].MediaType)

		entry := onlyEntry(t, open(t, archive))
		assert.Equal(t, "linux/"+architecture, entry.Platform.String())
		assert.Equal(t, map[string]string{"io.containerd.image.name": testName, "org.opencontainers.image.ref.name": "1.2.3"}, entry.Annotations)
	}
}

func TestTheArchiveOfAllPlatforms(t *testing.T) {
	t.Parallel()
	directory, printed := buildSmall(t)
	layout := open(t, filepath.Join(directory, "otelcol-kubeevents.tar"))
	require.NoError(t, validate.Index(layout))
	entry := onlyEntry(t, layout)
	assert.Equal(t, types.OCIImageIndex, entry.MediaType)
	assert.Equal(t, testName, entry.Annotations["io.containerd.image.name"])

	index, err := layout.ImageIndex(entry.Digest)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, "Apache-2.0", manifest.Annotations["org.opencontainers.image.licenses"], "registries show it")
	digests := map[string]string{"otelcol-kubeevents.tar": entry.Digest.String()}
	for _, part := range manifest.Manifests {
		archive := "otelcol-kubeevents-linux-" + part.Platform.Architecture + ".tar"
		digests[archive] = part.Digest.String()
		alone, err := onlyImage(t, filepath.Join(directory, archive)).Digest()
		require.NoError(t, err)
		assert.Equal(t, alone, part.Digest, "the image is the same in both archives")
	}
	assert.Len(t, digests, 3)
	for archive, digest := range digests {
		assert.Contains(t, printed, digest+" "+filepath.Join(directory, archive)+"\n")
	}
}

func TestTheSameProgramsGiveTheSameFiles(t *testing.T) {
	t.Parallel()
	one, _ := buildSmall(t)
	two, _ := buildSmall(t)
	names := filesIn(t, one)
	assert.Equal(t, []string{
		"otelcol-kubeevents-linux-amd64.cdx.json", "otelcol-kubeevents-linux-amd64.tar",
		"otelcol-kubeevents-linux-arm64.cdx.json", "otelcol-kubeevents-linux-arm64.tar", "otelcol-kubeevents.tar",
	}, names)
	assert.Equal(t, names, filesIn(t, two))
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(one, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(two, name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(a, b), name)
	}
}

func TestNamesOnDockerHub(t *testing.T) {
	t.Parallel()
	tag, err := name.NewTag("docker.io/someone/otelcol:1")
	require.NoError(t, err)
	assert.Equal(t, "docker.io/someone/otelcol:1", nameAnnotations(tag)["io.containerd.image.name"])
	tag, err = name.NewTag("index.docker.io/someone/otelcol:1")
	require.NoError(t, err)
	assert.Equal(t, "docker.io/someone/otelcol:1", nameAnnotations(tag)["io.containerd.image.name"], "containerd knows no other name of it")
}

func TestAnArchiveWritesOnlyBelowItsDirectory(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]tar.Header{
		"a path to another directory": {Typeflag: tar.TypeReg, Name: "../outside", Mode: 0o644},
		"an absolute path":            {Typeflag: tar.TypeReg, Name: "/outside", Mode: 0o644},
		"a link":                      {Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/", Mode: 0o777},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			to := tar.NewWriter(&archive)
			require.NoError(t, to.WriteHeader(&header))
			require.NoError(t, to.Close())
			directory := filepath.Join(t.TempDir(), "inside")
			require.NoError(t, os.Mkdir(directory, 0o700))
			assert.Error(t, unpack(&archive, directory))
			assert.Equal(t, []string{"inside"}, filesIn(t, filepath.Dir(directory)))
			assert.Empty(t, filesIn(t, directory))
		})
	}
}

func onlyEntry(t *testing.T, index v1.ImageIndex) v1.Descriptor {
	t.Helper()
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	return manifest.Manifests[0]
}

func configDigest(t *testing.T, i v1.Image) v1.Hash {
	t.Helper()
	digest, err := i.ConfigName()
	require.NoError(t, err)
	return digest
}

func filesIn(t *testing.T, directory string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

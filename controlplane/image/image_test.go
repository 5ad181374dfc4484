// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
)

// pack packs a program and returns the archive.
func pack(t *testing.T, names ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "program"), filepath.Join(dir, "archive.tar")
	require.NoError(t, os.WriteFile(program, []byte("content"), 0o600))
	require.NoError(t, image.Pack(archive, program, names...))
	data, err := os.ReadFile(archive)
	require.NoError(t, err)
	return data
}

// unpack returns the files of a tar and their modes.
func unpack(t *testing.T, archive []byte) (files map[string][]byte, modes map[string]int64) {
	t.Helper()
	files, modes = map[string][]byte{}, map[string]int64{}
	reader := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		require.NoError(t, err)
		files[header.Name], err = io.ReadAll(reader)
		require.NoError(t, err)
		modes[header.Name] = header.Mode
	}
}

func TestPack(t *testing.T) {
	files, _ := unpack(t, pack(t, "example.com/a:1", "example.com/b:2"))
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"], &manifest))
	require.Len(t, manifest, 1)
	assert.Equal(t, []string{"example.com/a:1", "example.com/b:2"}, manifest[0].RepoTags)
	require.Len(t, manifest[0].Layers, 1)
	layer := files[manifest[0].Layers[0]]

	var config struct {
		OS     string
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(files[manifest[0].Config], &config))
	assert.Equal(t, "linux", config.OS)
	assert.Equal(t, []string{"/program"}, config.Config.Entrypoint)
	assert.Equal(t, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}, config.RootFS.DiffIDs)

	content, modes := unpack(t, layer)
	assert.Equal(t, "content", string(content["program"]))
	assert.EqualValues(t, 0o755, modes["program"])
}

func TestPackTwice(t *testing.T) {
	first, second := pack(t, "example.com/a:1"), pack(t, "example.com/a:1")
	assert.Equal(t, first, second)
}

func TestPackWithoutProgram(t *testing.T) {
	assert.ErrorIs(t, image.Pack(filepath.Join(t.TempDir(), "archive"), "/no/such/program", "a:1"), os.ErrNotExist)
}

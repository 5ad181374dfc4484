// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
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

func TestPushedPlatformsArePulledByOneName(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	archive, to := filepath.Join(directory, "otelcol-kubeevents.tar"), startRegistry(t)+"/team/otelcol-kubeevents:1.2.3"
	var printed bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"push", archive, to}, &printed))

	tag, err := name.NewTag(to)
	require.NoError(t, err)
	index, err := remote.Index(tag, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Equal(t, onlyEntry(t, open(t, archive)).Digest, digest)
	assert.Equal(t, "pushed "+to+"@"+digest.String()+"\n", printed.String())

	for _, architecture := range []string{"amd64", "arm64"} {
		platform := v1.Platform{OS: "linux", Architecture: architecture}
		pulled, err := remote.Image(tag, remote.WithPlatform(platform), remote.WithContext(t.Context()))
		require.NoError(t, err)
		config, err := pulled.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, architecture, config.Architecture)
		expected, err := onlyImage(t, filepath.Join(directory, "otelcol-kubeevents-linux-"+architecture+".tar")).Digest()
		require.NoError(t, err)
		actual, err := pulled.Digest()
		require.NoError(t, err)
		assert.Equal(t, expected, actual)
	}
}

func TestPushOfOnePlatform(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	archive, to := filepath.Join(directory, "otelcol-kubeevents-linux-arm64.tar"), startRegistry(t)+"/team/otelcol-kubeevents:arm"
	require.NoError(t, run(t.Context(), []string{"push", archive, to}, io.Discard))
	tag, err := name.NewTag(to)
	require.NoError(t, err)
	pulled, err := remote.Image(tag, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, validate.Image(pulled))
}

func TestPushesThatFail(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	archive := filepath.Join(directory, "otelcol-kubeevents.tar")
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(forbidden.Close)
	address := strings.TrimPrefix(forbidden.URL, "http://")
	for name, test := range map[string]struct{ archive, to, expected string }{
		"a missing archive":         {"/missing.tar", address + "/team/image:1", "/missing.tar"},
		"a file without an image":   {"push_test.go", address + "/team/image:1", "push_test.go"},
		"a name without a registry": {archive, "image:1", "image:1"},
		"a name without a tag":      {archive, address + "/team/image", address + "/team/image"},
		"a registry that refuses":   {archive, address + "/team/image:1", "push " + address + "/team/image:1: "},
	} {
		assert.ErrorContains(t, run(t.Context(), []string{"push", test.archive, test.to}, io.Discard), test.expected, name)
	}
}

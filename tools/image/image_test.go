// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func TestEnginesGetUserCommandAndLabels(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	for _, architecture := range []string{"amd64", "arm64"} {
		i := onlyImage(t, filepath.Join(directory, "otelcol-kubeevents-linux-"+architecture+".tar"))
		config, err := i.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, "linux", config.OS)
		assert.Equal(t, architecture, config.Architecture)
		assert.Equal(t, "65532:65532", config.Config.User)
		assert.Equal(t, []string{"/otelcol-kubeevents"}, config.Config.Entrypoint)
		assert.Equal(t, []string{"--config=/etc/otelcol/config.yaml"}, config.Config.Cmd)
		assert.Equal(t, "2026-01-01T00:00:00Z", config.Created.UTC().Format(time.RFC3339))

		labels := config.Config.Labels
		assert.Equal(t, map[string]string{
			"org.opencontainers.image.title":         "otelcol-kubeevents",
			"org.opencontainers.image.description":   labels["org.opencontainers.image.description"],
			"org.opencontainers.image.version":       version(t),
			"org.opencontainers.image.revision":      "0123abcd",
			"org.opencontainers.image.created":       "2026-01-01T00:00:00Z",
			"org.opencontainers.image.url":           "https://github.com/kubeevents/kubeeventsreceiver",
			"org.opencontainers.image.source":        "https://github.com/kubeevents/kubeeventsreceiver",
			"org.opencontainers.image.documentation": "https://github.com/kubeevents/kubeeventsreceiver#readme",
			"org.opencontainers.image.licenses":      "Apache-2.0",
		}, labels)
		assert.NotEmpty(t, labels["org.opencontainers.image.description"])
		manifest, err := i.Manifest()
		require.NoError(t, err)
		assert.Equal(t, labels, manifest.Annotations, "registries show them")
	}
}

func TestTheImageHasTheseFilesAndNoOthers(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	i := onlyImage(t, filepath.Join(directory, "otelcol-kubeevents-linux-arm64.tar"))
	type entry struct {
		mode  int64
		owner int
	}
	found := map[string]entry{}
	layers, err := i.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	content, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.Equal(t, header.Uid, header.Gid)
		assert.Zero(t, header.ModTime.Unix(), header.Name)
		found[header.Name] = entry{header.Mode, header.Uid}
	}
	assert.Equal(t, map[string]entry{
		"otelcol-kubeevents":                {0o755, 0},
		"etc/":                              {0o755, 0},
		"etc/otelcol/":                      {0o755, 0},
		configPath[1:]:                      {0o644, 0},
		"etc/ssl/":                          {0o755, 0},
		"etc/ssl/certs/":                    {0o755, 0},
		certificatesPath[1:]:                {0o644, 0},
		"licenses/":                         {0o755, 0},
		licensePath[1:]:                     {0o644, 0},
		modulesPath[1:]:                     {0o644, 0},
		"usr/":                              {0o755, 0},
		"usr/share/":                        {0o755, 0},
		"usr/share/doc/":                    {0o755, 0},
		"usr/share/doc/otelcol-kubeevents/": {0o755, 0},
		sbomPath[1:]:                        {0o644, 0},
		"var/":                              {0o755, 0},
		"var/lib/":                          {0o755, 0},
		"var/lib/otelcol/":                  {0o700, 65532},
	}, found)

	root := rootOf(t, i)
	for path, source := range map[string]string{licensePath: "LICENSE", configPath: "tools/image/config.yaml"} {
		expected, err := os.ReadFile(filepath.Join(repository, source))
		require.NoError(t, err)
		assert.Equal(t, string(expected), read(t, root, path))
	}
	sbom, err := os.ReadFile(filepath.Join(directory, "otelcol-kubeevents-linux-arm64.cdx.json"))
	require.NoError(t, err)
	assert.Equal(t, string(sbom), read(t, root, sbomPath), "the file next to the archive is the one in the image")
}

func TestTheImageTrustsTheUsualAuthorities(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificates()))
	names := map[string]bool{}
	for rest := certificates(); len(rest) > 0; {
		var authority *x509.Certificate
		authority, rest = next(t, rest)
		names[authority.Subject.CommonName] = true
		assert.True(t, authority.IsCA, authority.Subject)
	}
	assert.Greater(t, len(names), 100)
	for _, name := range []string{"ISRG Root X1", "Amazon Root CA 1", "GTS Root R1", "DigiCert Global Root G2"} {
		assert.True(t, names[name], name)
	}
	for root := range bundle.Roots() {
		authority, err := x509.ParseCertificate(root.Certificate)
		require.NoError(t, err)
		if root.Constraint != nil {
			assert.False(t, names[authority.Subject.CommonName], "Mozilla trusts %s only under a condition", authority.Subject)
		}
	}
}

func TestProgramsThatCannotBecomeAnImage(t *testing.T) {
	t.Parallel()
	small := compile(t, "linux", "amd64")
	notGo := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(notGo, []byte("#!/bin/sh\n"), 0o600))
	for name, test := range map[string]struct {
		programs []string
		expected string
	}{
		"a program for another system": {[]string{compile(t, "windows", "amd64")}, `the program is for "windows"`},
		"two programs for a platform":  {[]string{small, small}, "another program is also for linux/amd64"},
		"not a Go program":             {[]string{notGo}, notGo},
		"a missing program":            {[]string{"/missing"}, "/missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			err := run(t.Context(), append([]string{"build", "-name", testName, "-repository", repository, "-output", directory}, test.programs...), io.Discard)
			assert.ErrorContains(t, err, test.expected)
			left, err := os.ReadDir(directory)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string][]string{
		"none": nil, "neither flags nor programs": {"build"}, "no name": {"push", "archive"}, "no such command": {"pull", "archive", testName},
	} {
		assert.ErrorIs(t, run(t.Context(), arguments, io.Discard), errUsage, name)
	}
	assert.ErrorContains(t, run(t.Context(), []string{"build", "-name", "no-registry", "program"}, io.Discard), `"no-registry" is not REGISTRY/NAME:TAG: `)
}

// rootOf unpacks what a container of an image has as its root.
func rootOf(t *testing.T, i v1.Image) string {
	t.Helper()
	root, content := t.TempDir(), mutate.Extract(i)
	defer content.Close()
	require.NoError(t, unpack(content, root))
	return root
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// next parses the first certificate of a file, and returns the rest of the file.
func next(t *testing.T, file []byte) (*x509.Certificate, []byte) {
	t.Helper()
	block, rest := pem.Decode(file)
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return certificate, rest
}

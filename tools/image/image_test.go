// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// checkLabels checks what engines and registries show of an image, and how they run it.
func checkLabels(t *testing.T, i v1.Image, architecture string) {
	t.Helper()
	config, err := i.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "linux", config.OS)
	assert.Equal(t, architecture, config.Architecture)
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, []string{"/otelcol-kubeevents"}, config.Config.Entrypoint)
	assert.Equal(t, []string{"--config=/etc/otelcol/config.yaml"}, config.Config.Cmd)
	assert.Equal(t, "2026-01-01T00:00:00Z", config.Created.UTC().Format(time.RFC3339))

	labels := config.Config.Labels
	assert.NotEmpty(t, labels["org.opencontainers.image.description"])
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
	manifest, err := i.Manifest()
	require.NoError(t, err)
	assert.Equal(t, labels, manifest.Annotations, "registries show them")
}

func TestTheImageHasTheseFilesAndNoOthers(t *testing.T) {
	t.Parallel()
	directory, _ := buildSmall(t)
	i := load(t, filepath.Join(directory, "otelcol-kubeevents-linux-arm64.tar"))
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

// TestTheImageTrustsTheUsualAuthorities, but none that Mozilla trusts only under a condition.
func TestTheImageTrustsTheUsualAuthorities(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificates()))
	usual := map[string]bool{"ISRG Root X1": true, "Amazon Root CA 1": true, "GTS Root R1": true, "DigiCert Global Root G2": true}
	for root := range bundle.Roots() {
		authority, err := x509.ParseCertificate(root.Certificate)
		require.NoError(t, err)
		encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		assert.Equal(t, root.Constraint == nil, bytes.Contains(certificates(), encoded), authority.Subject)
		if root.Constraint == nil {
			delete(usual, authority.Subject.CommonName)
		}
	}
	assert.Empty(t, usual)
}

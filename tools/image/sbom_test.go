// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"io"
	"runtime/debug"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, text []byte) (bom cyclonedx.BOM) {
	t.Helper()
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	return bom
}

// urls returns the package URLs of the components.
func urls(bom cyclonedx.BOM) (urls []string) {
	for _, component := range *bom.Components {
		urls = append(urls, component.PackageURL)
	}
	return urls
}

func TestTheBillOfMaterialsNamesWhatWasCompiled(t *testing.T) {
	t.Parallel()
	r := release{version: "1.2.3", created: time.Unix(0, 0).UTC()}
	text, err := r.describe(&buildinfo.BuildInfo{
		GoVersion: "go1.26.8 X:experiment",
		Main:      debug.Module{Path: "example.com/collector", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/required", Version: "v1.0.0"},
			{Path: "example.com/incompatible", Version: "v2.0.0+incompatible"},
			{Path: "example.com/replaced/v2", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/fork/v2", Version: "v2.0.1"}},
			{Path: "example.com/here", Version: "v1.2.3", Replace: &debug.Module{Path: "../..", Version: "(devel)"}},
		},
	})
	require.NoError(t, err)
	bom := decode(t, text)
	assert.Equal(t, "1970-01-01T00:00:00Z", bom.Metadata.Timestamp)
	assert.Equal(t, "otelcol-kubeevents", bom.Metadata.Component.Name)
	assert.Equal(t, "pkg:golang/example.com/collector@v1.2.3", bom.Metadata.Component.PackageURL)
	assert.Equal(t, []string{
		"pkg:golang/std@1.26.8",
		"pkg:golang/example.com/required@v1.0.0",
		"pkg:golang/example.com/incompatible@v2.0.0%2Bincompatible",
		"pkg:golang/example.com/fork/v2@v2.0.1",
		"pkg:golang/example.com/here@v1.2.3",
	}, urls(bom))
	assert.Empty(t, bom.SerialNumber, "it would differ between two builds")
}

func TestEveryProgramOfAReleaseHasABillOfMaterials(t *testing.T) {
	t.Parallel()
	program := compile(t, "windows", "amd64")
	require.NoError(t, run(t.Context(), []string{"sbom", "-created", "1767225600", "-repository", repository, program}, io.Discard))
	bom := decode(t, []byte(read(t, program+".cdx.json", "")))
	assert.Equal(t, "pkg:golang/example.com/small@v"+version(t), bom.Metadata.Component.PackageURL)
	assert.Equal(t, "2026-01-01T00:00:00Z", bom.Metadata.Timestamp)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"path"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// describe returns the software bill of materials of a program, in CycloneDX's format: the Go
// modules that the compiler recorded in it. It has no serial number, because that would differ
// between two builds.
func (r release) describe(info *buildinfo.BuildInfo) ([]byte, error) {
	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, "v"+r.version)
	program.Name = title
	program.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}

	goVersion, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	modules := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", goVersion)}
	for _, dependency := range info.Deps {
		modules = append(modules, library(dependency))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.created.Format(time.RFC3339), Component: &program}
	bom.Components = &modules

	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// library describes the module that was compiled, which may replace the required one. A directory of
// this repository has no version of its own.
func library(m *debug.Module) cyclonedx.Component {
	if m.Replace != nil && !strings.HasPrefix(m.Replace.Path, ".") {
		m = m.Replace
	}
	return component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
}

// component is a Go module. Scanners for vulnerabilities find modules by their package URL.
func component(kind cyclonedx.ComponentType, module, version string) cyclonedx.Component {
	namespace, name := path.Split(module)
	url := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
}

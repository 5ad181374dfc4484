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
		modules = append(modules, r.module(dependency))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.created.Format(time.RFC3339), Component: &program}
	bom.Components = &modules

	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// module describes the module that was compiled, which may replace the required one. A module of
// this repository, which a directory replaces, has the version of the release.
func (r release) module(m *debug.Module) cyclonedx.Component {
	switch {
	case m.Replace == nil:
		return component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
	case strings.HasPrefix(m.Replace.Path, "."):
		return component(cyclonedx.ComponentTypeLibrary, m.Path, "v"+r.version)
	}
	return component(cyclonedx.ComponentTypeLibrary, m.Replace.Path, m.Replace.Version)
}

// component is a Go module. Scanners for vulnerabilities find modules by their package URL.
func component(kind cyclonedx.ComponentType, module, version string) cyclonedx.Component {
	namespace, name := path.Split(module)
	url := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
}

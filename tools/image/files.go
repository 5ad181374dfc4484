// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io"
	"maps"
	"path"
	"slices"
	"time"
)

// The paths in the image that users may need.
const (
	// configPath is the configuration that the image uses by default. A volume with a config.yaml at
	// its directory replaces it.
	configPath = "/etc/otelcol/config.yaml"
	// certificatesPath is the first path at which Go programs look for certificates.
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	licensePath      = "/licenses/LICENSE"
	// modulesPath has the licenses of the modules of the program.
	modulesPath = "/licenses/THIRD-PARTY"
	sbomPath    = "/usr/share/doc/" + title + "/sbom.cdx.json"
	// storagePath is for checkpoints. The directory exists, so that a volume at this path, which
	// Docker creates, belongs to the user of the image.
	storagePath = "/var/lib/otelcol"
)

// file is a file or, if it has no content, a directory.
type file struct {
	path    string
	mode    int64
	owner   int
	content []byte
}

// files returns everything that the image has.
func (r release) files(program, modules, sbom []byte) []file {
	return []file{
		{path: "/" + title, mode: 0o755, content: program},
		{path: configPath, mode: 0o644, content: r.config},
		{path: certificatesPath, mode: 0o644, content: certificates()},
		{path: licensePath, mode: 0o644, content: r.license},
		{path: modulesPath, mode: 0o644, content: modules},
		{path: sbomPath, mode: 0o644, content: sbom},
		{path: storagePath, mode: 0o700, owner: user},
	}
}

// writeTar writes files and the directories above them, sorted, and with the same time in each
// build.
func writeTar(w io.Writer, files []file) error {
	to := tar.NewWriter(w)
	for _, f := range withParents(files) {
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: f.path[1:], Mode: f.mode, Uid: f.owner, Gid: f.owner,
			Size: int64(len(f.content)), ModTime: time.Unix(0, 0),
		}
		if f.content == nil {
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		}
		if err := to.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := to.Write(f.content); err != nil {
			return err
		}
	}
	return to.Close()
}

func withParents(files []file) []file {
	byPath := map[string]file{}
	for _, f := range files {
		for parent := path.Dir(f.path); parent != "/"; parent = path.Dir(parent) {
			if _, known := byPath[parent]; !known {
				byPath[parent] = file{path: parent, mode: 0o755}
			}
		}
		byPath[f.path] = f
	}
	var all []file
	for _, name := range slices.Sorted(maps.Keys(byPath)) {
		all = append(all, byPath[name])
	}
	return all
}

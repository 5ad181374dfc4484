// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writeAll writes an archive for each platform, as `docker save` does, each with its bill of materials
// next to it. For registries, it writes the image of all platforms to the directory oci: an OCI image
// layout.
func writeAll(directory string, tag name.Tag, images []image, annotations map[string]string, stdout io.Writer) error {
	if err := os.MkdirAll(directory, 0o750); err != nil { //nolint:gosec // the caller chooses the directory
		return err
	}
	for _, i := range images {
		base := filepath.Join(directory, title+"-"+strings.ReplaceAll(i.platform.String(), "/", "-"))
		if err := writeFile(base+".cdx.json", i.sbom); err != nil {
			return err
		}
		if err := tarball.WriteToFile(base+".tar", tag, i.Image); err != nil {
			return err
		}
		if err := report(stdout, base+".tar", i); err != nil {
			return err
		}
	}
	all := filepath.Join(directory, "oci")
	if err := os.RemoveAll(all); err != nil { //nolint:gosec // the caller chooses the directory
		return err
	}
	index := indexOf(images, annotations)
	if _, err := layout.Write(all, index); err != nil {
		return err
	}
	return report(stdout, all, index)
}

func report(stdout io.Writer, path string, made interface{ Digest() (v1.Hash, error) }) error {
	digest, err := made.Digest()
	fmt.Fprintln(stdout, digest, path)
	return err
}

// indexOf returns the image of several platforms.
func indexOf(images []image, annotations map[string]string) v1.ImageIndex {
	var parts []mutate.IndexAddendum
	for _, i := range images {
		parts = append(parts, mutate.IndexAddendum{Add: i.Image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	return mutate.Annotations(mutate.AppendManifests(empty.Index, parts...), annotations).(v1.ImageIndex)
}

func writeFile(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // everybody may read it
}

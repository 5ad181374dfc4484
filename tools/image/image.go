// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// title is the name of the distribution and of its program.
const title = "otelcol-kubeevents"

// user is neither root nor a user of the node.
const user = 65532

const sources = "https://github.com/kubeevents/kubeeventsreceiver"

// release is what the images of all platforms have in common.
type release struct {
	version  string
	revision string
	created  time.Time
	license  []byte
	config   []byte
	cache    string // Go's module cache
}

// image is that of one platform.
type image struct {
	v1.Image

	platform v1.Platform
	sbom     []byte
}

// images returns one image for each program. Programs must be for different platforms.
func (r release) images(programs []string) (images []image, err error) {
	seen := map[string]bool{}
	for _, path := range programs {
		i, err := r.image(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if seen[i.platform.String()] {
			return nil, fmt.Errorf("%s: another program is also for %s", path, i.platform)
		}
		seen[i.platform.String()] = true
		images = append(images, i)
	}
	return images, nil
}

func (r release) image(path string) (i image, err error) {
	program, err := os.ReadFile(path) //nolint:gosec // the caller chooses the program
	if err != nil {
		return i, err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return i, err
	}
	if i.platform, err = platformOf(info); err != nil {
		return i, err
	}
	if i.sbom, err = r.describe(info); err != nil {
		return i, err
	}
	modules, err := licenses(info, r.cache)
	if err != nil {
		return i, err
	}
	layer, err := layerOf(r.files(program, modules, i.sbom))
	if err != nil {
		return i, err
	}
	i.Image, err = r.assemble(i.platform, layer)
	return i, err
}

// platformOf returns the platform for which a program was compiled.
func platformOf(info *buildinfo.BuildInfo) (platform v1.Platform, err error) {
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS":
			platform.OS = setting.Value
		case "GOARCH":
			platform.Architecture = setting.Value
		}
	}
	if platform.OS != "linux" {
		return platform, fmt.Errorf("the program is for %q: images need programs for Linux", platform.OS)
	}
	return platform, nil
}

// layerOf compresses once, because a program takes seconds to compress.
func layerOf(files []file) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, files); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching,
	)
}

// assemble makes an image of one layer, with the configuration that engines read.
func (r release) assemble(platform v1.Platform, layer v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: r.created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", user, user),
			WorkingDir: "/",
			Entrypoint: []string{"/" + title},
			Cmd:        []string{"--config=" + configPath},
			Labels:     r.labels(),
		},
	})
	if err != nil {
		return nil, err
	}
	assembled, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "make image"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(assembled, r.labels()).(v1.Image), nil
}

// labels are those that OpenContainers defines. They are also the annotations of manifests, which
// registries show.
func (r release) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":         title,
		prefix + "description":   "OpenTelemetry Collector with the kube_events receiver: Kubernetes events with their owners, as logs and metrics",
		prefix + "version":       r.version,
		prefix + "created":       r.created.Format(time.RFC3339),
		prefix + "url":           sources,
		prefix + "source":        sources,
		prefix + "documentation": sources + "#readme",
		prefix + "licenses":      "Apache-2.0",
	}
	if r.revision != "" {
		labels[prefix+"revision"] = r.revision
	}
	return labels
}

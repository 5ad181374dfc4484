// SPDX-License-Identifier: Apache-2.0

// Package image packs a program as a container image, without a container engine.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Pack writes an archive in the format of `docker save`. It has one image under all names. The
// image has one file, the program, which must be statically linked, and runs it without arguments.
// The same program gives the same image.
func Pack(archive, program string, names ...string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	entrypoint := "/" + filepath.Base(program)
	layer, err := tarOf(file{entrypoint[1:], content, 0o755})
	if err != nil {
		return err
	}
	config, errConfig := json.Marshal(configOf(entrypoint, layer))
	manifest, errManifest := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"},
	}})
	if err := errors.Join(errConfig, errManifest); err != nil {
		return err
	}
	data, err := tarOf(file{"config.json", config, 0o644}, file{"layer.tar", layer, 0o644}, file{"manifest.json", manifest, 0o644})
	if err != nil {
		return err
	}
	return os.WriteFile(archive, data, 0o600)
}

// configOf returns the image's configuration: what to run, and the hash of its files.
func configOf(entrypoint string, layer []byte) map[string]any {
	return map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{entrypoint}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	}
}

type file struct {
	name    string
	content []byte
	mode    int64
}

func tarOf(files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, f := range files {
		if err := writer.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return buffer.Bytes(), err
}

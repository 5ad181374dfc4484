// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// writeAll writes an archive for each platform, each with its bill of materials next to it, and an
// archive with all platforms, for registries.
func writeAll(directory string, tag name.Tag, images []image, annotations map[string]string, stdout io.Writer) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return err
	}
	for _, i := range images {
		base := filepath.Join(directory, title+"-"+strings.ReplaceAll(i.platform.String(), "/", "-"))
		if err := writeFile(base+".cdx.json", i.sbom); err != nil {
			return err
		}
		if err := writeImage(base+".tar", tag, i); err != nil {
			return err
		}
		if err := report(stdout, base+".tar", i); err != nil {
			return err
		}
	}
	all := filepath.Join(directory, title+".tar")
	index := indexOf(images, annotations)
	if err := writeIndex(all, tag, index); err != nil {
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

// writeImage writes an archive like `docker save`: an OCI image layout, for containerd, kind,
// Podman and new versions of Docker, with a manifest.json, for all versions of Docker.
func writeImage(path string, tag name.Tag, i image) error {
	return writeArchive(path, func(to layout.Path) error {
		platform := i.platform
		if err := to.AppendImage(i.Image, layout.WithPlatform(platform), layout.WithAnnotations(nameAnnotations(tag))); err != nil {
			return err
		}
		manifest, err := i.Manifest()
		if err != nil {
			return err
		}
		text, err := json.Marshal([]dockerImage{dockerImageOf(manifest, tag)})
		if err != nil {
			return err
		}
		return to.WriteFile("manifest.json", text, 0o600)
	})
}

// writeIndex writes an OCI image layout. It has no manifest.json, because that cannot express
// platforms.
func writeIndex(path string, tag name.Tag, index v1.ImageIndex) error {
	return writeArchive(path, func(to layout.Path) error {
		return to.AppendIndex(index, layout.WithAnnotations(nameAnnotations(tag)))
	})
}

// nameAnnotations are those from which containerd and Docker take the name of an image that they
// load.
func nameAnnotations(tag name.Tag) map[string]string {
	return map[string]string{
		"io.containerd.image.name":          strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1),
		"org.opencontainers.image.ref.name": tag.TagStr(),
	}
}

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

func dockerImageOf(manifest *v1.Manifest, tag name.Tag) dockerImage {
	i := dockerImage{Config: blob(manifest.Config.Digest), RepoTags: []string{tag.String()}}
	for _, layer := range manifest.Layers {
		i.Layers = append(i.Layers, blob(layer.Digest))
	}
	return i
}

// blob is the path of a blob in an OCI image layout.
func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// writeArchive writes an OCI image layout as an archive.
func writeArchive(path string, fill func(layout.Path) error) error {
	directory, err := os.MkdirTemp(filepath.Dir(path), "layout-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	to, err := layout.Write(directory, empty.Index)
	if err != nil {
		return err
	}
	if err := fill(to); err != nil {
		return err
	}
	// Under its name, the archive is always complete.
	unfinished := directory + ".tar"
	defer func() { _ = os.Remove(unfinished) }()
	if err := pack(directory, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// pack writes the files below a directory to an archive, sorted, and with the same time and mode in
// each build.
func pack(directory, path string) (err error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // archives are for everybody
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	packed := tar.NewWriter(to)
	root := os.DirFS(directory)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return packEntry(packed, root, name, entry)
	})
	return errors.Join(err, packed.Close())
}

func packEntry(to *tar.Writer, root fs.FS, name string, entry fs.DirEntry) error {
	header := tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
	if entry.IsDir() {
		return to.WriteHeader(&header)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeReg, name, 0o644, info.Size()
	if err := to.WriteHeader(&header); err != nil {
		return err
	}
	from, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	_, err = io.Copy(to, from)
	return err
}

// readArchive unpacks an archive into a directory, and returns what its index.json lists.
func readArchive(path, directory string) (v1.ImageIndex, error) {
	from, err := os.Open(path) //nolint:gosec // the caller chooses the archive
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := unpack(from, directory); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return layout.ImageIndexFromPath(directory)
}

// unpack writes the directories and files of an archive below a directory.
func unpack(from io.Reader, directory string) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, archive); err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(strings.TrimSuffix(header.Name, "/"))
	mode := header.FileInfo().Mode().Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
		to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, content)
		return errors.Join(err, to.Close())
	}
	return fmt.Errorf("%s is neither a file nor a directory", header.Name)
}

func writeFile(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // everybody may read it
}

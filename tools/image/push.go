// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push uploads what an archive has, and returns its name in the registry. It uses the credentials
// of `docker login` and `podman login`.
func push(ctx context.Context, archive, to string) (pushed string, err error) {
	tag, err := parseTag(to)
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "push-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	layout, err := readArchive(archive, directory)
	if err != nil {
		return "", err
	}
	digest, err := upload(layout, tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	return tag.String() + "@" + digest.String(), nil
}

// parseTag accepts only complete names, because a guessed registry would be the wrong one.
func parseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return tag, fmt.Errorf("%q is not REGISTRY/NAME:TAG: %w", text, err)
	}
	return tag, nil
}

// upload uploads the one entry of an OCI image layout: an image, or an index of platforms.
func upload(layout v1.ImageIndex, tag name.Tag, options ...remote.Option) (digest v1.Hash, err error) {
	manifest, err := layout.IndexManifest()
	if err != nil {
		return digest, err
	}
	if n := len(manifest.Manifests); n != 1 {
		return digest, fmt.Errorf("the archive has %d images, not one", n)
	}
	entry := manifest.Manifests[0]
	if entry.MediaType.IsIndex() {
		index, err := layout.ImageIndex(entry.Digest)
		if err != nil {
			return digest, err
		}
		return entry.Digest, remote.WriteIndex(tag, index, options...)
	}
	i, err := layout.Image(entry.Digest)
	if err != nil {
		return digest, err
	}
	return entry.Digest, remote.Write(tag, i, options...)
}

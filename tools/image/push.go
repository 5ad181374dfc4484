// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push uploads the image of all platforms, and prints its name in the registry. It uses the credentials
// of `docker login` and `podman login`.
func push(ctx context.Context, directory, to string, stdout io.Writer) error {
	tag, err := parseTag(to)
	if err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	fmt.Fprintln(stdout, "pushed", tag.String()+"@"+digest.String())
	return nil
}

// parseTag accepts only complete names, because a guessed registry would be the wrong one.
func parseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return tag, fmt.Errorf("%q is not REGISTRY/NAME:TAG: %w", text, err)
	}
	return tag, nil
}

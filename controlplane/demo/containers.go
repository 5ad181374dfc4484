// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

// images are the images of the demo that exist. They are all the same: the argument of a container
// selects what its program does.
var images = []string{
	"example.com/shop:1.0", "example.com/crashing:1.0", "example.com/oven:1.0", "example.com/count:1.0",
	"example.com/greedy:1.0", "example.com/sick:1.0", "example.com/lamp:1.0",
}

// RunWithContainers does what Run does. In addition, it creates workloads that fail only on a real
// node: a probe fails, an image cannot be pulled, and a container uses too much memory. It also
// creates a static pod.
func RunWithContainers(ctx context.Context, cp *controlplane.ControlPlane, n *node.Node) error {
	err := importImages(ctx, cp, n)
	if err == nil {
		err = addStaticPod(n)
	}
	if err == nil {
		err = run(ctx, cp.RESTConfig(), "manifests/containers/*.yaml")
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

func importImages(ctx context.Context, cp *controlplane.ControlPlane, n *node.Node) (err error) {
	dir, err := os.MkdirTemp(cp.NodeDir(), "images-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	archive := filepath.Join(dir, "images.tar")
	if err := image.Pack(archive, filepath.Join(cp.Binaries(), "workload"), images...); err != nil {
		return err
	}
	return n.ImportImage(ctx, archive)
}

func addStaticPod(n *node.Node) error {
	manifest, err := manifests.ReadFile("manifests/static/lamp.yaml")
	if err != nil {
		return err
	}
	return n.AddStaticPod("lamp", manifest)
}

// SPDX-License-Identifier: Apache-2.0

// Package deploy installs the chart and the manifests in deploy/ on a real control plane, and does
// for the Pods that come of them what a kubelet does: the built Collector runs with exactly their
// command, environment, volumes, token, user and read-only root. What it emits must arrive, with no
// right beyond those that the manifests give.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// cluster is a control plane with clients that may do everything.
type cluster struct{ *harness.Cluster }

// kube is the cluster that all tests share. Its controllers make Pods of Deployments, and its nodes
// say that they run them.
var kube *cluster

// image is the directory that is the root of the containers: it has the program of the image.
var image string

func TestMain(m *testing.M) {
	if asContainer() {
		os.Exit(enterContainer())
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	if missing := harness.Missing(harness.OtelcolPath(), harness.HelmPath()); missing != nil && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped: make controlplane build manifests builds what is missing:", missing)
		return 0
	}
	err := setUp()
	code := 1
	if err == nil {
		code = m.Run()
	}
	if kube != nil {
		err = errors.Join(err, kube.Stop())
	}
	err = errors.Join(err, os.RemoveAll(image))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func setUp() (err error) {
	if image, err = makeImage(); err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	started, err := harness.StartCluster(context.Background(), controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2})
	if err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	kube = &cluster{started}
	return nil
}

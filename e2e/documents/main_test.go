// SPDX-License-Identifier: Apache-2.0

// Package documents checks what the pages in docs/ say: their configurations are valid, their
// commands run, their names are those of the receiver, and what the page on migration promises of
// contrib's k8s_events holds for the same events.
package documents

import (
	"os"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// kube is the cluster that all tests share.
var kube *harness.Cluster

func TestMain(m *testing.M) {
	os.Exit(harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2}, &kube))
}

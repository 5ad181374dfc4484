// SPDX-License-Identifier: Apache-2.0

// Package documents checks what the pages in docs/ say: their configurations are valid, their commands run, their names are
// those of the receiver, and what the page on migration promises of contrib's k8s_events holds for the same events.
package documents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/trial"
)

// kube is the cluster that all tests share.
var kube *trial.Cluster

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	kube, err = trial.StartCluster(context.Background(), controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2})
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not start:", err)
		return 1
	}
	code := m.Run()
	if err := kube.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
		return 1
	}
	return code
}

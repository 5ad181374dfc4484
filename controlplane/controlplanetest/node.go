// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"errors"
	"os"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

// NeedNode skips the test if this machine cannot run a real node, and names what is missing. If
// only programs are missing that make builds, it fails the test in CI.
func NeedNode(t testing.TB) {
	t.Helper()
	err := node.Check(Binaries())
	if errors.Is(err, node.ErrUnavailable) || errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// StartNode starts a control plane with a real node, and stops both when the test ends. It skips
// the test as NeedNode does.
func StartNode(t testing.TB, options controlplane.Options, nodeOptions node.Options) (*controlplane.ControlPlane, *node.Node) {
	t.Helper()
	NeedNode(t)
	options.RealNode, options.ControllerManager, options.Scheduler = true, true, true
	cp := Start(t, options)
	n, err := node.Start(t.Context(), cp, nodeOptions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp, n
}

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

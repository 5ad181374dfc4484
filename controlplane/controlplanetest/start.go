// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest starts a control plane for tests.
package controlplanetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// Start starts a control plane, and stops it when the test ends. If options.Binaries is empty, it
// uses the programs in Binaries.
//
// If the programs are missing, Start skips the test. In CI, it fails the test instead: a skipped
// test would hide that nothing is tested. `make test` builds the programs first.
func Start(t testing.TB, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	if options.Binaries == "" {
		options.Binaries = Binaries()
	}
	cp, err := controlplane.Start(t.Context(), options)
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Binaries returns the directory in KUBEBUILDER_ASSETS. If it is not set, Binaries returns the
// nearest build/controlplane, in the directory of the test or above it. make builds the programs
// there.
func Binaries() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	const built = "build/controlplane"
	dir, err := os.Getwd()
	if err != nil {
		return built
	}
	for dir != filepath.Dir(dir) {
		if candidate := filepath.Join(dir, built); isDir(candidate) {
			return candidate
		}
		dir = filepath.Dir(dir)
	}
	return built
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

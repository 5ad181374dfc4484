// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest gives tests a control plane.
package controlplanetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// Start starts a control plane that is stopped when the test ends. If
// options.Binaries is empty, the programs are taken from Binaries.
//
// Where the programs are missing the test is skipped, but not in CI, where that
// would hide that nothing is tested; `make test` builds them first.
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

// Binaries returns the directory that KUBEBUILDER_ASSETS names, else where make
// leaves the programs: build/controlplane in the directory of the test or the
// nearest one above it that has it.
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

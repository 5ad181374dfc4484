// SPDX-License-Identifier: Apache-2.0

// Package harness holds what the test suites in e2e/ share: a real control plane, the built
// Collector with nothing but a configuration file and an environment, and a backend that stores
// what it receives.
package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// InRepository is a path from the repository's root.
func InRepository(path ...string) string {
	dir, err := os.Getwd()
	if err != nil {
		return filepath.Join(path...)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "metadata.yaml")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(append([]string{dir}, path...)...)
}

// Read reads a file of the repository.
func Read(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(InRepository(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Eventually polls until a condition holds. The deadline only ends a test that would never end.
func Eventually(t testing.TB, holds func() bool, what string, args ...any) {
	t.Helper()
	if !Poll(4*time.Minute, holds) {
		t.Fatal("waited without success for " + fmt.Sprintf(what, args...))
	}
}

// Poll polls until a condition holds, and reports whether it holds before the timeout.
func Poll(timeout time.Duration, holds func() bool) bool {
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		return holds(), nil
	})
	return err == nil
}

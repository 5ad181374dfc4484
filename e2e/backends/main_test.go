// SPDX-License-Identifier: Apache-2.0

// Package backends asks real backends for the events of a real control plane: a Loki, a Prometheus
// that scrapes the built Collector, and a Prometheus that it pushes to. Their configuration is that
// of docs/queries.md and examples/backends. The tests run what users run: the queries of that page,
// those of the dashboards, and the rules, in deploy/; and that recipe, as in its README.
package backends

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// all is what the tests share. Data is only added to it.
var all *fixture

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	if missing := harness.Missing(harness.OtelcolPath(), backend("loki"), backend("prometheus"), backend("promtool")); missing != nil && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped: make build controlplane backends builds what is missing:", missing)
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	all, err = newFixture(ctx)
	code := 1
	if err == nil {
		code = m.Run()
	}
	cancel()
	if err = errors.Join(err, all.stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// backend is a program that make built.
func backend(name string) string { return harness.InRepository("build", "backends", name) }

// eventually polls until a condition holds. The deadline only ends a test that would never end.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	var err error
	harness.Poll(5*time.Minute, func() bool {
		err = holds()
		return err == nil
	})
	require.NoError(t, err, "waited without success")
}

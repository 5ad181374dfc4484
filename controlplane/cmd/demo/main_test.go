// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// newShow returns a show whose Collector is a shell script, and the file to which the script writes
// its KUBECONFIG.
func newShow(t *testing.T, script string) (show, string) {
	t.Helper()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	collector := filepath.Join(dir, "collector")
	script = "#!/bin/sh\necho \"$KUBECONFIG\" > " + seen + "\n" + script
	require.NoError(t, os.WriteFile(collector, []byte(script), 0o700))
	return show{binaries: controlplanetest.Binaries(), collector: collector}, seen
}

func (s show) runInTest(ctx context.Context, t *testing.T) int {
	t.Helper()
	code, err := s.run(ctx)
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return code
}

func TestCollectorEnds(t *testing.T) {
	s, seen := newShow(t, "exit 3")
	assert.Equal(t, 3, s.runInTest(t.Context(), t))

	kubeconfig, err := os.ReadFile(seen)
	require.NoError(t, err)
	assert.Contains(t, string(kubeconfig), "admin.kubeconfig")
	assert.NoDirExists(t, filepath.Dir(string(kubeconfig)), "the control plane is gone")
}

func TestInterrupted(t *testing.T) {
	s, seen := newShow(t, "exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(seen); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	assert.Equal(t, 0, s.runInTest(ctx, t))
}

// TestTerminalCloses checks that SIGHUP ends the demo, and that a second SIGHUP does not end it
// before the cleanup.
func TestTerminalCloses(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("started with nohup: the demo ignores SIGHUP, too")
	}
	ctx := untilAsked()
	for range 10 {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		<-ctx.Done()
		time.Sleep(5 * time.Millisecond) // for the effects of the first signal
	}
}

func TestClusterOfKubeconfig(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, "config")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for given, want := range map[string]string{
		file:                       file,
		"~/config":                 file,
		"~/config:/missing/config": file + ":/missing/config",
		"/missing/config:~/config": "/missing/config:" + file,
	} {
		s, seen := newShow(t, "exit 3")
		s.binaries, s.kubeconfig = "/missing", given
		code, err := s.run(t.Context())
		require.NoError(t, err, given)
		assert.Equal(t, 3, code)
		kubeconfig, err := os.ReadFile(seen)
		require.NoError(t, err)
		assert.Equal(t, want, strings.TrimSpace(string(kubeconfig)))
	}
}

func TestKubeconfigIsMissing(t *testing.T) {
	s, seen := newShow(t, "")
	s.kubeconfig = "/missing/config:/missing/too"
	code, err := s.run(t.Context())
	assert.Equal(t, 1, code)
	assert.ErrorContains(t, err, "KUBECONFIG=/missing/config:/missing/too names no existing file")
	assert.ErrorContains(t, err, "make run KUBECONFIG=")
	assert.NoFileExists(t, seen, "the Collector was not started")
}

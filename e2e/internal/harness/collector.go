// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// OtelcolPath is where the Collector is that make built, unless OTELCOL names another.
func OtelcolPath() string { return cmp.Or(os.Getenv("OTELCOL"), InRepository("build", "otelcol")) }

// Otelcol is that Collector, if it is there.
func Otelcol(t testing.TB) string {
	t.Helper()
	return program(t, OtelcolPath(), "make build")
}

// ComparisonOtelcol is a Collector with contrib's k8s_events receiver.
func ComparisonOtelcol(t testing.TB) string {
	t.Helper()
	return program(t, InRepository("build", "comparison", "otelcol"), "make comparison")
}

func program(t testing.TB, path, target string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: %s builds it", err, target)
		}
		t.Skipf("%v: %s builds it", err, target)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Missing says which of the programs that a package's tests need were not built: the API server, and those at these paths.
func Missing(paths ...string) (missing error) {
	for _, path := range append(paths, filepath.Join(controlplanetest.Binaries(), "kube-apiserver")) {
		_, err := os.Stat(path)
		missing = errors.Join(missing, err)
	}
	return missing
}

// Collector is a Collector that was started.
type Collector struct {
	command *exec.Cmd
	output  *proc.Output // what it shows: standard output
	log     *proc.Output // what it says of itself: standard error
	ended   <-chan struct{}
}

// Run runs a Collector until the test ends, with a configuration and with what the environment adds to its own.
func Run(t testing.TB, otelcol, config string, env ...string) *Collector {
	t.Helper()
	// Its own metrics, on a port that is always the same, would be in the way of other Collectors.
	return Start(t, exec.Command(otelcol, "--config", config, "--set=service.telemetry.metrics.level=none"), env...)
}

// Start starts a Collector as the command says, until the test ends.
func Start(t testing.TB, command *exec.Cmd, env ...string) *Collector {
	t.Helper()
	c := &Collector{command: command, output: &proc.Output{}, log: &proc.Output{}}
	c.command.Env = append(os.Environ(), env...)
	c.command.Stdout, c.command.Stderr = c.output, c.log
	c.command.SysProcAttr = proc.OwnGroup()
	var err error
	if c.ended, err = proc.Start(c.command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.command.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	return c
}

// Lines are what it has shown so far that has all parts.
func (c *Collector) Lines(parts ...string) (found []string) {
	for line := range strings.Lines(c.output.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

// Stop ends the Collector as Kubernetes does: it delivers what it holds, the last sums among it.
func (c *Collector) Stop(t testing.TB) {
	t.Helper()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if code := c.command.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the Collector's exit code after SIGTERM is %d", code)
	}
}

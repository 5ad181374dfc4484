// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// OtelcolPath is where the Collector is that make built, unless OTELCOL names another.
func OtelcolPath() string {
	return cmp.Or(os.Getenv("OTELCOL"), InRepository("build", "otelcol-kubeevents"))
}

// Otelcol is that Collector, if it is there.
func Otelcol(t testing.TB) string {
	t.Helper()
	return program(t, OtelcolPath(), "make build")
}

// Validate asks that Collector whether it would start, with arguments and with the variables of a
// container. A variable whose value is somewhere else, such as in a Secret, has an address, except the
// namespace of the pod.
func Validate(t testing.TB, environment []corev1.EnvVar, arguments ...string) {
	t.Helper()
	command := exec.Command(Otelcol(t), append([]string{"validate"}, arguments...)...)
	command.Env = []string{"PATH=/none"}
	for _, variable := range environment {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			value = "127.0.0.1"
			if from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace" {
				value = "kube-events"
			}
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	output, err := command.CombinedOutput()
	assert.NoError(t, err, "%s", output)
	assert.Empty(t, string(output))
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

// Missing returns which of the programs that a package's tests need were not built: the API server,
// and those at these paths.
func Missing(paths ...string) (missing error) {
	for _, path := range append(paths, filepath.Join(controlplanetest.Binaries(), "kube-apiserver")) {
		_, err := os.Stat(path)
		missing = errors.Join(missing, err)
	}
	return missing
}

// Collector is a Collector that was started. Its Output is its log: standard error.
type Collector struct {
	*process.Process

	shown process.Output // standard output, to which the debug exporters write
}

// Run runs a Collector until the test ends, with a configuration and variables in addition to the
// environment.
func Run(t testing.TB, otelcol, config string, env ...string) *Collector {
	t.Helper()
	// Its own metrics, on a port that is always the same, would be in the way of other Collectors.
	return Start(t, exec.Command(otelcol, "--config", config, "--set=service.telemetry.metrics.level=none"), env...)
}

// Start starts a Collector with a command. It runs until the test ends.
func Start(t testing.TB, command *exec.Cmd, env ...string) *Collector {
	t.Helper()
	c := &Collector{}
	command.Env = append(os.Environ(), env...)
	command.Stdout = &c.shown
	c.Process = StartProcess(t, command)
	return c
}

// Lines returns the lines of its standard output so far that contain all parts.
func (c *Collector) Lines(parts ...string) []string { return c.shown.Lines(parts...) }

// Stop ends the Collector as Kubernetes does: it delivers what it holds, the last sums among it.
func (c *Collector) Stop(t testing.TB) {
	t.Helper()
	Terminate(t, c.Process)
}

// StartProcess starts a program that ends with the test. If the test fails, its log gets the
// program's output.
func StartProcess(t testing.TB, command *exec.Cmd) *process.Process {
	t.Helper()
	p, err := process.Run(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(command.Path), p.Output.Tail())
		}
	})
	return p
}

// terminationGrace is how long a program may take to end. It is long because machines may be slow.
const terminationGrace = 2 * time.Minute

// Terminate ends a program that runs as Kubernetes does. The program must end by itself, with exit
// code 0.
func Terminate(t testing.TB, p *process.Process) {
	t.Helper()
	if !p.Running() {
		t.Fatal(p.Failure("ended before SIGTERM"))
	}
	if err := p.Terminate(terminationGrace); err != nil {
		t.Fatal(err)
	}
}

// Commit is the commit of the repository, for pages with results.
func Commit(t testing.TB) string {
	t.Helper()
	command := exec.Command("git", "rev-parse", "--short=10", "HEAD")
	command.Dir = InRepository()
	output, err := command.Output()
	if err != nil {
		t.Fatal("git rev-parse: ", err)
	}
	return strings.TrimSpace(string(output))
}

// ReplaceSection replaces the part of a page between two comments by what a function makes of it.
func ReplaceSection(t testing.TB, path, section string, replace func(old string) string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+section+": begin -->\n", "<!-- "+section+": end -->"
	before, rest, begins := strings.Cut(string(page), begin)
	old, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no section %s", path, section)
	}
	if err := os.WriteFile(path, []byte(before+begin+replace(old)+end+after), 0o600); err != nil { //nolint:gosec // The user names the page.
		t.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// collector is one replica: a Collector that is started and ended again and again with the same
// configuration.
type collector struct {
	name       string
	kubeconfig string
	config     []string       // YAML, each part over those before it
	directory  string         // of file_storage
	output     process.Output // of all its starts
	process    *process.Process
	kills      int // how often it was killed
	began      int // where the output of the last start begins
}

// setting is a line of configuration over the defaults, as the Collector's --config yaml: takes it.
type setting = string

const (
	withStorage   setting = "receivers::kube_events::storage: file_storage"
	withElections setting = "receivers::kube_events::k8s_leader_elector: k8s_leader_elector"
	// givesUpSoon is for a sink that does not answer. One that is only slow, because the machine is busy,
	// must not get the same request again.
	givesUpSoon setting = "exporters::otlp_http::timeout: 3s"
)

// newCollector describes a replica that delivers to the sink under its name. Nothing is queued
// between the receiver and the sink, so that the sink's answer is what the receiver gets.
func newCollector(t *testing.T, name, kubeconfig string, s *sink, settings ...setting) *collector {
	t.Helper()
	c := &collector{name: name, kubeconfig: kubeconfig, directory: t.TempDir()}
	c.config = []string{fmt.Sprintf(`
receivers: {kube_events: {auth_type: kubeConfig, collection_interval: 1s, retry_on_failure: {initial_interval: 200ms, max_interval: 2s}}}
exporters: {otlp_http: {endpoint: %q, headers: {%s: %q}, compression: none, timeout: 30s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service:
  pipelines: {logs: {receivers: [kube_events], exporters: [otlp_http]}, metrics: {receivers: [kube_events], exporters: [otlp_http]}}
  telemetry: {logs: {level: info, encoding: console, disable_stacktrace: true}, metrics: {level: none}}
`, s.url, replicaHeader, name)}
	c.config = append(append(c.config, c.extensions(settings)...), settings...)
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("replica %s:\n%s", name, c.output.Tail())
		}
	})
	return c
}

// extensions are those that the settings name.
func (c *collector) extensions(settings []setting) []setting {
	var names, lines []string
	for _, s := range settings {
		switch s {
		case withStorage:
			names = append(names, "file_storage")
			lines = append(lines, fmt.Sprintf("extensions::file_storage: {directory: %q}", c.directory))
		case withElections:
			names = append(names, "k8s_leader_elector")
			lines = append(lines, "receivers::kube_events::progress_config_map: default/faults-progress")
			// Short, so that a test need not wait long for a lease to end.
			lines = append(lines, "extensions::k8s_leader_elector: {auth_type: kubeConfig, lease_name: faults, lease_namespace: default, lease_duration: 4s, renew_deadline: 3s, retry_period: 1s}")
		}
	}
	return append(lines, "service::extensions: ["+strings.Join(names, ", ")+"]")
}

// start runs the Collector.
func (c *collector) start(t *testing.T) {
	t.Helper()
	var arguments []string
	for _, part := range c.config {
		arguments = append(arguments, "--config", "yaml:"+part)
	}
	command := exec.Command(harness.OtelcolPath(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig,
		// A silent connection is noticed sooner than after the 45 s that are client-go's default.
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=5", "HTTP2_PING_TIMEOUT_SECONDS=3")
	command.Stdout, command.Stderr = &c.output, &c.output
	c.began = len(c.output.String())
	var err error
	c.process, err = process.Run(command)
	require.NoError(t, err)
}

// signal sends a signal to the replica, and to nothing else.
func (c *collector) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.process.Signal(s))
}

// kill ends the replica as kill -9 does. To kill it again is to do nothing.
func (c *collector) kill() {
	if c.runs() {
		c.kills++
		if err := c.process.Kill(); err != nil {
			panic(err) // A process may signal its children.
		}
	}
}

// terminate ends the replica as Kubernetes does.
func (c *collector) terminate(t *testing.T) {
	t.Helper()
	harness.Terminate(t, c.process)
}

// runs reports whether the replica has been started and has not ended.
func (c *collector) runs() bool { return c.process != nil && c.process.Running() }

// isReady waits until the Collector that was started last listens to signals.
func (c *collector) isReady(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func() bool { return strings.Contains(c.output.String()[c.began:], "Everything is ready") }, "the start of replica %s", c.name)
}

// waitForLog waits until the replica's log matches a regular expression.
func (c *collector) waitForLog(t *testing.T, text string) {
	t.Helper()
	pattern := regexp.MustCompile(text)
	harness.Eventually(t, func() bool { return pattern.MatchString(c.output.String()) }, "%q in the log of replica %s", text, c.name)
}

// refusesToStart starts the Collector and waits for its end, with an error.
func (c *collector) refusesToStart(t *testing.T) {
	t.Helper()
	c.start(t)
	select {
	case <-c.process.Done():
		assert.Equal(t, 1, c.process.ExitCode(), "the exit code")
	case <-time.After(30 * time.Second):
		assert.Fail(t, "the Collector started")
	}
}

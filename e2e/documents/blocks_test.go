// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// TestConfigurationsAreValid: the Collector takes every configuration on the pages.
func TestConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		for _, b := range blocksOf(t, page, "yaml") {
			t.Run(b.String(), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "config.yaml")
				require.NoError(t, os.WriteFile(file, []byte(b.text), 0o600))
				output, err := exec.Command(harness.Otelcol(t), "validate", "--config", file).CombinedOutput()
				assert.NoError(t, err, string(output))
			})
		}
	}
}

// TestCommandsRun: every command on the pages runs from the repository's root and shows something,
// in a cluster with what the default manifest gives the receiver, and next to a Collector.
func TestCommandsRun(t *testing.T) {
	t.Parallel()
	for _, object := range harness.Objects(t, harness.Read(t, "deploy", "manifests", "default.yaml")) {
		if object.GetKind() != "Deployment" { // The account is enough.
			kube.ApplyObject(t, object)
		}
	}
	port := runAlongside(t)
	for _, page := range pages {
		for _, b := range blocksOf(t, page, "sh") {
			for line := range strings.Lines(b.text) {
				t.Run(b.String(), func(t *testing.T) {
					t.Parallel()
					runLine(t, strings.TrimSpace(line), "KUBECONFIG="+kube.Kubeconfig(), "OTELCOL_METRICS_PORT="+port)
				})
			}
		}
	}
}

func runLine(t *testing.T, line string, env ...string) {
	t.Helper()
	program, _, _ := strings.Cut(line, " ")
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("not installed here: ", err)
	}
	output, err := proc.Shell(harness.InRepository(), line, env...)
	assert.NoError(t, err)
	assert.NotEmpty(t, output, line)
}

// runAlongside runs the Collector that make run runs, and returns the port of its own metrics.
func runAlongside(t *testing.T) (port string) {
	t.Helper()
	free, err := proc.FreeAddresses(1)
	require.NoError(t, err)
	_, port, err = net.SplitHostPort(free[0])
	require.NoError(t, err)
	command := exec.Command(harness.Otelcol(t), "--config", harness.InRepository("distribution", "config.yaml"))
	harness.Start(t, command, "KUBECONFIG="+kube.Kubeconfig(), "PROMETHEUS_ENDPOINT=127.0.0.1:0", "PAGE_ENDPOINT=127.0.0.1:0", "OTELCOL_METRICS_PORT="+port)
	harness.Eventually(t, func() bool {
		response, err := http.Get("http://" + free[0] + "/metrics")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil
	}, "the Collector's own metrics")
	return port
}

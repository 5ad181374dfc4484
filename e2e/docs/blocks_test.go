// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestConfigurationsAreValid: the Collector takes every configuration on the pages.
func TestConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	for _, page := range append(pages, readme) {
		for _, b := range blocksOf(t, page, "yaml") {
			if b.isManifest() || b.isForTheBuilder() {
				continue
			}
			t.Run(b.String(), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "config.yaml")
				require.NoError(t, os.WriteFile(file, completed(t, b), 0o600))
				output, err := exec.Command(harness.Otelcol(t), "validate", "--config", file).CombinedOutput()
				assert.NoError(t, err, string(output))
			})
		}
	}
}

// isManifest reports whether a block is for kubectl.
func (b block) isManifest() bool { return strings.HasPrefix(b.text, "apiVersion: ") }

// isForTheBuilder reports whether a block is a part of a manifest of the Collector builder. A test in
// e2e/chart compares its version.
func (b block) isForTheBuilder() bool { return strings.Contains(b.text, "- gomod: ") }

// completed returns a configuration. A block that is only about the receiver, a processor or an exporter
// gets the rest of a configuration.
func completed(t *testing.T, b block) []byte {
	t.Helper()
	config := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(b.text), &config))
	if config["receivers"] == nil {
		config["receivers"] = map[string]any{"kube_events": nil}
	}
	if config["exporters"] == nil {
		config["exporters"] = map[string]any{"debug": nil}
	}
	service, _ := config["service"].(map[string]any)
	if service == nil {
		service = map[string]any{}
		config["service"] = service
	}
	if service["pipelines"] == nil {
		exporters := slices.Collect(maps.Keys(config["exporters"].(map[string]any)))
		pipeline := map[string]any{"receivers": []string{"kube_events"}, "exporters": exporters}
		service["pipelines"] = map[string]any{"logs": pipeline, "metrics": pipeline}
	}
	if strings.Contains(b.text, "storage: file_storage") && config["extensions"] == nil {
		config["extensions"] = map[string]any{"file_storage": map[string]any{"directory": t.TempDir()}}
		service["extensions"] = []string{"file_storage"}
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	return text
}

// TestManifestsAreValid: the API server takes every manifest on the pages.
func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	const namespace = "documented"
	makeNamespace(t, namespace)
	for _, page := range pages {
		for _, b := range blocksOf(t, page, "yaml") {
			if !b.isManifest() {
				continue
			}
			t.Run(b.String(), func(t *testing.T) {
				for _, object := range harness.Objects(t, b.text) {
					if object.GetNamespace() != "" {
						object.SetNamespace(namespace) // The one on the page may not exist.
					}
					kube.DryRunObject(t, object)
				}
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
					line = strings.ReplaceAll(strings.TrimSpace(line), "127.0.0.1:8888", "127.0.0.1:"+port)
					runLine(t, line, "KUBECONFIG="+kube.Kubeconfig())
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
	output, err := process.Shell(harness.InRepository(), line, env...)
	assert.NoError(t, err)
	assert.NotEmpty(t, output, line)
}

// runAlongside runs the Collector that make run runs, and returns the port of its own metrics.
func runAlongside(t *testing.T) (port string) {
	t.Helper()
	free, err := process.FreeAddresses(1)
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

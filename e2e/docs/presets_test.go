// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// odd is a credential that the Collector would change if it expanded it.
const odd = "a$b$$c${env:HOME}${"

// preset is a value backend.preset of the chart, and what the backend's documentation demands.
type preset struct {
	values        []string
	secret        map[string]string // variables of the container
	path          string            // of the endpoint
	logs, metrics request
}

var presets = map[string]preset{
	"grafana-cloud": {
		secret:  map[string]string{"BACKEND_INSTANCE_ID": "123456", "BACKEND_API_KEY": odd},
		path:    "/otlp",
		logs:    request{"/otlp" + logsPath, map[string]string{"Authorization": basic("123456", odd)}},
		metrics: request{"/otlp" + metricsPath, map[string]string{"Authorization": basic("123456", odd)}},
	},
	"elastic": {
		secret:  map[string]string{"BACKEND_API_KEY": odd},
		logs:    request{logsPath, map[string]string{"Authorization": "ApiKey " + odd}},
		metrics: request{metricsPath, map[string]string{"Authorization": "ApiKey " + odd}},
	},
	"datadog": {
		secret:  map[string]string{"BACKEND_API_KEY": odd},
		logs:    request{logsPath, map[string]string{"dd-api-key": odd}},
		metrics: request{metricsPath, map[string]string{"dd-api-key": odd}},
	},
	"splunk": {
		secret:  map[string]string{"BACKEND_ACCESS_TOKEN": odd},
		logs:    request{logsPath, nil},
		metrics: request{"/v2/datapoint/otlp", map[string]string{"X-SF-Token": odd}},
	},
	"honeycomb": {
		secret:  map[string]string{"BACKEND_API_KEY": odd},
		logs:    request{logsPath, map[string]string{"x-honeycomb-team": odd, "x-honeycomb-dataset": ""}},
		metrics: request{metricsPath, map[string]string{"x-honeycomb-team": odd, "x-honeycomb-dataset": "kube-events-metrics"}},
	},
	"loki": {
		secret: map[string]string{"BACKEND_AUTHORIZATION": odd},
		path:   "/otlp",
		logs:   request{"/otlp" + logsPath, map[string]string{"Authorization": odd}},
	},
	"otlp": {
		values: []string{
			"--set", "otlp.headers.X-Plain=" + `a$b$$c$\{env:HOME\}`,
			"--set", "otlp.secretHeaders.X-First.name=s", "--set", "otlp.secretHeaders.X-First.key=k",
			"--set", "otlp.secretHeaders.X-Second.name=s", "--set", "otlp.secretHeaders.X-Second.key=l",
		},
		secret:  map[string]string{"BACKEND_AUTHORIZATION": "Bearer " + odd, "OTLP_HEADER_X_FIRST": odd, "OTLP_HEADER_X_SECOND": "0123"},
		logs:    request{logsPath, map[string]string{"Authorization": "Bearer " + odd, "X-Plain": "a$b$$c${env:HOME}", "X-First": odd, "X-Second": "0123"}},
		metrics: request{metricsPath, map[string]string{"Authorization": "Bearer " + odd, "X-Plain": "a$b$$c${env:HOME}", "X-First": odd, "X-Second": "0123"}},
	},
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// local changes the configuration of the chart so that it runs outside of a cluster, next to others.
const local = `
mode: stateless
config:
  receivers: {kube_events: {auth_type: kubeConfig, start_at: beginning}}
  extensions:
    health_check: {http: {endpoint: "127.0.0.1:0"}}
    health_check/ready: {http: {endpoint: "127.0.0.1:0"}}
  service: {telemetry: {metrics: {level: none, readers: []}}}
`

// configOf is a file with the configuration that the chart renders.
func configOf(t *testing.T, arguments ...string) (file string) {
	t.Helper()
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte(local), 0o600))
	for _, object := range harness.Chart(t, "kube-events", "observability", append([]string{"--values", values}, arguments...)...) {
		config, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		require.NoError(t, err)
		if found {
			file = filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		}
	}
	require.NotEmpty(t, file)
	return file
}

// TestPresetsOfTheChart: the same as the recipes for hosted backends, and credentials arrive as they are.
func TestPresetsOfTheChart(t *testing.T) {
	t.Parallel()
	for name, preset := range presets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t, append([]string{"--set", "backend.preset=" + name, "--set", "backend.secret=backend"}, preset.values...)...)
			receives(t, "preset-"+name, preset.logs, preset.metrics, func(address string) *harness.Collector {
				env := []string{"KUBECONFIG=" + kubeconfigFor(t, "backends"), "OTLP_ENDPOINT=" + address + preset.path, "BACKEND_INGEST_URL=" + address}
				for variable, value := range preset.secret {
					env = append(env, variable+"="+value)
				}
				return harness.Start(t, exec.Command(harness.Otelcol(t), "--config", config, "--feature-gates=+extension.healthcheck.useComponentStatus"), env...)
			})
		})
	}
}

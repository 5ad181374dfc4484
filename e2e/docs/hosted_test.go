// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// hosted is a backend with authentication, for which there is a recipe, a value backend.preset of the
// chart, or both. The test has no account there, so it puts a server of its own in place of the backend.
type hosted struct {
	recipe    map[string]string // variables of the recipe; none: there is no recipe
	endpoints map[string]string // variables of the recipe for addresses, with the paths in them
	values    []string          // of the chart, in addition to the preset
	secret    map[string]string // variables of the container
	path      string            // of the preset's endpoint
	// logs and metrics are what the backend's documentation demands of requests with a credential.
	logs, metrics func(credential string) request
}

type request struct {
	path    string
	headers map[string]string
}

// with is a request with one header, whose value ends with the credential.
func with(path, header, prefix string) func(string) request {
	return func(credential string) request { return request{path, map[string]string{header: prefix + credential}} }
}

const (
	logsPath    = "/v1/logs"
	metricsPath = "/v1/metrics"

	plain = "glc_0123456789abcdef"
	// odd is a credential that the Collector would change if it expanded it.
	odd = "a$b$$c${env:HOME}${"
)

var hostedBackends = map[string]hosted{
	"grafana-cloud": {
		recipe:    map[string]string{"GRAFANA_CLOUD_INSTANCE_ID": "123456", "GRAFANA_CLOUD_API_KEY": plain},
		endpoints: map[string]string{"GRAFANA_CLOUD_OTLP_ENDPOINT": "/otlp"},
		secret:    map[string]string{"BACKEND_INSTANCE_ID": "123456", "BACKEND_API_KEY": odd},
		path:      "/otlp",
		logs:      func(c string) request { return with("/otlp"+logsPath, "Authorization", "")(basic("123456", c)) },
		metrics:   func(c string) request { return with("/otlp"+metricsPath, "Authorization", "")(basic("123456", c)) },
	},
	"elastic": {
		recipe:    map[string]string{"ELASTIC_API_KEY": plain},
		endpoints: map[string]string{"ELASTIC_OTLP_ENDPOINT": ""},
		secret:    map[string]string{"BACKEND_API_KEY": odd},
		logs:      with(logsPath, "Authorization", "ApiKey "), metrics: with(metricsPath, "Authorization", "ApiKey "),
	},
	"datadog": {
		recipe:    map[string]string{"DD_API_KEY": plain},
		endpoints: map[string]string{"DATADOG_OTLP_ENDPOINT": ""},
		secret:    map[string]string{"BACKEND_API_KEY": odd},
		logs:      with(logsPath, "dd-api-key", ""), metrics: with(metricsPath, "dd-api-key", ""),
	},
	"splunk": {
		recipe:    map[string]string{"SPLUNK_ACCESS_TOKEN": plain},
		endpoints: map[string]string{"SPLUNK_GATEWAY_ENDPOINT": "", "SPLUNK_INGEST_URL": ""},
		secret:    map[string]string{"BACKEND_ACCESS_TOKEN": odd},
		logs:      func(string) request { return request{path: logsPath} }, metrics: with("/v2/datapoint/otlp", "X-SF-Token", ""),
	},
	"honeycomb": {
		recipe:    map[string]string{"HONEYCOMB_API_KEY": plain},
		endpoints: map[string]string{"HONEYCOMB_ENDPOINT": ""},
		secret:    map[string]string{"BACKEND_API_KEY": odd},
		logs:      with(logsPath, "x-honeycomb-team", ""),
		metrics: func(c string) request {
			return request{metricsPath, map[string]string{"x-honeycomb-team": c, "x-honeycomb-dataset": "kube-events-metrics"}}
		},
	},
	"loki": {
		secret: map[string]string{"BACKEND_AUTHORIZATION": odd}, path: "/otlp",
		logs: with("/otlp"+logsPath, "Authorization", ""), metrics: func(string) request { return request{} },
	},
	"otlp": {
		values: []string{
			"--set", "otlp.headers.X-Plain=" + `a$b$$c$\{env:HOME\}`,
			"--set", "otlp.secretHeaders.X-First.name=s", "--set", "otlp.secretHeaders.X-First.key=k",
		},
		secret: map[string]string{"BACKEND_AUTHORIZATION": "Bearer " + odd, "OTLP_HEADER_X_FIRST": odd},
		logs: func(c string) request {
			return request{logsPath, map[string]string{"Authorization": "Bearer " + c, "X-Plain": "a$b$$c${env:HOME}", "X-First": c}}
		},
		metrics: with(metricsPath, "Authorization", "Bearer "),
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

// TestHostedBackendsGetWhatTheyDemand: logs and the metric arrive, at the paths and with the headers
// that the backends document.
func TestHostedBackendsGetWhatTheyDemand(t *testing.T) {
	t.Parallel()
	for name, hosted := range hostedBackends {
		if hosted.recipe == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receives(t, "backend-"+name, hosted.logs(plain), hosted.metrics(plain), func(address string) *harness.Collector {
				env := append(variables(hosted.recipe, ""), variables(hosted.endpoints, address)...)
				return harness.Run(t, harness.Otelcol(t), harness.InRepository(file("backends", name+".yaml")), append(env, "KUBECONFIG="+kubeconfigFor(t, "backends"))...)
			})
		})
	}
}

// TestPresetsOfTheChart: the same as the recipes for hosted backends, and credentials arrive as they are.
func TestPresetsOfTheChart(t *testing.T) {
	t.Parallel()
	for name, hosted := range hostedBackends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t, append([]string{"--set", "backend.preset=" + name, "--set", "backend.secret=backend"}, hosted.values...)...)
			receives(t, "preset-"+name, hosted.logs(odd), hosted.metrics(odd), func(address string) *harness.Collector {
				env := append(variables(hosted.secret, ""), "KUBECONFIG="+kubeconfigFor(t, "backends"), "OTLP_ENDPOINT="+address+hosted.path, "BACKEND_INGEST_URL="+address)
				return harness.Start(t, exec.Command(harness.Otelcol(t), "--config", config, "--feature-gates=+extension.healthcheck.useComponentStatus"), env...)
			})
		})
	}
}

// variables are those of an environment, with a prefix before each value.
func variables(values map[string]string, prefix string) (env []string) {
	for name, value := range values {
		env = append(env, name+"="+prefix+value)
	}
	return env
}

// receives checks that all records, and the metric unless its path is empty, arrive at a server in
// place of the backend, in the requests that the backend's documentation demands. start starts the
// Collector with the address of this server.
func receives(t *testing.T, namespace string, logs, metrics request, start func(address string) *harness.Collector) {
	t.Helper()
	w := newWriter(t, namespace)
	backend := harness.NewBackend(t)
	requests := &requestLog{received: map[string]http.Header{}}
	collector := start(forward(t, func(r *http.Request) string {
		requests.add(r)
		if r.URL.Path == metrics.path {
			return backend.URL + metricsPath
		}
		return backend.URL + logsPath
	}))
	w.write(t, 3)
	w.arrivesCompletely(t, backend)
	collector.Stop(t)
	requests.check(t, logs)
	if metrics.path != "" {
		requests.check(t, metrics)
		assert.Equal(t, int64(3), backend.Occurrences("k8s.namespace.name", w.namespace))
	}
}

// requestLog has the headers of the last request to each path.
type requestLog struct {
	mu       sync.Mutex
	received map[string]http.Header
}

func (l *requestLog) add(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received[r.URL.Path] = r.Header.Clone()
}

func (l *requestLog) check(t *testing.T, want request) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !assert.Contains(t, l.received, want.path) {
		return
	}
	for name, value := range want.headers {
		assert.Equal(t, value, l.received[want.path].Get(name), "%s of %s", name, want.path)
	}
}

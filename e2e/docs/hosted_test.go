// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// hosted is a configuration for a backend with authentication. The test has no account there, so it
// puts a server of its own in place of the backend.
type hosted struct {
	credentials []string
	// endpoints are the variables of addresses, with values as users set them. In the test of
	// requests, a local address takes the place of the host.
	endpoints     map[string]string
	logs, metrics request
}

// request is what the backend's documentation demands of requests.
type request struct {
	path    string
	headers map[string]string
}

const (
	logsPath    = "/v1/logs"
	metricsPath = "/v1/metrics"
)

var hostedBackends = map[string]hosted{
	"grafana-cloud": {
		credentials: []string{"GRAFANA_CLOUD_INSTANCE_ID=123456", "GRAFANA_CLOUD_API_KEY=glc_secret"},
		endpoints:   map[string]string{"GRAFANA_CLOUD_OTLP_ENDPOINT": "https://otlp-gateway-prod-eu-west-2.grafana.net/otlp"},
		logs:        request{"/otlp" + logsPath, map[string]string{"Authorization": "Basic MTIzNDU2OmdsY19zZWNyZXQ="}}, // 123456:glc_secret
		metrics:     request{"/otlp" + metricsPath, map[string]string{"Authorization": "Basic MTIzNDU2OmdsY19zZWNyZXQ="}},
	},
	"elastic": {
		credentials: []string{"ELASTIC_API_KEY=a2V5"},
		endpoints:   map[string]string{"ELASTIC_OTLP_ENDPOINT": "https://my-project.ingest.eu-west-1.aws.elastic.cloud"},
		logs:        request{logsPath, map[string]string{"Authorization": "ApiKey a2V5"}},
		metrics:     request{metricsPath, map[string]string{"Authorization": "ApiKey a2V5"}},
	},
	"datadog": {
		credentials: []string{"DD_API_KEY=0123456789abcdef"},
		endpoints:   map[string]string{"DATADOG_OTLP_ENDPOINT": ""},
		logs:        request{logsPath, map[string]string{"dd-api-key": "0123456789abcdef"}},
		metrics:     request{metricsPath, map[string]string{"dd-api-key": "0123456789abcdef"}},
	},
	"splunk": {
		credentials: []string{"SPLUNK_ACCESS_TOKEN=secret"},
		endpoints:   map[string]string{"SPLUNK_GATEWAY_ENDPOINT": "", "SPLUNK_INGEST_URL": "https://ingest.eu0.observability.splunkcloud.com"},
		logs:        request{logsPath, nil},
		metrics:     request{"/v2/datapoint/otlp", map[string]string{"X-SF-Token": "secret"}},
	},
	"honeycomb": {
		credentials: []string{"HONEYCOMB_API_KEY=hcaik_secret"},
		endpoints:   map[string]string{"HONEYCOMB_ENDPOINT": ""},
		logs:        request{logsPath, map[string]string{"x-honeycomb-team": "hcaik_secret"}},
		metrics:     request{metricsPath, map[string]string{"x-honeycomb-team": "hcaik_secret", "x-honeycomb-dataset": "kube-events-metrics"}},
	},
}

// TestHostedBackendsAreValid: with the addresses that users set, and with the defaults of others.
func TestHostedBackendsAreValid(t *testing.T) {
	t.Parallel()
	for name, backend := range hostedBackends {
		command := exec.Command(harness.Otelcol(t), "validate", "--config", harness.InRepository(file("backends", name+".yaml")))
		command.Env = append(os.Environ(), backend.credentials...)
		for variable, value := range backend.endpoints {
			if value != "" {
				command.Env = append(command.Env, variable+"="+value)
			}
		}
		output, err := command.CombinedOutput()
		assert.NoError(t, err, "%s: %s", name, output)
		assert.Empty(t, string(output), name)
	}
}

// TestHostedBackendsGetWhatTheyDemand: logs and the metric arrive, at the paths and with the headers
// that the backends document.
func TestHostedBackendsGetWhatTheyDemand(t *testing.T) {
	t.Parallel()
	for name, hosted := range hostedBackends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := slices.Clone(hosted.credentials)
			receives(t, "backend-"+name, hosted.logs, hosted.metrics, func(address string) *harness.Collector {
				for variable, value := range hosted.endpoints {
					env = append(env, variable+"="+address+pathOf(value))
				}
				env = append(env, "KUBECONFIG="+kubeconfigFor(t, "backends"))
				return harness.Run(t, harness.Otelcol(t), harness.InRepository(file("backends", name+".yaml")), env...)
			})
		})
	}
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

// pathOf is the part of a URL behind the host.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	_, path, found := strings.Cut(rest, "/")
	if !found {
		return ""
	}
	return "/" + path
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

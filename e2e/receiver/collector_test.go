// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// collector is a Collector that runs with the configuration that comes with it.
type collector struct {
	*harness.Collector

	backend                   *harness.Backend
	metrics, internal, health string // the addresses of the metric, of the Collector's own metrics, and of the health check
}

// startCollector starts it for the cluster, with settings over those of its configuration. The health
// check reports the components' status, recoverable errors at once.
func startCollector(t *testing.T, kubeconfig string, settings ...string) *collector {
	t.Helper()
	free, err := process.FreeAddresses(3)
	require.NoError(t, err)
	col := &collector{backend: harness.NewBackend(t), metrics: free[0], internal: free[1], health: free[2]}
	arguments := []string{
		"--config", harness.InRepository("distribution", "config.yaml"),
		"--feature-gates=+extension.healthcheck.useComponentStatus",
	}
	settings = append([]string{
		fmt.Sprintf("extensions::health_check: {http: {endpoint: %q, status: {enabled: true, path: /status}}, "+
			"component_health: {include_recoverable_errors: true, recovery_duration: 1ms}}", col.health),
		"service::extensions: [health_check]",
		"exporters::otlp_http: {endpoint: " + col.backend.URL + "}",
		"service::pipelines::logs::exporters: [event_page, otlp_http]",
	}, settings...)
	for _, setting := range settings {
		arguments = append(arguments, "--config", "yaml:"+setting)
	}
	_, port, err := net.SplitHostPort(col.internal)
	require.NoError(t, err)
	col.Collector = harness.Start(t, exec.Command(harness.Otelcol(t), arguments...),
		"KUBECONFIG="+kubeconfig, "PAGE_ENDPOINT=127.0.0.1:0", "PROMETHEUS_ENDPOINT="+col.metrics, "OTELCOL_METRICS_PORT="+port)
	return col
}

// scrape returns the metrics at an address; none if there are none yet.
func scrape(t *testing.T, address string) promtext.Metrics {
	t.Helper()
	metrics, err := promtext.Get(t.Context(), "http://"+address+"/metrics")
	if err != nil {
		return nil
	}
	return metrics
}

// awaitHealth asks the health check as a probe does, until it has an answer.
func (col *collector) awaitHealth(t *testing.T, code int, part string) {
	t.Helper()
	var page string
	eventually(t, func() bool {
		response, err := http.Get("http://" + col.health + "/status?verbose")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		page = string(body)
		return response.StatusCode == code && strings.Contains(page, part)
	}, "the health %d with %q", code, part)
}

func TestTheBuiltCollector(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	col := startCollector(t, kube.Kubeconfig(), "receivers::kube_events::namespaces: ["+ns+"]",
		"receivers::kube_events::collection_interval: 1s", "service::telemetry::logs::level: info")
	fe := kube.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))

	started := record{col.backend.Await(t, "k8s.event.reason", "Started")}
	assert.Equal(t, "shop", started.text("tilt.manifest"))
	assert.Equal(t, string(fe.GetUID()), started.text("k8s.workload.uid"))
	assert.Equal(t, "k8s.event", started.Log.EventName())
	for _, line := range []string{"The watch works", "First records accepted by the pipeline"} {
		eventually(t, func() bool { return strings.Contains(col.Output.String(), line) }, "%q in the log", line)
	}
	eventually(t, func() bool {
		found := scrape(t, col.metrics).Series("k8s_event_occurrences_total", "k8s_event_reason", "Started", "k8s_namespace_name", ns,
			"k8s_workload_name", "fe", "tilt_manifest", "shop", "k8s_object_kind", "Pod", "k8s_event_type", "Normal")
		return len(found) == 1 && found[0].Value == 1
	}, "the metric for Prometheus")
	for _, name := range ownMetrics {
		eventually(t, func() bool { return scrape(t, col.internal).Has(name) }, "%s among the Collector's own metrics", name)
	}
	col.Stop(t)
}

// ownMetrics are those of the receiver's own telemetry that there are when all is well.
var ownMetrics = []string{
	"otelcol_kube_events_received", "otelcol_kube_events_accepted", "otelcol_kube_events_filtered", "otelcol_kube_events_latency",
	"otelcol_kube_events_batch_wait",
	"otelcol_kube_events_owner_lookups", "otelcol_kube_events_owner_lookup_duration", "otelcol_kube_events_owner_cache_hits",
	"otelcol_kube_events_owner_cache_size", "otelcol_kube_events_waiting", "otelcol_kube_events_checkpoint_age",
}

func TestAProbeSeesAMissingPermission(t *testing.T) {
	t.Parallel()
	account := unique("probed")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	restore := kube.revoke(t, account)
	col := startCollector(t, kubeconfig)
	col.awaitHealth(t, http.StatusInternalServerError, `{apiGroups: [''], resources: [events], verbs: [get, list, watch]}`)
	restore()
	col.awaitHealth(t, http.StatusOK, "")
}

// TestThePageKnowsWhetherTheReceiverWorks, and says the fix.
func TestThePageKnowsWhetherTheReceiverWorks(t *testing.T) {
	t.Parallel()
	account := unique("page")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	restore := kube.revoke(t, account)
	addresses, err := process.FreeAddresses(1)
	require.NoError(t, err)
	startCollector(t, kubeconfig, "exporters::event_page::endpoint: "+addresses[0], "service::extensions: [health_check, kube_events_status]")
	says := func(part, not string) {
		eventually(t, func() bool {
			response, err := http.Get("http://" + addresses[0] + "/api/problems")
			if err != nil {
				return false
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			return strings.Contains(string(body), part) && !strings.Contains(string(body), not)
		}, "a page that says %q, and not %q", part, not)
	}
	says("bind a ClusterRole with the rule {apiGroups: [''], resources: [events]", "records_since")
	restore()
	says("records_since", "incomplete")
}

func TestTheElectorLogsThatNobodyCanBeElected(t *testing.T) {
	t.Parallel()
	ns, account := kube.newNamespace(t), unique("candidate")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, harness.DocumentedRules(t, "The whole cluster")...)
	require.NoError(t, err)
	col := startCollector(t, kubeconfig,
		"receivers::kube_events::k8s_leader_elector: k8s_leader_elector",
		"receivers::kube_events::progress_config_map: "+ns+"/kube-events-leader-kube-events",
		"extensions::k8s_leader_elector: {auth_type: kubeConfig, lease_name: kube-events-leader, lease_namespace: "+ns+
			", lease_duration: 4s, renew_deadline: 3s, retry_period: 1s}", "service::extensions: [health_check, k8s_leader_elector]")
	// The account may read Leases, but not create them.
	eventually(t, func() bool {
		log := col.Output.String()
		return strings.Contains(log, "Error initially creating lease lock") && strings.Contains(log, `cannot create resource \"leases\"`)
	}, "the missing rule in the log")
	kube.bind(t, ns, account, harness.DocumentedRules(t, "Leader election")...)
	eventually(t, func() bool { return len(col.backend.Records()) > 0 }, "what the leader emits")
	col.awaitHealth(t, http.StatusOK, "")
}

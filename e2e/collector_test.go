// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// collector is a Collector that runs with the configuration that comes with it.
type collector struct {
	*process.Process

	records           string // the file with what it emitted
	metrics, internal string // the addresses of the metric, and of the Collector's own metrics
}

// startCollector starts it for the cluster, with settings over those of its configuration, and
// flags if they look so.
func startCollector(t *testing.T, kubeconfig string, settings ...string) *collector {
	t.Helper()
	col := &collector{
		records: filepath.Join(t.TempDir(), "records.json"),
		metrics: freeAddress(t), internal: freeAddress(t),
	}
	settings = append(settings, "exporters::file::path: "+col.records, "service::pipelines::logs::exporters: [event_page, file]")
	arguments := []string{"--config", filepath.Join("..", "distribution", "config.yaml")}
	for _, setting := range settings {
		if strings.HasPrefix(setting, "--") {
			arguments = append(arguments, setting)
		} else {
			arguments = append(arguments, "--config", "yaml:"+setting)
		}
	}
	command := exec.Command(harness.Otelcol(t), arguments...)
	_, port, err := net.SplitHostPort(col.internal)
	require.NoError(t, err)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PAGE_ENDPOINT=127.0.0.1:0", "PROMETHEUS_ENDPOINT="+col.metrics, "OTELCOL_METRICS_PORT="+port)
	col.Process = harness.StartProcess(t, command)
	return col
}

// freeAddress returns an address that no program listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	addresses, err := process.FreeAddresses(1)
	require.NoError(t, err)
	return addresses[0]
}

// emitted are the records in the file, of which the last line may be incomplete.
func (col *collector) emitted() (all []record) {
	file, err := os.Open(col.records)
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(lines.Bytes()); err == nil {
			all = append(all, recordsOf(logs)...)
		}
	}
	return all
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

func TestTheBuiltCollector(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	col := startCollector(t, kube.Kubeconfig(), "receivers::kube_events::namespaces: ["+ns+"]", "receivers::kube_events::collection_interval: 1s", "service::telemetry::logs::level: info")
	fe := kube.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))

	var started []record
	eventually(t, func() bool {
		started = nil
		for _, r := range col.emitted() {
			if r.text("k8s.event.reason") == "Started" {
				started = append(started, r)
			}
		}
		return len(started) > 0
	}, "a record in the file")
	assert.Equal(t, "shop", started[0].text("tilt.manifest"))
	assert.Equal(t, string(fe.GetUID()), started[0].text("k8s.workload.uid"))
	assert.Equal(t, "k8s.event", started[0].log.EventName())
	for _, line := range []string{"The watch works", "First records accepted by the pipeline"} {
		eventually(t, func() bool { return strings.Contains(col.Output.String(), line) }, "%q in the log", line)
	}

	eventually(t, func() bool {
		found := scrape(t, col.metrics).Series("k8s_event_occurrences_total", "k8s_event_reason", "Started", "k8s_namespace_name", ns,
			"k8s_workload_name", "fe", "tilt_manifest", "shop", "k8s_object_kind", "Pod", "k8s_event_type", "Normal")
		return len(found) == 1 && found[0].Value == float64(len(started))
	}, "the metric for Prometheus")
	for _, name := range ownMetrics {
		eventually(t, func() bool { return scrape(t, col.internal).Has(name) }, "%s among the Collector's own metrics", name)
	}
	harness.Terminate(t, col.Process)
}

// ownMetrics are those of the receiver's own telemetry that there are when all is well.
var ownMetrics = []string{
	"otelcol_kube_events_received", "otelcol_kube_events_accepted", "otelcol_kube_events_filtered", "otelcol_kube_events_latency",
	"otelcol_kube_events_batch_wait",
	"otelcol_kube_events_owner_lookups", "otelcol_kube_events_owner_lookup_duration", "otelcol_kube_events_owner_cache_hits",
	"otelcol_kube_events_owner_cache_size", "otelcol_kube_events_waiting", "otelcol_kube_events_checkpoint_age",
}

func TestTheBuiltCollectorWithoutAnAPIServer(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kube.Kubeconfig())
	g.server.Close()
	col := startCollector(t, g.kubeconfig)
	eventually(t, func() bool { return strings.Contains(col.Output.String(), "Cannot read the UID of the cluster") }, "a log message")
	// The Collector, which starts at the same time, listens to signals by then.
	eventually(t, func() bool { return scrape(t, col.internal).Sum("otelcol_kube_events_leading") > 0 }, "its own metrics")
	harness.Terminate(t, col.Process) // An API server that is not available never stops the Collector.
}

// TestTheBuiltCollectorRefusesToStart: the message names the key, the value and the fix.
func TestTheBuiltCollectorRefusesToStart(t *testing.T) {
	t.Parallel()
	for setting, parts := range map[string][]string{
		"start_at: middle":                    {"receivers::kube_events", "start_at", `"middle"`, "beginning"},
		"include_reasons: ['a[']":             {"receivers::kube_events", "include_reasons", `"a["`, "glob"},
		"extract::labels: [{key_regex: '('}]": {"receivers::kube_events", "extract", "key_regex", `"("`},
		"owners::max_dept: 3":                 {"kube_events", "owners", "max_dept"},
		"kubeconfig: /no/such/file":           {"kube_events", "kubeconfig", `"/no/such/file"`, "set kubeconfig"},
		"context: elsewhere":                  {"kube_events", "context", `"elsewhere"`, "set kubeconfig and context"},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			col := startCollector(t, kube.Kubeconfig(), "receivers::kube_events::"+setting)
			assert.Equal(t, 1, col.ExitCode())
			for _, part := range parts {
				assert.Contains(t, col.Output.String(), part)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestNamesWithDots: a Prometheus that keeps OpenTelemetry's names evaluates the rules of the chart with
// its value metricName, and answers all queries of its dashboards.
func TestNamesWithDots(t *testing.T) {
	t.Parallel()
	for metric, strategy := range map[string]string{
		"k8s.event.occurrences": "NoTranslation", "k8s.event.occurrences_total": "NoUTF8EscapingWithSuffixes", "k8s_event_occurrences": "UnderscoreEscapingWithoutSuffixes",
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			rules, dashboards := renderedFor(t, metric)
			directory := t.TempDir()
			require.NoError(t, evaluateOften(directory, rules))
			server := newPrometheus(t, directory, fmt.Sprintf("otlp: {translation_strategy: %s}\nrule_files: [%q]\n", strategy, filepath.Join(directory, "rules.yaml")))
			startOtelcol(t, fmt.Sprintf(`
receivers: {kube_events: {start_at: beginning, collection_interval: 1s}}
exporters: {nop: , otlp_http: {endpoint: "%s/api/v1/otlp", sending_queue: {enabled: false}}}
service: {pipelines: {logs: {exporters: [nop]}, metrics: {exporters: [otlp_http]}}}
`, server.url))
			eventually(t, server.evaluatesItsRules)
			for _, d := range dashboards {
				server.answers(t, d, metric)
			}
		})
	}
}

// renderedFor are the rules and the dashboards of the chart for a name of the metric.
func renderedFor(t *testing.T, metric string) (rules []byte, dashboards []dashboard) {
	t.Helper()
	for _, object := range harness.Chart(t, "kube-events", "observability", "--set",
		"otlp.endpoint=http://gateway:4318,prometheusRule.enabled=true,dashboards.enabled=true,metricName="+metric) {
		if object.GetKind() == "PrometheusRule" {
			text, err := yaml.Marshal(object.Object["spec"])
			require.NoError(t, err)
			rules = text
		}
		if !strings.HasSuffix(object.GetName(), "-dashboard") {
			continue
		}
		texts, _, err := unstructured.NestedStringMap(object.Object, "data")
		require.NoError(t, err)
		for name, text := range texts {
			d := dashboard{name: name}
			require.NoError(t, json.Unmarshal([]byte(text), &d))
			dashboards = append(dashboards, d)
		}
	}
	require.Len(t, dashboards, 4)
	return rules, dashboards
}

// startOtelcol starts a Collector that ends with the test.
func startOtelcol(t *testing.T, config string) {
	t.Helper()
	own, err := process.FreeAddresses(1)
	require.NoError(t, err)
	p, err := all.startOtelcol(own[0], strings.ReplaceAll(config, "OWN_PORT", port(own[0])))
	if p != nil {
		t.Cleanup(p.stop)
	}
	require.NoError(t, err)
}

// underscored is a label of the metric with underscores, and dotted one with dots.
var (
	underscored = regexp.MustCompile(`k8s_(cluster|namespace|workload|event|object)_(name|uid|kind|reason|type)|k8s_(pod_cpu_usage|container_restarts)`)
	dotted      = regexp.MustCompile(`k8s\.(cluster|namespace|workload|event|object)\.(name|uid|kind|reason|type)`)
)

// answers: Prometheus can evaluate the queries of a dashboard, which have the names of the metric.
func (p *prometheus) answers(t *testing.T, d dashboard, metric string) {
	t.Helper()
	wrong := dotted
	if strings.Contains(metric, ".") {
		wrong = underscored
	}
	var queries []target
	for _, panel := range d.Panels {
		queries = append(queries, panel.Targets...)
		for _, transformation := range panel.Transformations {
			if len(panel.Targets) > 0 && panel.Targets[0].Datasource.Type == "prometheus" {
				assert.NotRegexp(t, wrong, transformation.Options.RenameByName)
			}
		}
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, target{Expr: a.Expr, Datasource: a.Datasource})
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			query, _ := v.asks()
			queries = append(queries, target{Expr: query, Instant: true})
		}
	}
	for _, query := range queries {
		if query.Datasource.Type == "loki" {
			continue
		}
		assert.NotRegexp(t, wrong, query.Expr)
		_, err := p.panel(query, d.interpolate(query.Expr, "prometheus", alwaysChosen[strings.TrimSuffix(strings.TrimPrefix(d.name, "kube-events-"), ".json")]))
		require.NoError(t, err, query.Expr)
	}
	if strings.Contains(d.name, "overview") {
		warnings := d.interpolate(d.Panels[0].Targets[0].Expr, "prometheus", nil)
		eventually(t, question{warnings, func() ([]answer, error) { return p.panel(d.Panels[0].Targets[0], warnings) }}.returnsData)
	}
}

// TestOwnMetricsThatArePushed: the rules select them by names that they have only then.
func TestOwnMetricsThatArePushed(t *testing.T) {
	t.Parallel()
	server := newPrometheus(t, t.TempDir(), "")
	startOtelcol(t, fmt.Sprintf(`
receivers: {kube_events: {start_at: beginning, collection_interval: 1s}}
exporters: {nop: }
service:
  pipelines: {logs: {exporters: [nop]}, metrics: {exporters: [nop]}}
  telemetry:
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: OWN_PORT}}}
        - periodic: {interval: 1000, exporter: {otlp: {protocol: http/protobuf, endpoint: "%s/api/v1/otlp/v1/metrics"}}}
`, server.url))
	rules := harness.Read(t, "deploy", "chart", "rules", "kube-events.yaml")
	for selector, pushed := range map[string]string{
		"otelcol_kube_events_leading(_ratio)?": "otelcol_kube_events_leading_ratio", "otelcol_kube_events_checkpoint_age(_seconds)?": "otelcol_kube_events_checkpoint_age_seconds",
		"otelcol_kube_events_received(_total)?": "otelcol_kube_events_received_total", "otelcol_receiver_accepted_metric_points(_total)?": "otelcol_receiver_accepted_metric_points_total",
	} {
		assert.Contains(t, rules, `__name__=~"`+selector+`"`)
		eventually(t, func() error {
			found, err := server.series(pushed)
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("%s does not exist", pushed)
			}
			return err
		})
	}
}

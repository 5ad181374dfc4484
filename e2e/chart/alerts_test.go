// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// alertRules are rules as Prometheus and the Prometheus Operator have them.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []alertRule
	}
}

type alertRule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

func (r alertRules) alerts() map[string]alertRule {
	all := map[string]alertRule{}
	for _, group := range r.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				all[rule.Alert] = rule
			}
		}
	}
	return all
}

// alertsOf are the alerts of the only PrometheusRule, by name.
func alertsOf(t *testing.T, m manifests) map[string]alertRule {
	t.Helper()
	found := m.of("PrometheusRule")
	require.Len(t, found, 1)
	text, err := found[0].MarshalJSON()
	require.NoError(t, err)
	var object struct{ Spec alertRules }
	require.NoError(t, json.Unmarshal(text, &object))
	return object.Spec.alerts()
}

func alertsOfTheFile(t *testing.T) map[string]alertRule {
	t.Helper()
	var rules alertRules
	require.NoError(t, yaml.Unmarshal([]byte(fileOfVersion(t, "rules", "kube-events.yaml")), &rules))
	return rules.alerts()
}

// fileOfVersion is a file of the chart whose links lead to the documents of the version, as in a release.
func fileOfVersion(t *testing.T, path ...string) string {
	t.Helper()
	version := "/v" + strings.TrimSpace(harness.Read(t, "VERSION")) + "/"
	return strings.TrimSpace(strings.ReplaceAll(harness.Read(t, append([]string{"deploy", "chart"}, path...)...), "/main/", version))
}

// TestAlertsLinkToAnotherPage: those for Loki, too.
func TestAlertsLinkToAnotherPage(t *testing.T) {
	t.Parallel()
	const page = "https://wiki.example.com/runbooks"
	for name, alert := range alertsOf(t, render(t, "--set", endpoint, "--set", "prometheusRule.enabled=true,runbookURL="+page)) {
		assert.Equal(t, page+"#"+strings.ToLower(name), alert.Annotations["runbook_url"])
	}
	text, _, err := unstructured.NestedString(lokiRules(t, "--set", "runbookURL="+page).Object, "data", "kube-events.yaml")
	require.NoError(t, err)
	assert.Contains(t, text, "runbook_url: "+page+"#kubeeventsfailedcreate\n")
	assert.NotContains(t, text, "github.com")
}

// grouping are the labels of a workload or of a namespace in an aggregation of a rule.
var grouping = regexp.MustCompile(`by \([\w, ]*k8s_(?:workload_name|namespace_name, k8s_event_(?:type|reason))([\w, ]*)\)`)

// TestAllRulesKeepTheTags: those of the value, else those that the configuration extracts into the metric.
func TestAllRulesKeepTheTags(t *testing.T) {
	t.Parallel()
	const config = `
config:
  receivers:
    kube_events:
      extract:
        labels: [{tag_name: team.name, key: team}, {tag_name: zone, key: zone, from: node}, {key: controller-revision-hash}]
        annotations: [{tag_name: owner, key: owner, from: namespace}, {tag_name: $1, key_regex: (.*)}]
`
	for values, tags := range map[string]string{
		"prometheusRule: {enabled: true}":                                              ", tilt_manifest",
		"prometheusRule: {enabled: true}" + config:                                     ", team_name, owner",
		"prometheusRule: {enabled: true, extraLabels: [team, app.kubernetes.io/part]}": ", team, app_kubernetes_io_part",
		"prometheusRule: {enabled: true, extraLabels: []}":                             "",
	} {
		all := renderValues(t, values+"\notlp: {endpoint: http://gateway:4318}\nlokiRule: {enabled: true}\n")
		for _, object := range append(all.of("PrometheusRule"), all.of("ConfigMap")...) {
			if object.GetKind() == "ConfigMap" && !strings.HasSuffix(object.GetName(), "-loki-rules") {
				continue
			}
			text, err := object.MarshalJSON()
			require.NoError(t, err)
			found := grouping.FindAllStringSubmatch(string(text), -1)
			require.Greater(t, len(found), 5, object.GetKind())
			for _, labels := range found {
				assert.Contains(t, labels[1], tags, labels[0])
			}
			assert.Equal(t, strings.Contains(tags, "tilt"), strings.Contains(string(text), "tilt_manifest"), values)
		}
	}
}

// TestAlertsCanBeChanged: one is left out, and others get labels. Nothing else changes.
func TestAlertsCanBeChanged(t *testing.T) {
	t.Parallel()
	changed := alertsOf(t, render(t, "--set", endpoint, "--set", "prometheusRule.enabled=true",
		"--set", "prometheusRule.alerts.KubeEventsCrashLoop.enabled=false",
		"--set", "prometheusRule.alerts.KubeEventsStorm.labels.severity=info",
		"--set", "prometheusRule.alerts.KubeEventsEvicted.labels.team=platform",
		"--set", "prometheusRule.alerts.KubeEventsEvicted.enabled=true"))
	expected := alertsOfTheFile(t)
	delete(expected, "KubeEventsCrashLoop")
	expected["KubeEventsStorm"].Labels["severity"] = "info"
	expected["KubeEventsEvicted"].Labels["team"] = "platform"
	assert.Equal(t, expected, changed)
}

// TestEveryAlertCanBeChanged: the schema permits the name of each.
func TestEveryAlertCanBeChanged(t *testing.T) {
	t.Parallel()
	arguments := []string{"--set", endpoint, "--set", "prometheusRule.enabled=true"}
	for name := range alertsOfTheFile(t) {
		arguments = append(arguments, "--set", "prometheusRule.alerts."+name+".enabled=false")
	}
	assert.Empty(t, alertsOf(t, render(t, arguments...)))
}

// TestAlertsLinkToDashboards: dashboard_url leads to a dashboard that exists, and sets variables that
// it has, also if an alert has no labels.
func TestAlertsLinkToDashboards(t *testing.T) {
	t.Parallel()
	variables := variablesOfDashboards(t)
	changed := alertsOf(t, render(t, "--set", endpoint, "--set", "prometheusRule.enabled=true", "--set", "prometheusRule.grafanaURL=https://grafana.example.com/a/"))
	require.Len(t, changed, len(alertsOfTheFile(t)))
	for name, alert := range changed {
		for _, labels := range []map[string]string{{}, {"k8s_cluster_name": "a&b", "cluster": "a&b", "k8s_namespace_name": "shop", "k8s_workload_kind": "Node", "k8s_workload_name": "fe"}} {
			link, err := url.Parse(expanded(t, alert.Annotations["dashboard_url"], labels))
			require.NoError(t, err, name)
			assert.Equal(t, "grafana.example.com", link.Host)
			uid, found := strings.CutPrefix(link.Path, "/a/d/")
			require.True(t, found, link.Path)
			require.Contains(t, variables, uid, name)
			for variable, values := range link.Query() {
				assert.Contains(t, variables[uid], strings.TrimPrefix(variable, "var-"), name)
				assert.NotEmpty(t, values[0], "%s: %s", name, variable)
			}
			expected := "$__all"
			if len(labels) > 0 {
				expected = "a&b"
			}
			assert.Equal(t, expected, link.Query().Get("var-cluster"), name)
		}
	}
}

// expanded is an annotation with the labels of an alert, as Prometheus writes it.
func expanded(t *testing.T, text string, labels map[string]string) string {
	t.Helper()
	parsed, err := template.New("").Parse("{{$labels := .}}" + text)
	require.NoError(t, err, text)
	var result strings.Builder
	require.NoError(t, parsed.Execute(&result, labels))
	return result.String()
}

// variablesOfDashboards are the names of the variables of each dashboard, by its UID.
func variablesOfDashboards(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, name := range []string{"overview", "workload", "node", "receiver"} {
		var dashboard struct {
			UID        string
			Templating struct{ List []struct{ Name string } }
		}
		require.NoError(t, json.Unmarshal([]byte(harness.Read(t, filepath.Join("deploy", "chart", "dashboards"), name+".json")), &dashboard))
		for _, variable := range dashboard.Templating.List {
			all[dashboard.UID] = append(all[dashboard.UID], variable.Name)
		}
	}
	return all
}

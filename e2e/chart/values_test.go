// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

const endpoint = "otlp.endpoint=http://gateway:4318"

func containerOf(t *testing.T, m manifests) corev1.Container {
	t.Helper()
	containers := only[appsv1.Deployment](t, m, "Deployment").Spec.Template.Spec.Containers
	require.Len(t, containers, 1)
	return containers[0]
}

// TestWrongValues: helm rejects them, and the error names the value and what is wrong with it.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values   []string
		expected []string
	}{
		"no destination":                       {nil, []string{"nothing receives the events: set otlp.endpoint", "page.enabled=true"}},
		"an unknown value":                     {[]string{endpoint, "replicas=3"}, []string{"'replicas' not allowed"}},
		"an unknown value of a group":          {[]string{"otlp.url=http://gateway:4318"}, []string{"'/otlp'", "'url' not allowed"}},
		"an endpoint without a scheme":         {[]string{"otlp.endpoint=gateway:4318"}, []string{"'/otlp/endpoint'", "'gateway:4318'", "https?://"}},
		"another protocol":                     {[]string{endpoint, "otlp.protocol=zipkin"}, []string{"'/otlp/protocol'", "'http', 'grpc'"}},
		"another mode":                         {[]string{endpoint, "mode=deployment"}, []string{"'/mode'", "'single', 'ha', 'stateless'"}},
		"a header whose Secret has no key":     {[]string{endpoint, "otlp.secretHeaders.Authorization.name=backend"}, []string{"'/otlp/secretHeaders/Authorization'", "missing property 'key'"}},
		"TLS without https":                    {[]string{endpoint, "otlp.tls.caSecret.name=ca"}, []string{"otlp.tls is set, but otlp.endpoint does not begin with https://"}},
		"the page of several replicas":         {[]string{endpoint, "mode=ha", "page.enabled=true"}, []string{"page.enabled does not work with mode=ha"}},
		"a text for a switch":                  {[]string{endpoint, "podMonitor.enabled=yes"}, []string{"'/podMonitor/enabled'", "got string, want boolean"}},
		"an integration that does not exist":   {[]string{endpoint, "rbac.integrations={jenkins}"}, []string{"'/rbac/integrations/0'", "'argo-cd'"}},
		"a rule that writes":                   {[]string{endpoint, "rbac.extraRules[0].apiGroups={x}", "rbac.extraRules[0].resources={y}", "rbac.extraRules[0].verbs={delete}"}, []string{"'/rbac/extraRules/0/verbs/0'", "'get', 'list', 'watch'"}},
		"a rule without resources":             {[]string{endpoint, "rbac.extraRules[0].apiGroups={x}"}, []string{"'/rbac/extraRules/0'", "missing property 'resources'"}},
		"a memory limit without a unit":        {[]string{endpoint, "resources.limits.memory=512M"}, []string{"'/resources/limits/memory'", "(Mi|Gi)"}},
		"a digest that is a tag":               {[]string{endpoint, "image.digest=v1"}, []string{"'/image/digest'", "sha256"}},
		"a namespace that cannot exist":        {[]string{endpoint, "namespaces={Team_A}"}, []string{"'/namespaces/0'", "'Team_A'"}},
		"the same namespace twice":             {[]string{endpoint, "namespaces={a,a}"}, []string{"'/namespaces'", "items at 0 and 1 are equal"}},
		"an interval longer than the exporter": {[]string{endpoint, "podMonitor.interval=10m"}, []string{"'/podMonitor/interval'", "'10m'"}},
		"root":                                 {[]string{endpoint, "runAsUser=0"}, []string{"'/runAsUser'", "minimum: got 0, want 1"}},
		"nodes that do not run Linux":          {[]string{endpoint, `nodeSelector.kubernetes\.io/os=windows`}, []string{"'/nodeSelector/kubernetes.io~1os'", "'linux'"}},
		"a cluster name that is a variable":    {[]string{endpoint, "clusterName=${CLUSTER}"}, []string{"'/clusterName'"}},
		"an unknown part of a configuration":   {[]string{endpoint, "config.exporter.debug.verbosity=detailed"}, []string{"'/config'", "'exporter' not allowed"}},
		"a name that objects cannot have":      {[]string{endpoint, "fullnameOverride=Kube_Events"}, []string{"'/fullnameOverride'"}},
		"a size that is not one":               {[]string{endpoint, "storage.size=big"}, []string{"'/storage/size'", "'big'"}},
		"an interval that is not one":          {[]string{endpoint, "podMonitor.interval=often"}, []string{"'/podMonitor/interval'", "'often'"}},
		"a pull policy that does not exist":    {[]string{endpoint, "image.pullPolicy=Sometimes"}, []string{"'/image/pullPolicy'", "'IfNotPresent', 'Always', 'Never'"}},
		"a header that HTTP does not allow":    {[]string{endpoint, "otlp.headers.X Y=z"}, []string{"'/otlp/headers'", "X Y"}},
		"all pipelines removed":                {[]string{endpoint, "config.service.pipelines=null"}, []string{"nothing receives the events"}},
		"a selector with double quotes":        {[]string{endpoint, `dashboards.lokiSelector=job="events"`}, []string{"'/dashboards/lokiSelector'"}},
		"no selector":                          {[]string{endpoint, "dashboards.lokiSelector="}, []string{"'/dashboards/lokiSelector'"}},
		"an alert that does not exist":         {[]string{endpoint, "prometheusRule.alerts.CrashLoop.enabled=false"}, []string{"'/prometheusRule/alerts'", "'CrashLoop' not allowed"}},
		"a Grafana without a scheme":           {[]string{endpoint, "prometheusRule.grafanaURL=grafana.example.com"}, []string{"'/prometheusRule/grafanaURL'", "https?://"}},
		"a list where there must be an object": {[]string{endpoint, "tolerations={a}"}, []string{"'/tolerations/0'", "got string, want object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arguments []string
			for _, value := range test.values {
				arguments = append(arguments, "--set", value)
			}
			_, stderr, err := harness.HelmTemplate(t, "kube-events", "observability", arguments...)
			require.Error(t, err)
			for _, part := range test.expected {
				assert.Contains(t, stderr, part)
			}
		})
	}
}

// TestEveryValueIsInTheSchema, and every property of the schema has a default.
func TestEveryValueIsInTheSchema(t *testing.T) {
	t.Parallel()
	var values map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "chart", "values.yaml")), &values))
	var schema schema
	require.NoError(t, json.Unmarshal([]byte(harness.Read(t, "deploy", "chart", "values.schema.json")), &schema))
	delete(schema.Properties, "global")  // Helm sets it.
	delete(schema.Properties, "enabled") // The condition of a dependency.
	schema.matches(t, "", values)
}

// schema is a JSON schema of an object. AdditionalProperties is false if it is closed.
type schema struct {
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
}

func (s schema) closed() bool { return string(s.AdditionalProperties) == "false" }

func (s schema) matches(t *testing.T, path string, values map[string]any) {
	t.Helper()
	if !s.closed() || path == "/config" { // The keys of a configuration have no defaults.
		return
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(s.Properties)), slices.Collect(maps.Keys(values)), "the values of %q", path)
	for key, property := range s.Properties {
		if nested, isMap := values[key].(map[string]any); isMap && key != "resources" {
			property.matches(t, path+"/"+key, nested)
		}
	}
}

// integrations are the rules for other projects, by project.
func readIntegrations(t *testing.T) (integrations map[string]struct {
	Rules []struct {
		APIGroups []string `json:"apiGroups"`
		Resources []string `json:"resources"`
	} `json:"rules"`
	AggregateLabel string `json:"aggregateLabel"`
}) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "chart", "integrations.yaml")), &integrations))
	require.NotEmpty(t, integrations)
	return integrations
}

// TestEveryIntegrationIsListed: in the schema, in values.yaml, in the plain manifests and on the
// page.
func TestEveryIntegrationIsListed(t *testing.T) {
	t.Parallel()
	integrations := readIntegrations(t)
	names := slices.Sorted(maps.Keys(integrations))
	assert.Contains(t, harness.Read(t, "deploy", "chart", "values.schema.json"), fmt.Sprintf(`{"enum": ["%s"]}`, strings.Join(names, `", "`)))
	comment := regexp.MustCompile(`\n *# `).ReplaceAllString(harness.Read(t, "deploy", "chart", "values.yaml"), " ")
	assert.Contains(t, comment, strings.Join(names, ", ")+". integrations.yaml")
	for _, manifest := range []string{"trial", "integrations"} {
		assert.Contains(t, harness.Read(t, "deploy", "manifests", "values", manifest+".yaml"), "integrations: ["+strings.Join(names, ", ")+"]")
	}
	page := harness.Read(t, "deploy", "README.md")
	for name, integration := range integrations {
		assert.Contains(t, page, "`"+name+"`")
		for _, rule := range integration.Rules {
			assert.NotContains(t, rule.Resources, "*", name)
			assert.NotContains(t, rule.Resources, "secrets", name)
		}
	}
}

// TestNoManifestPermitsReadingSecrets, or anything that the receiver does not read.
func TestNoManifestPermitsReadingSecrets(t *testing.T) {
	t.Parallel()
	for name, all := range rendered(t) {
		for _, role := range append(all.of("ClusterRole"), all.of("Role")...) {
			rules, _, err := unstructured.NestedSlice(role.Object, "rules")
			require.NoError(t, err)
			for _, rule := range rules {
				for _, forbidden := range []string{"secrets", "*"} {
					assert.NotContains(t, rule.(map[string]any)["resources"], forbidden, "%s: %s", name, role.GetName())
				}
				if !strings.HasSuffix(role.GetName(), "-leader") {
					assert.Subset(t, []any{"get", "list", "watch"}, rule.(map[string]any)["verbs"], "%s: %s", name, role.GetName())
				}
			}
		}
	}
}

// TestTheMemoryLimitDecidesGOMEMLIMIT: as docs/sizing.md says for clusters of different sizes.
func TestTheMemoryLimitDecidesGOMEMLIMIT(t *testing.T) {
	t.Parallel()
	limits, gomemlimits := sizes(t, "memory limit"), sizes(t, "`GOMEMLIMIT`")
	require.Len(t, gomemlimits, len(limits))
	for i, limit := range limits {
		container := containerOf(t, render(t, "--set", endpoint, "--set", "resources.limits.memory="+limit))
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: gomemlimits[i]}, limit)
	}
	assert.Contains(t, containerOf(t, render(t, "--set", endpoint, "--set", "resources.limits.memory=2Gi")).Env,
		corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.Itoa(2048*74/100) + "MiB"})
	for _, variable := range containerOf(t, render(t, "--set", endpoint, "--set", "resources.limits=null")).Env {
		assert.NotEqual(t, "GOMEMLIMIT", variable.Name, "without a limit, nothing is known")
	}
}

// sizes are the cells of a row of the table on the page on sizes.
func sizes(t *testing.T, row string) []string {
	t.Helper()
	cells := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \| (.*) \|$`).FindStringSubmatch(harness.Read(t, "docs", "sizing.md"))
	require.NotNil(t, cells, row)
	return strings.Split(cells[1], " | ")
}

// TestConfigChangesTheConfiguration: maps are merged, lists replaced, and null removes a key.
func TestConfigChangesTheConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
config:
  receivers: {kube_events: {start_at: beginning}}
  processors: {batch: {}}
  exporters: {otlp_http: {retry_on_failure: {enabled: true}, sending_queue: null}}
  service:
    extensions: []
    pipelines: {logs: {processors: [memory_limiter, batch]}}
`), 0o600))
	unchanged := render(t, "--set", endpoint).config(t)
	changed := render(t, "--set", endpoint, "--values", file).config(t)

	expected := unchanged
	expected["receivers"] = map[string]any{"kube_events": map[string]any{"start_at": "beginning", "storage": "file_storage"}}
	expected["processors"].(map[string]any)["batch"] = map[string]any{}
	exporter := expected["exporters"].(map[string]any)["otlp_http"].(map[string]any)
	exporter["retry_on_failure"] = map[string]any{"enabled": true}
	delete(exporter, "sending_queue")
	service := expected["service"].(map[string]any)
	service["extensions"] = []any{}
	service["pipelines"].(map[string]any)["logs"].(map[string]any)["processors"] = []any{"memory_limiter", "batch"}
	assert.Equal(t, expected, changed)
}

// TestEachReceiverHasItsPosition: with leader election, each receiver has a ConfigMap of its own.
func TestEachReceiverHasItsPosition(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
config:
  receivers: {kube_events/prod: {k8s_leader_elector: k8s_leader_elector}}
`), 0o600))
	role := only[rbacv1.Role](t, render(t, "--set", endpoint, "--set", "mode=ha", "--values", file), "Role")
	assert.Equal(t, []string{"kube-events-leader-kube-events", "kube-events-leader-kube-events.prod"}, role.Rules[3].ResourceNames)
}

// TestAChangedConfigurationRestartsThePods, and an unchanged one does not.
func TestAChangedConfigurationRestartsThePods(t *testing.T) {
	t.Parallel()
	template := func(values ...string) corev1.PodTemplateSpec {
		arguments := []string{"--set", endpoint}
		for _, value := range values {
			arguments = append(arguments, "--set", value)
		}
		return only[appsv1.Deployment](t, render(t, arguments...), "Deployment").Spec.Template
	}
	assert.Equal(t, template(), template("podMonitor.enabled=true"))
	assert.NotEqual(t, template(), template("config.receivers.kube_events.start_at=beginning"))
	assert.NotEqual(t, template(), template("clusterName=prod-1"))
}

// TestNamesAreValid: also those of long releases. A label has at most 63 characters.
func TestNamesAreValid(t *testing.T) {
	t.Parallel()
	release := strings.Repeat("long-", 10) + "xyz" // 53 characters are the most that helm allows.
	for _, name := range []string{release, "shop", "kube-events"} {
		for _, object := range harness.Chart(t, name, "observability", "--values", filepath.Join("testdata", "everything.values.yaml"), "--set", "dashboards.enabled=true") {
			assert.LessOrEqual(t, len(object.GetName()), 63, object.GetName())
			assert.Regexp(t, `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, object.GetName())
			for key := range object.GetLabels() {
				_, key, _ = strings.Cut(key, "/")
				assert.LessOrEqual(t, len(key), 63, key)
			}
		}
	}
}

// dashboards are the texts of the dashboards that the chart installs, by name.
func dashboards(t *testing.T, namespace string, arguments ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range render(t, append([]string{"--set", endpoint, "--set", "dashboards.enabled=true", "--set", "dashboards.annotations.grafana_folder=Kubernetes"}, arguments...)...).of("ConfigMap") {
		data, _, err := unstructured.NestedStringMap(object.Object, "data")
		require.NoError(t, err)
		for file, text := range data {
			if name, isDashboard := strings.CutSuffix(file, ".json"); isDashboard {
				assert.Equal(t, "1", object.GetLabels()["grafana_dashboard"])
				assert.Equal(t, "Kubernetes", object.GetAnnotations()["grafana_folder"])
				assert.Equal(t, namespace, object.GetNamespace())
				found[strings.TrimPrefix(name, "kube-events-")] = strings.TrimSpace(text)
			}
		}
	}
	return found
}

// TestDashboardsAreThoseOfTheFiles, with no character changed, with and without Loki.
func TestDashboardsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	for folder, loki := range map[string]string{".": "true", "without-loki": "false"} {
		expected := map[string]string{}
		for _, name := range []string{"overview", "workload", "node", "receiver"} {
			expected[name] = strings.TrimSpace(harness.Read(t, "deploy", "chart", "dashboards", folder, name+".json"))
		}
		assert.Equal(t, expected, dashboards(t, "observability", "--set", "dashboards.loki="+loki))
	}
}

// TestDashboardsWithAnotherSelector: it is the default of a variable, and the rules for Loki have it.
func TestDashboardsWithAnotherSelector(t *testing.T) {
	t.Parallel()
	const selector = "cluster=`a`, service_name=~`kube-events|events`"
	values := []string{"--set", "dashboards.lokiSelector=" + strings.ReplaceAll(selector, ",", `\,`), "--set", "dashboards.namespace=grafana"}
	for name, text := range dashboards(t, "grafana", values...) {
		var dashboard struct {
			Templating struct {
				List []struct {
					Name, Query string
					Current     struct{ Text, Value any }
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &dashboard), name)
		found := 0
		for _, variable := range dashboard.Templating.List {
			if variable.Name == "selector" {
				found++
				assert.Equal(t, selector, variable.Query)
				assert.Equal(t, selector, variable.Current.Text)
				assert.Equal(t, selector, variable.Current.Value)
			}
		}
		if name != "receiver" {
			assert.Equal(t, 1, found, name)
		}
	}
	rules := lokiRules(t, append(values, "--set", "lokiRule.namespace=loki")...)
	assert.Equal(t, "loki", rules.GetNamespace())
	assert.Contains(t, rules.GetLabels(), "loki_rule")
	text, _, err := unstructured.NestedString(rules.Object, "data", "kube-events.yaml")
	require.NoError(t, err)
	expected := strings.ReplaceAll(harness.Read(t, "deploy", "chart", "rules", "loki", "kube-events.yaml"), "log_source=`kube_events`", selector)
	assert.Equal(t, strings.TrimSpace(expected), strings.TrimSpace(text))
}

// lokiRules are the ConfigMap with the rules for Loki.
func lokiRules(t *testing.T, arguments ...string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range render(t, append([]string{"--set", endpoint, "--set", "lokiRule.enabled=true"}, arguments...)...).of("ConfigMap") {
		if strings.HasSuffix(object.GetName(), "-loki-rules") {
			return object
		}
	}
	require.Fail(t, "no ConfigMap with rules for Loki")
	return nil
}

// TestRulesAreThoseOfTheFile: without values that change them.
func TestRulesAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	all := render(t, "--set", endpoint, "--set", "prometheusRule.enabled=true", "--set", "prometheusRule.labels.release=prometheus")
	var rules map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(harness.Read(t, "deploy", "chart", "rules", "kube-events.yaml")), &rules))
	rule := all.of("PrometheusRule")
	require.Len(t, rule, 1)
	assert.Equal(t, rules, rule[0].Object["spec"])
	assert.Equal(t, "prometheus", rule[0].GetLabels()["release"])
}

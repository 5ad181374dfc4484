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
	"sync"
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
	require.NotEmpty(t, containers)
	return containers[0]
}

// TestWhatTheSchemaAcceptsStarts: the Collector accepts the configuration with each number, time and size
// of the schema at its bounds, and so does the API of Kubernetes. A number without a bound has none here.
func TestWhatTheSchemaAcceptsStarts(t *testing.T) {
	t.Parallel()
	var schema schema
	require.NoError(t, json.Unmarshal([]byte(harness.Read(t, "deploy", "chart", "values.schema.json")), &schema))
	bounds := map[string][]string{
		"rollouts.idleTimeout": {"10s", "9999s", "1m", "999m", "24h"}, "resources.limits.memory": {"64Mi", "9999999Mi", "1Gi", "9999Gi"},
		"prometheus.scrapeInterval": {"1ms", "99999ms", "240s", "4m"}, "podMonitor.interval": {"1ms", "4m"}, "startAt": {"end", "beginning"},
	}
	schema.numbers(t, "", schema.Definitions, bounds)
	require.Contains(t, bounds, "rollouts.maxRollouts")
	require.Contains(t, bounds, "startupProbe.failureThreshold")
	var validated sync.Map
	for path, values := range bounds {
		for _, value := range values {
			t.Run(path+"="+value, func(t *testing.T) {
				t.Parallel()
				all := render(t, "--set", endpoint+",rollouts.enabled=true,rollouts.endpoint=http://jaeger:4318,prometheus.enabled=true,otlp.signals={logs}",
					"--set", path+"="+value)
				started := fmt.Sprint(all.config(t), containerOf(t, all).Env)
				if _, known := validated.LoadOrStore(started, true); !known { // Most values are neither.
					all.validate(t)
				}
			})
		}
	}
}

// numbers adds the bounds of each number below a path.
func (s schema) numbers(t *testing.T, path string, definitions map[string]schema, bounds map[string][]string) {
	t.Helper()
	if name, isReference := strings.CutPrefix(s.Ref, "#/definitions/"); isReference {
		s = definitions[name]
	}
	if strings.Contains(string(s.Type), `"integer"`) {
		require.NotNil(t, s.Minimum, path)
		require.NotNil(t, s.Maximum, path)
		bounds[path] = []string{strconv.Itoa(*s.Minimum), strconv.Itoa(*s.Maximum)}
	}
	for name, property := range s.Properties {
		property.numbers(t, strings.TrimPrefix(path+"."+name, "."), definitions, bounds)
	}
}

// TestEveryValueIsInTheSchema, and every property of the schema has a default.
func TestEveryValueIsInTheSchema(t *testing.T) {
	t.Parallel()
	var values map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "chart", "values.yaml")), &values))
	var schema schema
	require.NoError(t, json.Unmarshal([]byte(harness.Read(t, "deploy", "chart", "values.schema.json")), &schema))
	delete(schema.Properties, "enabled") // The condition of a dependency.
	schema.matches(t, "", values)
}

// schema is a JSON schema of an object. AdditionalProperties is false if it is closed.
type schema struct {
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Definitions          map[string]schema `json:"definitions"`
	Ref                  string            `json:"$ref"`
	Type                 json.RawMessage   `json:"type"`
	Minimum, Maximum     *int
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

// TestAggregatedRolesHaveNoRules: Kubernetes writes them, so Argo CD would report each such ClusterRole
// as OutOfSync.
func TestAggregatedRolesHaveNoRules(t *testing.T) {
	t.Parallel()
	all := rendered(t)
	for _, page := range []string{"rbac.md", "owners.md"} {
		for _, block := range yamlBlock.FindAllStringSubmatch(harness.Read(t, "docs", page), -1) {
			if strings.Contains(block[1], "\nkind: ") {
				all[page] = append(all[page], harness.Objects(t, block[1])...)
			}
		}
	}
	aggregated := map[string]bool{}
	for name, manifest := range all {
		for _, role := range manifest.of("ClusterRole") {
			if role.Object["aggregationRule"] != nil {
				aggregated[name] = true
				assert.NotContains(t, role.Object, "rules", "%s: %s", name, role.GetName())
			}
		}
	}
	assert.Subset(t, slices.Collect(maps.Keys(aggregated)), []string{"rbac.md", "default.yaml", "integrations.yaml"})
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

// TestAProxyIsNotForTheAPIServer: Go prefers NO_PROXY to no_proxy, and the kubelet replaces what an
// earlier variable or a Service defines. So the user's exceptions stay, wherever they come from.
func TestAProxyIsNotForTheAPIServer(t *testing.T) {
	t.Parallel()
	const server = "$(KUBERNETES_SERVICE_HOST)"
	proxy := corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}
	fromSecret := corev1.EnvVar{Name: "https_proxy", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "proxy"}, Key: "url"}}}
	exceptions := corev1.EnvVar{Name: "NO_PROXY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "proxy"}, Key: "exceptions"}}}
	lower := exceptions
	lower.Name = "no_proxy"
	local, token := corev1.EnvVar{Name: "no_proxy", Value: ".local"}, corev1.EnvVar{Name: "TOKEN", Value: "1"}
	for name, test := range map[string]struct{ given, expected []corev1.EnvVar }{
		"no proxy":                    {[]corev1.EnvVar{token, exceptions}, []corev1.EnvVar{token, exceptions}},
		"a proxy":                     {[]corev1.EnvVar{proxy, token}, []corev1.EnvVar{proxy, token, {Name: "NO_PROXY", Value: server}}},
		"a proxy in a Secret":         {[]corev1.EnvVar{fromSecret}, []corev1.EnvVar{fromSecret, {Name: "NO_PROXY", Value: server}}},
		"exceptions in a ConfigMap":   {[]corev1.EnvVar{exceptions, proxy}, []corev1.EnvVar{proxy, lower, {Name: "NO_PROXY", Value: "$(no_proxy)," + server}}},
		"exceptions in small letters": {[]corev1.EnvVar{proxy, local}, []corev1.EnvVar{proxy, local, {Name: "NO_PROXY", Value: "$(no_proxy)," + server}}},
		"exceptions in both":          {[]corev1.EnvVar{proxy, local, exceptions}, []corev1.EnvVar{proxy, lower, {Name: "NO_PROXY", Value: "$(no_proxy)," + server}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := yaml.Marshal(map[string]any{"otlp": map[string]any{"endpoint": "http://gateway:4318"}, "extraEnv": test.given})
			require.NoError(t, err)
			all := containerOf(t, renderValues(t, string(values))).Env
			own := len(all) - len(test.expected)
			assert.Equal(t, test.expected, all[own:])
			assert.Equal(t, "OTLP_ENDPOINT", all[own-1].Name, "the last variable of the chart")
		})
	}
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
	expected["receivers"] = map[string]any{"kube_events": map[string]any{"start_at": "beginning", "k8s_leader_elector": "k8s_leader_elector",
		"progress_config_map": "${env:POD_NAMESPACE}/kube-events-leader-kube-events"}}
	expected["processors"].(map[string]any)["batch"] = map[string]any{}
	exporter := expected["exporters"].(map[string]any)["otlp_http"].(map[string]any)
	exporter["retry_on_failure"] = map[string]any{"enabled": true}
	delete(exporter, "sending_queue")
	service := expected["service"].(map[string]any)
	service["extensions"] = []any{}
	service["pipelines"].(map[string]any)["logs"].(map[string]any)["processors"] = []any{"memory_limiter", "batch"}
	assert.Equal(t, expected, changed)
}

// TestExtraProcessorsAreAddedToThoseOfTheChart: also in front of the traces and the page, and those of a
// preset come after them.
func TestExtraProcessorsAreAddedToThoseOfTheChart(t *testing.T) {
	t.Parallel()
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte(`
extraProcessors: {metrics: [filter/nodes]}
config: {processors: {filter/nodes: {metric_conditions: ['datapoint.attributes["k8s.workload.kind"] == "Node"']}}}
`), 0o600))
	recipe := harness.InRepository("examples", "mask", "values.yaml")
	mask := []string{"memory_limiter", "resource/source", "transform/mask"}
	filter := []string{"memory_limiter", "filter/nodes"}
	for name, test := range map[string]struct {
		set           string
		logs, metrics []string
	}{
		"a page":                 {"page.enabled=true", mask, nil},
		"a page, and problems":   {"page.enabled=true,problems.enabled=true", mask, nil},
		"a page, and traces":     {endpoint + ",page.enabled=true,rollouts.enabled=true", mask, filter},
		"traces, and no records": {"prometheus.enabled=true,rollouts.enabled=true,rollouts.endpoint=http://jaeger:4318", []string{"memory_limiter", "transform/mask"}, filter},
		"a preset for deltas":    {"backend.preset=datadog,backend.secret=s", mask, append(filter[:2:2], "cumulative_to_delta")},
		"a preset for datasets":  {"backend.preset=honeycomb,backend.secret=s", append(mask[:3:3], "resource/dataset"), filter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, "--values", recipe, "--values", values, "--set", test.set)
			all.validate(t)
			pipelines := all.config(t)["service"].(map[string]any)["pipelines"].(map[string]any)
			for signal, expected := range map[string][]string{"logs": test.logs, "metrics": test.metrics} {
				if expected != nil {
					assert.Equal(t, fmt.Sprint(expected), fmt.Sprint(pipelines[signal].(map[string]any)["processors"]), signal)
				}
			}
		})
	}
}

// TestEachReceiverHasItsProgress: with leader election, each receiver has a ConfigMap of its own.
func TestEachReceiverHasItsProgress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
config:
  receivers:
    kube_events/prod: {k8s_leader_elector: k8s_leader_elector, progress_config_map: "${env:POD_NAMESPACE}/prod"}
    kube_events/Test_1: {k8s_leader_elector: k8s_leader_elector}
    otlp: {protocols: {http: }}
`), 0o600))
	role := only[rbacv1.Role](t, render(t, "--set", endpoint, "--values", file), "Role")
	assert.Equal(t, []string{"kube-events-leader-kube-events", "kube-events-leader-kube-events.test-1", "prod"}, role.Rules[3].ResourceNames)
}

// TestAChangedConfigurationRestartsThePods, and an unchanged one does not.
func TestAChangedConfigurationRestartsThePods(t *testing.T) {
	t.Parallel()
	template := func(values ...string) corev1.PodTemplateSpec {
		return only[appsv1.Deployment](t, install(t, "observability", append(values, endpoint)...), "Deployment").Spec.Template
	}
	assert.Equal(t, template(), template("podMonitor.enabled=true"))
	assert.NotEqual(t, template(), template("config.receivers.kube_events.start_at=beginning"))
	assert.NotEqual(t, template(), template("clusterName=prod-1"))
	assert.Equal(t, "gvisor", *template("runtimeClassName=gvisor").Spec.RuntimeClassName)
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

// TestDashboardsAreThoseOfTheFiles, except for the version in links, with and without Loki.
func TestDashboardsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	for folder, loki := range map[string]string{".": "true", "without-loki": "false"} {
		expected := map[string]string{}
		for _, name := range []string{"overview", "workload", "node", "receiver"} {
			expected[name] = fileOfVersion(t, "dashboards", folder, name+".json")
		}
		assert.Equal(t, expected, dashboards(t, "observability", "--set", "dashboards.loki="+loki))
	}
}

// TestDashboardsWithAnotherSelector: it is the default of a variable, and the rules for Loki have it.
// The variables offer other data sources.
func TestDashboardsWithAnotherSelector(t *testing.T) {
	t.Parallel()
	const selector = "cluster=`a`, service_name=~`kube-events|events`"
	values := []string{"--set", "dashboards.lokiSelector=" + strings.ReplaceAll(selector, ",", `\,`), "--set", "dashboards.namespace=grafana"}
	for name, text := range dashboards(t, "grafana", append(values, "--set", "dashboards.dataSourceRegex=/prod/")...) {
		times := 3 // query, text and value of the variable
		if name == "receiver" {
			times = 0
		}
		written, err := json.Marshal(selector)
		require.NoError(t, err)
		assert.Equal(t, times, strings.Count(text, ": "+string(written)), name)
		assert.NotContains(t, text, "log_source=`", name)
		assert.Contains(t, text, `"regex": "/prod/"`, name)
		assert.NotContains(t, text, "/.*/", name)
	}
	rules := lokiRules(t, append(values, "--set", "lokiRule.namespace=loki")...)
	assert.Equal(t, "loki", rules.GetNamespace())
	assert.Contains(t, rules.GetLabels(), "loki_rule")
	text, _, err := unstructured.NestedString(rules.Object, "data", "kube-events.yaml")
	require.NoError(t, err)
	expected := strings.ReplaceAll(fileOfVersion(t, "rules", "loki", "kube-events.yaml"), "log_source=`kube_events`", selector)
	assert.Equal(t, expected, strings.TrimSpace(text))
}

// TestGrafanaCloudHasAnotherSelector: the Collector cannot choose its index labels.
func TestGrafanaCloudHasAnotherSelector(t *testing.T) {
	t.Parallel()
	values := []string{"--set", "backend.preset=grafana-cloud,backend.secret=cloud"}
	assert.Contains(t, dashboards(t, "observability", values...)["overview"], "\"query\": \"service_name=~`.+`\"")
	text, _, err := unstructured.NestedString(lokiRules(t, values...).Object, "data", "kube-events.yaml")
	require.NoError(t, err)
	assert.Contains(t, text, "{service_name=~`.+`}")
	assert.NotContains(t, text, "{log_source=")
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
	all := render(t, "--set", endpoint, "--set", "prometheusRule.enabled=true,prometheusRule.namespace=monitoring", "--set", "prometheusRule.labels.release=prometheus")
	var rules map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(fileOfVersion(t, "rules", "kube-events.yaml")), &rules))
	rule := all.of("PrometheusRule")
	require.Len(t, rule, 1)
	assert.Equal(t, rules, rule[0].Object["spec"])
	assert.Equal(t, "prometheus", rule[0].GetLabels()["release"])
	assert.Equal(t, "monitoring", rule[0].GetNamespace())
}

// TestEveryObjectHasTheCommonAnnotations, next to its own. The pods do not have them, because they would restart.
func TestEveryObjectHasTheCommonAnnotations(t *testing.T) {
	t.Parallel()
	all := renderValues(t, `
otlp: {endpoint: http://gateway:4318}
replicas: 2
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
lokiRule: {enabled: true}
dashboards: {enabled: true}
networkPolicy: {enabled: true}
commonAnnotations: {contact: platform}
`)
	published := renderValues(t, `
page: {enabled: true, hosts: [a.b], htpasswdSecret: s, service: {annotations: {lb: internal}}}
serviceMonitor: {enabled: true}
mode: single
storage: {annotations: {backup: "yes"}}
commonAnnotations: {contact: platform}
`)
	for _, object := range append(all, published...) {
		assert.Equal(t, "platform", object.GetAnnotations()["contact"], "%s %s", object.GetKind(), object.GetName())
	}
	assert.NotContains(t, only[appsv1.Deployment](t, all, "Deployment").Spec.Template.Annotations, "contact")
	assert.Equal(t, "yes", published.of("PersistentVolumeClaim")[0].GetAnnotations()["backup"])
	assert.Equal(t, "internal", published.of("Service")[0].GetAnnotations()["lb"])
}

// TestTheImageOfAnotherRegistry: a registry in image.repository is replaced.
func TestTheImageOfAnotherRegistry(t *testing.T) {
	t.Parallel()
	for repository, expected := range map[string]string{
		"ghcr.io/kubeevents/otelcol-kubeevents": "mirror.example.com/a/kubeevents/otelcol-kubeevents:v1",
		"localhost/otelcol":                     "mirror.example.com/a/otelcol:v1",
		"registry:5000/team/otelcol":            "mirror.example.com/a/team/otelcol:v1",
		"team/otelcol":                          "mirror.example.com/a/team/otelcol:v1",
		"otelcol":                               "mirror.example.com/a/otelcol:v1",
	} {
		container := containerOf(t, render(t, "--set", endpoint, "--set", "global.imageRegistry=mirror.example.com/a", "--set", "image.repository="+repository, "--set", "image.tag=v1"))
		assert.Equal(t, expected, container.Image)
	}
}

// TestAPublishedChartHasTheDigestOfItsImage: a release notes it in Chart.yaml. Another tag, repository or registry may
// have another image.
func TestAPublishedChartHasTheDigestOfItsImage(t *testing.T) {
	t.Parallel()
	chart := t.TempDir()
	require.NoError(t, os.CopyFS(chart, os.DirFS(harness.InRepository("deploy", "chart"))))
	const name, digest = "ghcr.io/kubeevents/otelcol-kubeevents", "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	version := strings.TrimSpace(harness.Read(t, "VERSION"))
	file, err := os.OpenFile(filepath.Join(chart, "Chart.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("  kubeevents.github.io/image: " + name + ":" + version + digest + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for values, expected := range map[string]string{
		"image.tag=null": name + ":" + version + digest,
		"image.tag=v1":   name + ":v1",
		"image.repository=registry.example.com/own":      "registry.example.com/own:" + version,
		"global.imageRegistry=mirror.example.com":        "mirror.example.com/kubeevents/otelcol-kubeevents:" + version,
		"image.digest=sha256:" + strings.Repeat("f", 64): name + "@sha256:" + strings.Repeat("f", 64),
	} {
		text := kube.Helm(t, "template", "kube-events", chart, "--set", endpoint, "--set", values)
		assert.Contains(t, text, "image: "+expected+"\n", values)
	}
}

// TestTheMetricIsNotFasterThanItsScrapes: else a scrape misses the zero of a new series.
func TestTheMetricIsNotFasterThanItsScrapes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values   []string
		expected any
	}{
		"no scrapes":                        {[]string{"podMonitor.enabled=true", endpoint}, nil},
		"a PodMonitor":                      {[]string{"prometheus.enabled=true", "podMonitor.enabled=true", "podMonitor.interval=45s"}, "45s"},
		"a ServiceMonitor":                  {[]string{"prometheus.enabled=true", "serviceMonitor.enabled=true", "serviceMonitor.interval=2m"}, "2m"},
		"the default of Prometheus":         {[]string{"prometheus.enabled=true"}, "1m"},
		"an interval that Prometheus knows": {[]string{"prometheus.enabled=true", "prometheus.scrapeInterval=15s"}, "15s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver := install(t, "observability", test.values...).config(t)["receivers"].(map[string]any)["kube_events"].(map[string]any)
			assert.Equal(t, test.expected, receiver["collection_interval"])
		})
	}
}

// TestEachSignalGoesWhereItShould: otlp.signals chooses the pipelines of the endpoint. Another backend gets the same.
func TestEachSignalGoesWhereItShould(t *testing.T) {
	t.Parallel()
	other := []any{"otlp_http/new"}
	for signals, expected := range map[string]map[string]any{
		"{logs}":    {"logs": []any{"otlp_http"}, "logs/new": other, "metrics": []any{"prometheus"}},
		"{metrics}": {"metrics": []any{"otlp_http", "prometheus"}, "metrics/new": other},
		"{logs,metrics}": {
			"logs": []any{"otlp_http"}, "logs/new": other, "metrics": []any{"otlp_http", "prometheus"}, "metrics/new": other,
		},
	} {
		config := render(t, "--set", endpoint, "--set", "prometheus.enabled=true", "--set", "otlp.signals="+signals,
			"--set", "additionalBackends.new.endpoint=http://new").config(t)
		actual := map[string]any{}
		for name, pipeline := range config["service"].(map[string]any)["pipelines"].(map[string]any) {
			actual[name] = pipeline.(map[string]any)["exporters"]
		}
		assert.Equal(t, expected, actual, signals)
	}
}

// TestEveryPresetIsListed: in the schema, and with a golden output.
func TestEveryPresetIsListed(t *testing.T) {
	t.Parallel()
	var presets map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "chart", "backends.yaml")), &presets))
	names := slices.Sorted(maps.Keys(presets))
	assert.Contains(t, harness.Read(t, "deploy", "chart", "values.schema.json"), fmt.Sprintf(`{"enum": [null, "%s"]}`, strings.Join(names, `", "`)))
	for _, name := range names {
		assert.FileExists(t, filepath.Join("testdata", "backend-"+name+".yaml"))
		assert.Contains(t, harness.Read(t, "examples", "backends", "README.md"), "`"+name+"`")
	}
}

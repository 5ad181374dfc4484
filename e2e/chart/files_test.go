// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// readManifests reads what kubectl apply -f would apply.
func readManifests(t *testing.T, path string) manifests {
	t.Helper()
	return harness.Objects(t, harness.Read(t, "deploy", path))
}

// operatorSpec are the fields of an OpenTelemetryCollector, opentelemetry.io/v1beta1, that are
// used.
type operatorSpec struct {
	Mode                      string                            `json:"mode"`
	Replicas                  int32                             `json:"replicas"`
	Image                     string                            `json:"image"`
	UpgradeStrategy           string                            `json:"upgradeStrategy"`
	ServiceAccount            string                            `json:"serviceAccount"`
	DeploymentUpdateStrategy  appsv1.DeploymentStrategy         `json:"deploymentUpdateStrategy"`
	Env                       []corev1.EnvVar                   `json:"env"`
	Resources                 corev1.ResourceRequirements       `json:"resources"`
	PodDisruptionBudget       *policyv1.PodDisruptionBudgetSpec `json:"podDisruptionBudget"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	PodSecurityContext        *corev1.PodSecurityContext        `json:"podSecurityContext"`
	SecurityContext           *corev1.SecurityContext           `json:"securityContext"`
	VolumeMounts              []corev1.VolumeMount              `json:"volumeMounts"`
	Volumes                   []corev1.Volume                   `json:"volumes"`
	NodeSelector              map[string]string                 `json:"nodeSelector"`
	Config                    map[string]any                    `json:"config"`
}

func readOperatorSpec(t *testing.T, file string) (spec operatorSpec) {
	t.Helper()
	collector := readManifests(t, "operator/"+file).of("OpenTelemetryCollector")
	require.Len(t, collector, 1)
	text, err := json.Marshal(collector[0].Object["spec"])
	require.NoError(t, err)
	require.NoError(t, sigsyaml.UnmarshalStrict(text, &spec))
	return spec
}

func TestTheOperatorsCollectorIsThatOfTheChart(t *testing.T) {
	t.Parallel()
	for file, values := range map[string][]string{"collector.yaml": {"mode=single"}, "ha.yaml": {"replicas=2"}} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			isThatOfTheChart(t, file, values...)
		})
	}
}

func isThatOfTheChart(t *testing.T, file string, values ...string) {
	t.Helper()
	spec, all := readOperatorSpec(t, file), install(t, "kube-events", append(values, "otlp.endpoint=http://otel-gateway.observability:4318")...)
	deployment := only[appsv1.Deployment](t, all, "Deployment")
	pod := deployment.Spec.Template.Spec
	c := pod.Containers[0]
	assert.Equal(t, "deployment", spec.Mode)
	assert.Equal(t, *deployment.Spec.Replicas, spec.Replicas)
	assert.Equal(t, deployment.Spec.Strategy, spec.DeploymentUpdateStrategy)
	assert.Equal(t, c.Image, spec.Image)
	assert.Equal(t, pod.ServiceAccountName, spec.ServiceAccount)
	assert.Subset(t, c.Env, spec.Env)
	assert.Equal(t, c.Resources, spec.Resources)
	assert.Equal(t, pod.SecurityContext, spec.PodSecurityContext)
	assert.Equal(t, c.SecurityContext, spec.SecurityContext)
	assert.Equal(t, pod.NodeSelector, spec.NodeSelector)
	assert.Subset(t, pod.Volumes, spec.Volumes)
	assert.Subset(t, c.VolumeMounts, spec.VolumeMounts)

	expected := map[string]any{}
	require.NoError(t, sigsyaml.Unmarshal([]byte(only[corev1.ConfigMap](t, all, "ConfigMap").Data["config.yaml"]), &expected))
	// The Operator makes both probes of one health check, of the old kind. It reads the ports from
	// addresses that have a host.
	extensions := expected["extensions"].(map[string]any)
	extensions["health_check"] = map[string]any{"endpoint": "0.0.0.0:13133"}
	delete(extensions, "health_check/ready")
	expected["service"].(map[string]any)["extensions"] = slices.DeleteFunc(expected["service"].(map[string]any)["extensions"].([]any),
		func(extension any) bool { return extension == "health_check/ready" })
	config, err := json.Marshal(expected)
	require.NoError(t, err)
	actual, err := json.Marshal(spec.Config)
	require.NoError(t, err)
	assert.JSONEq(t, strings.Replace(string(config), `"host":""`, `"host":"0.0.0.0"`, 1), string(actual))
	validate(t, spec.Config, spec.Env, "--config", configFile)
	for _, kind := range []string{"Role", "RoleBinding"} {
		for i, object := range all.of(kind) {
			object.SetLabels(nil)
			assert.Equal(t, object, readManifests(t, "operator/"+file).of(kind)[i])
		}
	}
	if budgets := all.of("PodDisruptionBudget"); len(budgets) > 0 {
		assert.Equal(t, decoded[policyv1.PodDisruptionBudget](t, budgets[0].Object).Spec.MaxUnavailable, spec.PodDisruptionBudget.MaxUnavailable)
	}
}

func TestThereIsOneVersion(t *testing.T) {
	t.Parallel()
	version := strings.TrimSpace(harness.Read(t, "VERSION"))
	for file, says := range map[string]string{
		"distribution/builder.yaml":      "\n  version: " + version + "\n",
		"deploy/chart/Chart.yaml":        "\nversion: " + version + "\nappVersion: " + version + "\n",
		"deploy/manifests/default.yaml":  "/otelcol-kubeevents:" + version + "\n",
		"deploy/operator/collector.yaml": ":" + version + "\n",
		"deploy/operator/ha.yaml":        ":" + version + "\n",

		"deploy/opentelemetry-chart/values.yaml": "\n  tag: " + version + "\n",
		"CHANGELOG.md":                           "\n## [" + version + "]",
	} {
		assert.Contains(t, harness.Read(t, file), says, file)
	}
	assert.Contains(t, harness.Read(t, "README.md"), "kubeeventsreceiver v"+version+"\n")
}

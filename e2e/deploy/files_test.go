// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// entrypoint is the program of the image.
const entrypoint = "otelcol-kubeevents"

// readManifests reads what kubectl apply -f would apply.
func readManifests(t *testing.T, path string) manifests {
	t.Helper()
	return harness.Objects(t, harness.Read(t, "deploy", path))
}

// helmValues are those of the keys of the chart opentelemetry-collector that are used.
type helmValues struct {
	Mode             string `json:"mode"`
	ReplicaCount     int32  `json:"replicaCount"`
	FullnameOverride string `json:"fullnameOverride"`
	Image            struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
	} `json:"image"`
	Command struct {
		Name      string   `json:"name"`
		ExtraArgs []string `json:"extraArgs"`
	} `json:"command"`
	Rollout struct {
		Strategy appsv1.DeploymentStrategyType `json:"strategy"`
	} `json:"rollout"`
	ClusterRole struct {
		Create             bool                  `json:"create"`
		Name               string                `json:"name"`
		ClusterRoleBinding struct{ Name string } `json:"clusterRoleBinding"`
		Rules              []rbacv1.PolicyRule   `json:"rules"`
	} `json:"clusterRole"`
	ExtraEnvs          []corev1.EnvVar             `json:"extraEnvs"`
	UseGOMEMLIMIT      bool                        `json:"useGOMEMLIMIT"`
	Resources          corev1.ResourceRequirements `json:"resources"`
	PodSecurityContext *corev1.PodSecurityContext  `json:"podSecurityContext"`
	SecurityContext    *corev1.SecurityContext     `json:"securityContext"`
	LivenessProbe      *corev1.Probe               `json:"livenessProbe"`
	ReadinessProbe     *corev1.Probe               `json:"readinessProbe"`
	Service            struct{ Enabled bool }      `json:"service"`
	Ports              map[string]struct {
		Enabled bool `json:"enabled"`
	} `json:"ports"`
	ExtraManifests    []corev1.PersistentVolumeClaim `json:"extraManifests"`
	ExtraVolumes      []corev1.Volume                `json:"extraVolumes"`
	ExtraVolumeMounts []corev1.VolumeMount           `json:"extraVolumeMounts"`
	AlternateConfig   map[string]any                 `json:"alternateConfig"`
}

func readHelmValues(t *testing.T) (values helmValues) {
	t.Helper()
	require.NoError(t, sigsyaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "helm", "values.yaml")), &values))
	return values
}

// operatorSpec are the fields of an OpenTelemetryCollector, opentelemetry.io/v1beta1, that are
// used.
type operatorSpec struct {
	Mode                     string                      `json:"mode"`
	Replicas                 int32                       `json:"replicas"`
	Image                    string                      `json:"image"`
	UpgradeStrategy          string                      `json:"upgradeStrategy"`
	ServiceAccount           string                      `json:"serviceAccount"`
	DeploymentUpdateStrategy appsv1.DeploymentStrategy   `json:"deploymentUpdateStrategy"`
	Env                      []corev1.EnvVar             `json:"env"`
	Resources                corev1.ResourceRequirements `json:"resources"`
	PodSecurityContext       *corev1.PodSecurityContext  `json:"podSecurityContext"`
	SecurityContext          *corev1.SecurityContext     `json:"securityContext"`
	VolumeMounts             []corev1.VolumeMount        `json:"volumeMounts"`
	Volumes                  []corev1.Volume             `json:"volumes"`
	Config                   map[string]any              `json:"config"`
}

func readOperatorSpec(t *testing.T) (spec operatorSpec) {
	t.Helper()
	collector := readManifests(t, "operator/collector.yaml").of("OpenTelemetryCollector")
	require.Len(t, collector, 1)
	text, err := json.Marshal(collector[0].Object["spec"])
	require.NoError(t, err)
	require.NoError(t, sigsyaml.UnmarshalStrict(text, &spec))
	return spec
}

// baseConfig is the configuration that the base's two files come to.
func baseConfig(t *testing.T) map[string]any {
	t.Helper()
	merged := map[string]any{}
	for _, file := range []string{"config.yaml", "persistence.yaml"} {
		config := map[string]any{}
		require.NoError(t, sigsyaml.Unmarshal([]byte(harness.Read(t, "deploy", "base", file)), &config))
		merge(merged, config)
	}
	return merged
}

func merge(into, from map[string]any) {
	for key, value := range from {
		old, isMap := into[key].(map[string]any)
		if added, ok := value.(map[string]any); ok && isMap {
			merge(old, added)
		} else {
			into[key] = value
		}
	}
}

func TestTheHelmValuesComeToTheBase(t *testing.T) {
	t.Parallel()
	values, deployment := readHelmValues(t), only[appsv1.Deployment](t, build(t, "base"), "Deployment")
	pod := deployment.Spec.Template.Spec
	c := pod.Containers[0]
	assert.Equal(t, "deployment", values.Mode)
	assert.Equal(t, *deployment.Spec.Replicas, values.ReplicaCount)
	assert.Equal(t, deployment.Spec.Strategy.Type, values.Rollout.Strategy)
	assert.Equal(t, c.Image, values.Image.Repository+":"+values.Image.Tag)
	assert.Equal(t, entrypoint, values.Command.Name)
	assert.Subset(t, c.Args, values.Command.ExtraArgs)
	assert.Subset(t, c.Env, values.ExtraEnvs)
	assert.Equal(t, c.Resources, values.Resources)
	assert.Equal(t, pod.SecurityContext, values.PodSecurityContext)
	assert.Equal(t, c.SecurityContext, values.SecurityContext)
	assert.Equal(t, c.LivenessProbe.HTTPGet.Path, values.LivenessProbe.HTTPGet.Path)
	assert.Equal(t, c.ReadinessProbe.HTTPGet.Path, values.ReadinessProbe.HTTPGet.Path)
	assert.Equal(t, only[corev1.PersistentVolumeClaim](t, build(t, "base"), "PersistentVolumeClaim").Spec, values.ExtraManifests[0].Spec)
	assert.Subset(t, pod.Volumes, values.ExtraVolumes)
	assert.Subset(t, c.VolumeMounts, values.ExtraVolumeMounts)

	expected := baseConfig(t)
	delete(expected["receivers"].(map[string]any)["kube_events"].(map[string]any), "namespaces")
	assert.Equal(t, expected, values.AlternateConfig)
	isAccepted(t, values.AlternateConfig, values.ExtraEnvs, values.Command.ExtraArgs...)
}

func TestTheOperatorsCollectorComesToTheBase(t *testing.T) {
	t.Parallel()
	spec, base := readOperatorSpec(t), build(t, "base")
	deployment := only[appsv1.Deployment](t, base, "Deployment")
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
	assert.Subset(t, pod.Volumes, spec.Volumes)
	assert.Subset(t, c.VolumeMounts, spec.VolumeMounts)

	// The Operator makes both probes of one health check, of the old kind.
	expected := baseConfig(t)
	delete(expected["receivers"].(map[string]any)["kube_events"].(map[string]any), "namespaces")
	extensions := expected["extensions"].(map[string]any)
	extensions["health_check"] = extensions["health_check"].(map[string]any)["http"]
	delete(extensions, "health_check/ready")
	expected["service"].(map[string]any)["extensions"] = []any{"health_check", "file_storage"}
	assert.Equal(t, expected, spec.Config)
	isAccepted(t, spec.Config, spec.Env)
}

// isAccepted asks the Collector whether it would start with a configuration.
func isAccepted(t *testing.T, config map[string]any, environment []corev1.EnvVar, arguments ...string) {
	t.Helper()
	text, err := json.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	command := exec.Command(harness.OtelcolPath(), append([]string{"validate", "--config", file,
		// It has to exist.
		"--config", "yaml:extensions::file_storage::directory: " + t.TempDir()}, arguments...)...)
	for _, variable := range environment {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = "127.0.0.1"
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	output, err := command.CombinedOutput()
	assert.NoError(t, err, "%s", output)
	assert.Empty(t, string(output))
}

// dryRun is what make would run.
func dryRun(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command("make", append([]string{"--dry-run"}, arguments...)...)
	command.Dir = harness.InRepository()
	for _, variable := range os.Environ() {
		// Of the make that runs this test.
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			command.Env = append(command.Env, variable)
		}
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, "%s", stderr.String())
	return string(output)
}

func TestTheDistributionIsForAllPlatforms(t *testing.T) {
	t.Parallel()
	script := dryRun(t, "--always-make", "dist")
	for platform, name := range map[string]string{
		"GOOS=linux GOARCH=amd64": "linux_amd64", "GOOS=linux GOARCH=arm64": "linux_arm64",
		"GOOS=darwin GOARCH=arm64": "darwin_arm64", "GOOS=windows GOARCH=amd64": "windows_amd64.exe",
	} {
		assert.Regexp(t, `CGO_ENABLED=0 `+platform+` \\\n\s+go build -trimpath -tags timetzdata -ldflags "-s -w" -o ../../build/dist/otelcol-kubeevents_[0-9.]+_`+name+` `, script)
	}
}

func TestThereIsOneVersion(t *testing.T) {
	t.Parallel()
	version := strings.TrimSpace(harness.Read(t, "VERSION"))
	for file, says := range map[string]string{
		"distribution/builder.yaml":      "\n  version: " + version + "\n",
		"deploy/base/kustomization.yaml": "\n    newTag: " + version + "\n",
		"deploy/helm/values.yaml":        "\n  tag: " + version + "\n",
		"deploy/operator/collector.yaml": ":" + version + "\n",
		"deploy/README.md":               "\n    newTag: " + version + "\n",
		"README.md":                      "kubeeventsreceiver v" + version + "\n",
		"CHANGELOG.md":                   "\n## [" + version + "]",
	} {
		assert.Contains(t, harness.Read(t, file), says, file)
	}
}

func TestTheOverlayToCopySetsImageAndEndpoint(t *testing.T) {
	t.Parallel()
	_, overlay, found := strings.Cut(harness.Read(t, "deploy", "README.md"), "```yaml\n")
	require.True(t, found)
	overlay, _, _ = strings.Cut(overlay, "```")
	directory := t.TempDir()
	base, err := filepath.Rel(directory, harness.InRepository("deploy", "base"))
	require.NoError(t, err)
	const published = "https://github.com/kubeevents/kubeeventsreceiver//deploy/base?ref=v"
	require.Contains(t, overlay, published)
	overlay = regexp.MustCompile(regexp.QuoteMeta(published)+`\S+`).ReplaceAllString(overlay, base)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(overlay), 0o600))

	container := only[appsv1.Deployment](t, buildAt(t, directory), "Deployment").Spec.Template.Spec.Containers[0]
	assert.Regexp(t, `^REGISTRY/NAME:\d`, container.Image)
	assert.Contains(t, container.Env, corev1.EnvVar{Name: "OTLP_ENDPOINT", Value: "http://my-gateway.my-namespace:4318"})
}

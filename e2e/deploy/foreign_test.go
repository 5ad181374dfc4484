// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// fileOf is the content of the file that a variable names, which is part of another project.
func fileOf(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip(variable + " names no file")
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestTheOperatorsResource applies the collectors with the Operator's own resource definition.
// OPERATOR_CRD names the file, config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml in
// its repository.
func TestTheOperatorsResource(t *testing.T) {
	kube.apply(t, harness.Objects(t, fileOf(t, "OPERATOR_CRD")))
	for _, file := range []string{"operator/collector.yaml", "operator/ha.yaml"} {
		all := readManifests(t, file)
		kube.apply(t, all.but("OpenTelemetryCollector"))
		kube.apply(t, all.of("OpenTelemetryCollector"))
	}
}

// TestTheOpenTelemetryChart renders the values for the chart opentelemetry-collector. OTEL_CHART names
// its directory, charts/opentelemetry-collector in the repository opentelemetry-helm-charts.
func TestTheOpenTelemetryChart(t *testing.T) {
	t.Parallel()
	directory := os.Getenv("OTEL_CHART")
	if directory == "" {
		t.Skip("OTEL_CHART names no directory")
	}
	namespace := kube.newNamespace(t, "otel-chart")
	manifest := kube.Helm(t, "template", "kube-events", directory, "--namespace", namespace, "--values", harness.InRepository("deploy", "opentelemetry-chart", "values.yaml"))
	all := manifests(harness.Objects(t, manifest))
	for _, object := range all {
		kube.DryRunObject(t, object)
	}

	own := chart(t, "kube-events", "http://otel-gateway.observability:4318", "replicas=2")
	pod, expected := only[appsv1.Deployment](t, all, "Deployment").Spec, only[appsv1.Deployment](t, own, "Deployment").Spec
	assert.Equal(t, expected.Replicas, pod.Replicas)
	assert.Equal(t, expected.Strategy, pod.Strategy)
	container, ours := pod.Template.Spec.Containers[0], expected.Template.Spec.Containers[0]
	assert.Equal(t, ours.Image, container.Image)
	assert.Equal(t, ours.Resources, container.Resources)
	assert.Equal(t, ours.SecurityContext, container.SecurityContext)
	assert.Equal(t, expected.Template.Spec.SecurityContext, pod.Template.Spec.SecurityContext)
	assert.Subset(t, container.Env, ours.Env)
	assert.Empty(t, container.Command, "the image has its own")
	assert.Equal(t, only[rbacv1.Role](t, own, "Role").Rules, only[rbacv1.Role](t, all, "Role").Rules)
	assert.Equal(t, own.role(t, "kube-events").Rules, all.role(t, "kube-events").Rules)

	var config map[string]any
	require.NoError(t, sigsyaml.Unmarshal([]byte(only[corev1.ConfigMap](t, all, "ConfigMap").Data["relay"]), &config))
	isAccepted(t, config, container.Env)
}

// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// kube is the control plane that all tests share. Its controllers aggregate ClusterRoles, and remove what a
// release had.
var kube *harness.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if missing := harness.Missing(harness.OtelcolPath(), harness.HelmPath()); missing != nil && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped: make controlplane build manifests builds what is missing:", missing)
		return
	}
	os.Exit(harness.RunAll(m, controlplane.Options{ControllerManager: true}, &kube))
}

// newNamespace makes a namespace.
func newNamespace(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

// TestTheAPIServerAcceptsEveryManifest: no field is unknown, and no value is invalid. The cluster
// has no objects of the Prometheus Operator.
func TestTheAPIServerAcceptsEveryManifest(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, "accepted", nil)
	for name, all := range rendered(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, object := range all {
				if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") {
					continue
				}
				if object.GetNamespace() != "" {
					object.SetNamespace(namespace)
				}
				kube.DryRunObject(t, object)
			}
		})
	}
}

// TestPodSecurityRestrictedAdmitsThePods of every manifest.
func TestPodSecurityRestrictedAdmitsThePods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, "restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	create := func(t *testing.T, template corev1.PodTemplateSpec) error {
		template.Spec.ServiceAccountName = "default" // The chart's would have to exist.
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = "admitted"
		_, err := kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	harness.Eventually(t, func() bool {
		_, err := kube.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, "the default service account")

	checked := 0
	for name, all := range rendered(t) {
		templates := map[string]corev1.PodTemplateSpec{}
		for _, object := range all.of("Deployment") {
			templates[name] = decoded[appsv1.Deployment](t, object.Object).Spec.Template
		}
		for _, object := range all.of("Pod") {
			test := decoded[corev1.Pod](t, object.Object)
			templates["helm test of "+name] = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: test.Labels}, Spec: test.Spec}
		}
		for name, template := range templates {
			checked++
			assert.Equal(t, "linux", template.Spec.NodeSelector["kubernetes.io/os"], name)
			assert.NoError(t, create(t, *template.DeepCopy()), name)
			template.Spec.Containers[0].SecurityContext.Capabilities = nil
			assert.ErrorContains(t, create(t, template), "violates PodSecurity", name)
		}
	}
	assert.Greater(t, checked, 6)
}

// TestHelm installs, upgrades, rolls back and uninstalls. The volume stays, and a later release with
// the same name uses it again. The ConfigMap of a leader's progress stays, too.
func TestHelm(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, "released", nil)
	chart, endpoint := harness.InRepository("deploy", "chart"), "otlp.endpoint=http://gateway:4318"
	release := func(arguments ...string) {
		t.Helper()
		kube.Helm(t, append(arguments, "--namespace", namespace)...)
	}
	deployment := func() *appsv1.Deployment {
		t.Helper()
		found, err := kube.AppsV1().Deployments(namespace).Get(t.Context(), "released-kube-events", metav1.GetOptions{})
		require.NoError(t, err)
		return found
	}
	claim := func() *corev1.PersistentVolumeClaim {
		t.Helper()
		found, err := kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "released-kube-events", metav1.GetOptions{})
		require.NoError(t, err)
		return found
	}

	release("install", "released", chart, "--set", endpoint, "--set", "mode=single")
	assert.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment().Spec.Strategy.Type)
	volume := claim().UID

	release("upgrade", "released", chart, "--set", endpoint, "--set", "strategy.type=Recreate,startAt=beginning")
	assert.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment().Spec.Strategy.Type, "the old pod ends first")
	release("upgrade", "released", chart, "--set", endpoint, "--set", "replicas=2")
	assert.Equal(t, appsv1.RollingUpdateDeploymentStrategyType, deployment().Spec.Strategy.Type)
	assert.Equal(t, int32(2), *deployment().Spec.Replicas)
	_, err := kube.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), "released-kube-events", metav1.GetOptions{})
	require.NoError(t, err)
	progress := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "released-kube-events-leader-kube-events"}}
	_, err = kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), progress, metav1.CreateOptions{}) // As a leader does.
	require.NoError(t, err)

	release("rollback", "released", "1")
	assert.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment().Spec.Strategy.Type)
	assert.Equal(t, int32(1), *deployment().Spec.Replicas)
	_, err = kube.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), "released-kube-events", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	release("uninstall", "released", "--wait", "--timeout", "1m")
	_, err = kube.AppsV1().Deployments(namespace).Get(t.Context(), "released-kube-events", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Equal(t, volume, claim().UID)
	_, err = kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), progress.Name, metav1.GetOptions{})
	require.NoError(t, err)

	release("install", "released", chart, "--set", endpoint, "--set", "mode=single")
	assert.Equal(t, volume, claim().UID)
	release("uninstall", "released", "--wait", "--timeout", "1m")
}

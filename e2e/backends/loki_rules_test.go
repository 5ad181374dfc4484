// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheRulerEvaluatesTheRules: it has loaded all, and no evaluation fails.
func TestTheRulerEvaluatesTheRules(t *testing.T) {
	t.Parallel()
	expected := len(alerts(t, "loki", "*.yaml"))
	eventually(t, func() error {
		rules, err := all.loki.rules()
		if err != nil {
			return err
		}
		if len(rules) != expected {
			return fmt.Errorf("the ruler has %d rules", len(rules))
		}
		for _, r := range rules {
			if r.Health != "ok" {
				return fmt.Errorf("%s: %s: %s", r.Name, r.Health, r.LastError)
			}
		}
		return nil
	})
}

// causes are messages of a real cluster (testdata/producers/kubernetes), or as the API server writes
// them, with the alert and the labels that each gives.
var causes = []struct {
	alert, reason, message string
	labels                 map[string]string
	progress               string // the reason of an event about another pod or container of the workload
}{
	{
		"KubeEventsQuotaExceeded", "FailedCreate",
		`Error creating: pods "denied-6frrt" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=0, limited: pods=0`,
		map[string]string{"quota": "compute"}, "SuccessfulCreate",
	},
	{
		"KubeEventsAdmissionDenied", "FailedCreate",
		`Error creating: admission webhook "validate.example.com" denied the request: no label "team"`,
		map[string]string{"policy": `webhook "validate.example.com"`}, "SuccessfulCreate",
	},
	{
		"KubeEventsAdmissionDenied", "FailedCreate",
		`Error creating: Internal error occurred: failed calling webhook "down.example.com": failed to call webhook: Post "https://down.shop.svc:443/": no endpoints available`,
		map[string]string{"policy": `webhook "down.example.com"`}, "SuccessfulCreate",
	},
	{
		"KubeEventsAdmissionDenied", "FailedCreate",
		`Error creating: pods "denied-x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`,
		map[string]string{"policy": `PodSecurity "restricted:latest"`}, "SuccessfulCreate",
	},
	{
		"KubeEventsAdmissionDenied", "FailedCreate",
		`Error creating: pods "denied-x" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: no owner`,
		map[string]string{"policy": `ValidatingAdmissionPolicy 'owners'`}, "SuccessfulCreate",
	},
	{
		"KubeEventsImageNotPulled", "Failed",
		`Failed to pull image "registry.example.com/missing:1": failed to resolve image: not found`,
		map[string]string{"image": "registry.example.com/missing:1"}, "Pulled",
	},
	{
		"KubeEventsImageNotPulled", "BackOff", `Back-off pulling image "registry.example.com/slow:1"`,
		map[string]string{"image": "registry.example.com/slow:1"}, "Pulled",
	},
	{
		"KubeEventsReferenceMissing", "FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap "missing" not found`,
		map[string]string{"missing_kind": "configmap", "missing_name": "missing"}, "Started",
	},
	{
		"KubeEventsReferenceMissing", "Failed", `Error: secret "token" not found`,
		map[string]string{"missing_kind": "secret", "missing_name": "token"}, "Started",
	},
	{
		"KubeEventsReferenceMissing", "Failed", `Error: couldn't find key password in Secret policies/token`,
		map[string]string{"missing_kind": "secret", "missing_name": "token", "missing_key": "password"}, "Started",
	},
	{
		"KubeEventsReferenceMissing", "Failed", `Error: couldn't find key color in ConfigMap policies/settings`,
		map[string]string{"missing_kind": "configmap", "missing_name": "settings", "missing_key": "color"}, "Started",
	},
}

// TestTheRulesOfLokiNameTheCause: each message is a series of its alert, also if something else of the
// workload works: the first pods of a quota, or another container. If an object has created a pod since,
// it is no series.
func TestTheRulesOfLokiNameTheCause(t *testing.T) {
	t.Parallel()
	const namespace = "policies"
	_, err := all.cluster.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	broken, repaired := makeReplicaSet(t, namespace, "broken"), makeReplicaSet(t, namespace, "repaired")
	for _, c := range causes {
		report(t, broken, "Normal", c.progress, "it works")
		report(t, broken, "Warning", c.reason, c.message)
		if c.reason == "FailedCreate" {
			report(t, repaired, "Warning", c.reason, c.message)
		}
	}
	time.Sleep(time.Second) // The times of these events are seconds.
	report(t, repaired, "Normal", "SuccessfulCreate", "it works")
	eventually(t, func() error { return hasMessages(namespace, "repaired", 6) })
	cluster := all.cluster.UID(t)
	for _, a := range alerts(t, "loki", "*.yaml") {
		eventually(t, func() error {
			found, err := all.loki.series(a.Expr)
			if err != nil {
				return err
			}
			return compareCauses(a.Alert, namespace, cluster, found)
		})
	}
}

// compareCauses returns an error unless an alert has the series of its causes, and none of the
// workload that was repaired.
func compareCauses(alert, namespace, cluster string, found []series) error {
	var expected, actual []string
	for _, c := range causes {
		if c.alert == alert {
			labels := map[string]string{
				"cluster": clusterName, "k8s_cluster_name": clusterName, "k8s_cluster_uid": cluster, "namespace": namespace, "k8s_namespace_name": namespace, "k8s_workload_kind": "ReplicaSet", "k8s_workload_name": "broken",
			}
			for name, value := range c.labels {
				labels[name] = value
			}
			expected = append(expected, series{Metric: labels}.String())
		}
	}
	for _, s := range found {
		if s.Metric["namespace"] == namespace {
			actual = append(actual, s.String())
		}
	}
	slices.Sort(expected)
	slices.Sort(actual)
	if !slices.Equal(expected, actual) {
		return fmt.Errorf("%s: %s instead of %s", alert, actual, expected)
	}
	return nil
}

// hasMessages returns an error until Loki has a number of messages about a workload.
func hasMessages(namespace, name string, count int) error {
	messages, err := all.loki.messages(fmt.Sprintf("{log_source=`kube_events`, k8s_namespace_name=%q} | k8s_workload_name=%q", namespace, name))
	if err == nil && len(messages) < count {
		err = fmt.Errorf("Loki has %d messages about %s", len(messages), name)
	}
	return err
}

// makeReplicaSet makes one without pods, so that no controller writes events about it.
func makeReplicaSet(t *testing.T, namespace, name string) corev1.ObjectReference {
	t.Helper()
	labels := map[string]string{"app": name}
	set, err := all.cluster.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "example.com/" + name}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: name, UID: set.UID}
}

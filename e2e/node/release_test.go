// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// values are those of the chart.
type values map[string]any

// withVolume is one replica with its checkpoint on a volume.
func withVolume(c *cluster, t *testing.T, name string) values {
	t.Helper()
	c.newVolume(t, name)
	return values{"mode": "single", "storage": values{"storageClassName": name}}
}

// withReplicas are two replicas with leader election.
func withReplicas(*cluster, *testing.T, string) values { return values{"replicas": 2} }

// withDefaults is one replica with leader election, as the chart installs it.
func withDefaults(*cluster, *testing.T, string) values { return values{"config": values{}} }

// release is an installation of the chart. Its records have its name as k8s.cluster.name.
type release struct {
	*cluster

	name    string // also of its namespace and its Deployment
	values  values
	counted map[string][]account.Record // what records has returned, by namespace
}

// newRelease prepares a release, whose namespace enforces Pod Security `restricted`.
func (c *cluster) newRelease(t *testing.T, name string, mode func(*cluster, *testing.T, string) values) *release {
	t.Helper()
	c.newNamespace(t, name, "pod-security.kubernetes.io/enforce", "restricted")
	r := &release{cluster: c, name: name, counted: map[string][]account.Record{}, values: values{
		"fullnameOverride": name, "clusterName": name,
		"otlp":   values{"endpoint": c.endpoint, "signals": []string{"logs", "metrics"}},
		"config": values{"receivers": values{"kube_events": values{"collection_interval": "2s"}}},
	}}
	maps.Copy(r.values, mode(c, t, name))
	return r
}

// helm runs helm with the release's name and namespace.
func (r *release) helm(t *testing.T, command string, arguments ...string) {
	t.Helper()
	r.Helm(t, append([]string{command, r.name, "--namespace", r.name}, arguments...)...)
}

// apply installs or upgrades, with changed values, and waits until the pods are ready.
func (r *release) apply(t *testing.T, command string, changes values) {
	t.Helper()
	all := maps.Clone(r.values)
	maps.Copy(all, changes)
	text, err := yaml.Marshal(all)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	r.Helm(t, command, r.name, harness.InRepository("deploy", "chart"), "--namespace", r.name, "--values", file)
	r.awaitRollout(t, r.name)
}

// install installs the release and waits until its pods are ready.
func (r *release) install(t *testing.T) {
	t.Helper()
	r.apply(t, "install", nil)
}

// awaitRollout waits as `kubectl rollout status` does, for the Deployment with the namespace's name.
func (c *cluster) awaitRollout(t *testing.T, name string) {
	t.Helper()
	var last appsv1.DeploymentStatus
	done := harness.Poll(waitTimeout, func() bool {
		d, err := c.AppsV1().Deployments(name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false // The API server may be restarting.
		}
		last = d.Status
		return last.ObservedGeneration == d.Generation && last.Replicas == *d.Spec.Replicas &&
			last.UpdatedReplicas == *d.Spec.Replicas && last.AvailableReplicas == *d.Spec.Replicas
	})
	if !done {
		require.FailNow(t, "the Deployment is not available", "%+v\n%s", last, c.describe(t, name))
	}
}

// pods are those of a Deployment with the namespace's name, without those that end.
func (c *cluster) pods(t *testing.T, name string) (pods []corev1.Pod) {
	t.Helper()
	list, err := c.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name})
	require.NoError(t, err)
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// describe is what a reader of a failed test needs to know of the pods in a namespace.
func (c *cluster) describe(t *testing.T, namespace string) string {
	t.Helper()
	var text bytes.Buffer
	for _, pod := range c.pods(t, namespace) {
		log := c.log(t, &pod)
		fmt.Fprintf(&text, "pod %s: %+v\n%s\n", pod.Name, pod.Status.ContainerStatuses, log[max(0, len(log)-5000):])
	}
	events, err := c.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{Limit: 100})
	require.NoError(t, err)
	for _, event := range events.Items {
		fmt.Fprintf(&text, "event %s: %s: %s\n", event.InvolvedObject.Name, event.Reason, event.Message)
	}
	return text.String()
}

// log is a pod's log.
func (c *cluster) log(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	log, err := c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// kill deletes a pod without a grace period, as `kubectl delete --force` does.
func (c *cluster) kill(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NoError(t, c.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)))
}

// records are those that the release has delivered of the events in a namespace. It reads each of
// them once.
func (r *release) records(namespace string) []account.Record {
	all := r.ofEvents(namespace)
	for _, record := range all[len(r.counted[namespace]):] {
		text := func(key string) string { return fmt.Sprint(record.Get(key)) }
		number := func(key string) int64 { n, _ := record.Get(key).(int64); return n }
		r.counted[namespace] = append(r.counted[namespace], account.Record{
			Event: text("k8s.event.name"), UID: text("log.record.uid"),
			Count: number("k8s.event.count"), Occurrences: number("k8s.event.occurrences"),
		})
	}
	return slices.Clone(r.counted[namespace])
}

// delivered is how many these are.
func (r *release) delivered(namespace string) int {
	return len(r.ofEvents(namespace))
}

// ofEvents are the release's records in a namespace, without those of problems and changes.
func (r *release) ofEvents(namespace string) []harness.Record {
	return r.backend.Records("k8s.cluster.name", r.name, "k8s.namespace.name", namespace, "k8s.problem.schema", nil, "k8s.change.schema", nil)
}

// metric is the metric's total of a namespace.
func (r *release) metric(namespace string) int64 {
	return r.backend.Occurrences("k8s.cluster.name", r.name, "k8s.namespace.name", namespace)
}

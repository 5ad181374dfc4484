// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// trial does what deploy/README.md tells people who try the receiver: apply a manifest, wait, forward
// a port, and look at the page. Then it breaks a permission, and looks where the README says.
func (c *cluster) trial(t *testing.T) {
	const name = "kube-events" // of the namespace, the Deployment and the ClusterRoleBinding
	c.newNamespace(t, "visited")
	c.createWorkloads(t, "visited")
	c.Apply(t, "deploy/manifests/trial.yaml")
	c.awaitRollout(t, name)
	pod := &c.pods(t, name)[0]
	c.awaitPage(t, pod, 8090, "/", http.StatusOK, "crashing", "BackOff")
	c.awaitPage(t, pod, 13133, "/status", http.StatusOK)
	c.awaitPage(t, pod, 13134, "/status?verbose", http.StatusOK, "StatusOK")
	c.awaitPage(t, pod, 8888, "/metrics", http.StatusOK, "otelcol_kube_events_", "otelcol_process_")

	binding, err := c.RbacV1().ClusterRoleBindings().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, c.RbacV1().ClusterRoleBindings().Delete(t.Context(), name, metav1.DeleteOptions{}))
	c.kill(t, pod) // A watch continues without the permission. A new pod cannot begin one.
	pod = c.awaitUnready(t, name)
	const rule = `{apiGroups: [''], resources: [events], verbs: [get, list, watch]}`
	c.awaitPage(t, pod, 13134, "/status?verbose", http.StatusInternalServerError, rule)
	harness.Eventually(t, func() bool { return strings.Contains(c.log(t, pod), rule) }, "the missing rule in the log of %s", pod.Name)
	c.awaitPage(t, pod, 13133, "/status", http.StatusOK)

	binding.ResourceVersion = ""
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	c.awaitRollout(t, name)
	repaired := c.pods(t, name)
	require.Len(t, repaired, 1)
	assert.Equal(t, pod.UID, repaired[0].UID, "the same pod becomes ready")
	assert.Zero(t, repaired[0].Status.ContainerStatuses[0].RestartCount)
}

// tenant watches two namespaces, with permission for nothing else and as a user that the platform
// assigns.
func (c *cluster) tenant(t *testing.T) {
	shop, data, elsewhere := c.newNamespace(t, "shop-"), c.newNamespace(t, "data-"), c.newNamespace(t, "elsewhere-")
	r := c.newRelease(t, "tenant", func(*cluster, *testing.T, string) values {
		return values{"namespaces": []string{shop, data}, "runAsUser": nil}
	})
	r.install(t)
	for _, namespace := range []string{elsewhere, shop, data} {
		c.createWorkloads(t, namespace)
	}
	for _, namespace := range []string{shop, data} {
		harness.Eventually(t, func() bool { return r.delivered(namespace) > 0 }, "records of %s", namespace)
	}
	assert.Zero(t, r.delivered(elsewhere))
	assert.Empty(t, c.backend.Records("k8s.cluster.name", r.name, "k8s.cluster.uid", c.UID(t)), "it takes a permission in the cluster")
}

// awaitPage waits until a server in a pod answers with a code and a page that has some texts. A
// kubelet that has just started forwards no ports.
func (c *cluster) awaitPage(t *testing.T, pod *corev1.Pod, port int, path string, code int, texts ...string) (page string) {
	t.Helper()
	var answer int
	found := harness.Poll(waitTimeout, func() bool {
		answer, page = c.get(pod, port, path)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				return false
			}
		}
		return answer == code
	})
	require.True(t, found, "%q on port %d%s of %s, which answers %d: %s", texts, port, path, pod.Name, answer, page)
	return page
}

// awaitUnready waits until a new pod runs and is not ready, as its events report.
func (c *cluster) awaitUnready(t *testing.T, namespace string) (unready *corev1.Pod) {
	t.Helper()
	harness.Eventually(t, func() bool {
		pods := c.pods(t, namespace)
		if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 {
			return false
		}
		unready = &pods[0]
		status := unready.Status.ContainerStatuses[0]
		return status.State.Running != nil && !status.Ready && c.probeFailed(t, unready)
	}, "a pod of %s that is not ready", namespace)
	return unready
}

// probeFailed reports whether the kubelet has written that the startup probe of a pod fails.
// `kubectl describe pod` shows no more than this.
func (c *cluster) probeFailed(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	events, err := c.CoreV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "reason=Unhealthy,involvedObject.name=" + pod.Name,
	})
	require.NoError(t, err)
	return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
		return event.Message == "Startup probe failed: HTTP probe failed with statuscode: 500"
	})
}

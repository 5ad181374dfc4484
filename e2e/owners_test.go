// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestADeploymentsEventsSayWhoOwnsThem(t *testing.T) {
	ns := newNamespace(t)
	r := run(t, "start_at: beginning")
	labels := map[string]string{"tilt-manifest": "shop"}
	fe, err := clientOf(t, kube).AppsV1().Deployments(ns).Create(t.Context(), deployment("fe", labels, map[string]string{"no": "node"}), metav1.CreateOptions{})
	require.NoError(t, err)

	failed := r.await(1, about(ns, "FailedScheduling"))[0]
	pod := awaitPod(t, ns, "fe")
	rs := pod.OwnerReferences[0]
	assert.Equal(t, map[string]any{
		"k8s.cluster.uid":          failed.resource["k8s.cluster.uid"],
		"k8s.namespace.name":       ns,
		"k8s.object.api_version":   "v1",
		"k8s.object.kind":          "Pod",
		"k8s.object.name":          pod.Name,
		"k8s.object.uid":           string(pod.UID),
		"k8s.pod.name":             pod.Name,
		"k8s.pod.uid":              string(pod.UID),
		"k8s.replicaset.name":      rs.Name,
		"k8s.replicaset.uid":       string(rs.UID),
		"k8s.deployment.name":      "fe",
		"k8s.deployment.uid":       string(fe.UID),
		"k8s.owner.api_version":    "apps/v1",
		"k8s.owner.kind":           "ReplicaSet",
		"k8s.owner.name":           rs.Name,
		"k8s.owner.uid":            string(rs.UID),
		"k8s.owner.chain":          []any{"replicaset.apps/" + rs.Name, "deployment.apps/fe"},
		"k8s.workload.api_version": "apps/v1",
		"k8s.workload.kind":        "Deployment",
		"k8s.workload.name":        "fe",
		"k8s.workload.uid":         string(fe.UID),
		"tilt.manifest":            "shop",
	}, failed.resource)
	assert.NotEmpty(t, failed.text("k8s.cluster.uid"))
	assert.Equal(t, "complete", failed.text("k8s.owner.resolution"))

	scaling := r.await(1, about(ns, "ScalingReplicaSet"))[0]
	assert.Equal(t, "fe", scaling.text("k8s.workload.name"), "nothing owns it: it is its own workload")
	assert.NotContains(t, scaling.resource, "k8s.owner.kind")
	assert.NotContains(t, scaling.resource, "k8s.owner.chain")

	created := r.await(1, about(ns, "SuccessfulCreate"))[0]
	assert.Equal(t, "Deployment", created.text("k8s.owner.kind"))

	require.Eventually(t, func() bool {
		return r.sum(func(resource, point map[string]any) bool {
			return resource["k8s.workload.name"] == "fe" && resource["tilt.manifest"] == "shop" &&
				resource["k8s.namespace.name"] == ns && point["k8s.event.reason"] == "FailedScheduling"
		}) >= 1
	}, patience, tick)
}

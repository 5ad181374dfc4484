// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), unique("documented"), harness.DocumentedRules(t, "The whole cluster")...)
	require.NoError(t, err)
	r := kube.run(t, in(), "kubeconfig: "+kubeconfig)

	replicaSet := kube.make(t, ns, "apps/v1", "ReplicaSet", "owner", with("spec", map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		},
	}))
	ev := kube.makeEvent(t, ns, eventAbout("Permitted", referenceTo(replicaSet)))
	permitted := r.of(t, ev.Name)
	assert.Equal(t, "complete", permitted.text("k8s.owner.resolution"))

	system, err := kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, string(system.UID), permitted.text("k8s.cluster.uid"))
	for _, created := range r.await(1, func(other record) bool {
		return other.text("k8s.namespace.name") == ns && other.text("k8s.object.kind") == "Pod"
	}) {
		assert.Equal(t, "complete", created.text("k8s.owner.resolution"))
		assert.Equal(t, "owner", created.text("k8s.workload.name"))
	}
}

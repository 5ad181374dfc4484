// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAReleaseOfManyWorkloads: one command changes all Deployments of a namespace at once.
func TestAReleaseOfManyWorkloads(t *testing.T) {
	t.Parallel()
	const deployments = 40
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	nameOf := func(i int) string { return fmt.Sprint("web-", i) }
	makeMany(t, deployments, func(i int) {
		kube.make(t, ns, "apps/v1", "Deployment", nameOf(i), with("spec", map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": nameOf(i)}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": nameOf(i)}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app:1"}}},
			},
		}))
	})
	r.await(deployments, func(r record) bool { return r.text("k8s.event.reason") == "SuccessfulCreate" })
	for i := range deployments {
		_, err := kube.AppsV1().Deployments(ns).Patch(t.Context(), nameOf(i), types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2"}]}}}}`), metav1.PatchOptions{FieldManager: "helm"})
		require.NoError(t, err)
	}
	for _, rolledOut := range r.await(deployments, func(r record) bool { return r.text("k8s.workload.changed_by") == "helm" }) {
		assert.Equal(t, []any{"image app: app:1 → app:2"}, rolledOut.Get("k8s.rollout.changes"))
	}
}

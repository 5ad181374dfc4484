// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// manifests are objects, in the order in which they are applied.
type manifests []*unstructured.Unstructured

// build is what kubectl apply -k would apply of deploy/.
func build(t *testing.T, overlay string) manifests {
	t.Helper()
	return buildAt(t, harness.InRepository("deploy", overlay))
}

func buildAt(t *testing.T, directory string) manifests {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // As kubectl does: namespaces first.
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), directory)
	require.NoError(t, err)
	var all manifests
	for _, resource := range resources.Resources() {
		text, err := resource.MarshalJSON()
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON(text))
		all = append(all, object)
	}
	require.NotEmpty(t, all)
	return all
}

// of are the objects of a kind.
func (m manifests) of(kind string) (found manifests) {
	for _, object := range m {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// but are the objects that are not of these kinds.
func (m manifests) but(kinds ...string) manifests {
	return slices.DeleteFunc(slices.Clone(m), func(object *unstructured.Unstructured) bool { return slices.Contains(kinds, object.GetKind()) })
}

// only is the one object of a kind.
func only[T any](t *testing.T, m manifests, kind string) T {
	t.Helper()
	found := m.of(kind)
	require.Len(t, found, 1, kind)
	return decoded[T](t, found[0].Object)
}

// decoded is the object as its own type, of which every field must be known.
func decoded[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	var result T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &result, true))
	return result
}

// sendTo sets where the Collector sends to, the only thing that a user has to change.
func (m manifests) sendTo(t *testing.T, endpoint string) manifests {
	t.Helper()
	deployment := m.of("Deployment")[0]
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	for _, variable := range containers[0].(map[string]any)["env"].([]any) {
		if variable := variable.(map[string]any); variable["name"] == "OTLP_ENDPOINT" {
			variable["value"] = endpoint
			require.NoError(t, unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"))
			return m
		}
	}
	require.FailNow(t, "the Deployment has no OTLP_ENDPOINT")
	return nil
}

// apply applies objects as kubectl apply --server-side --validate=strict does: a field that the API
// server does not know is an error.
func (c *cluster) apply(t *testing.T, objects manifests) {
	t.Helper()
	for _, object := range objects {
		c.ApplyObject(t, object)
	}
}

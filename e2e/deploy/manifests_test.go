// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// manifests are objects, in the order in which they are applied.
type manifests []*unstructured.Unstructured

// chart is what helm installs of deploy/chart, as the release kube-events. It has a destination, and
// sets other values with helm's --set.
func chart(t *testing.T, namespace, endpoint string, values ...string) manifests {
	t.Helper()
	arguments := []string{"--set", "otlp.endpoint=" + endpoint}
	for _, value := range values {
		arguments = append(arguments, "--set", value)
	}
	return harness.Chart(t, "kube-events", namespace, arguments...)
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

// apply applies objects as kubectl apply --server-side --validate=strict does: a field that the API
// server does not know is an error.
func (c *cluster) apply(t *testing.T, objects manifests) {
	t.Helper()
	for _, object := range objects {
		c.ApplyObject(t, object)
	}
}

// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
	"go.yaml.in/yaml/v3"
)

func TestEntitiesAreThoseThatAreDescribed(t *testing.T) {
	content, err := os.ReadFile("../../metadata.yaml")
	require.NoError(t, err)
	type reference struct{ Ref string }
	var described struct {
		Entities []struct {
			Type                  string
			Identity, Description []reference
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &described))
	var want, written [][]string
	for _, e := range described.Entities {
		keys := []string{e.Type}
		for _, r := range append(e.Identity, e.Description...) {
			keys = append(keys, r.Ref)
		}
		want = append(want, keys)
	}
	for _, e := range entityTypes {
		written = append(written, append([]string{e.name, e.identity}, e.description...))
	}
	assert.ElementsMatch(t, want, written)
}

func TestAResourceRefersToTheEntitiesThatItsAttributesIdentify(t *testing.T) {
	tests := map[string]struct {
		attributes map[string]any
		want       map[string][]string
	}{
		"a pod of a Deployment": {
			map[string]any{
				"k8s.cluster.uid": "c", "k8s.namespace.name": "ns", "k8s.pod.name": "p", "k8s.pod.uid": "1",
				"k8s.deployment.name": "d", "k8s.deployment.uid": "3",
				"k8s.workload.kind": "Deployment", "k8s.workload.name": "d", "k8s.workload.uid": "3",
			},
			map[string][]string{
				"k8s.cluster": {"k8s.cluster.uid"}, "k8s.namespace": {"k8s.namespace.name"},
				"k8s.pod":        {"k8s.pod.uid", "k8s.pod.name"},
				"k8s.deployment": {"k8s.deployment.uid", "k8s.deployment.name"},
				"k8s.workload":   {"k8s.workload.uid", "k8s.workload.kind", "k8s.workload.name"},
			},
		},
		"a custom resource at the end of a chain": {
			map[string]any{"k8s.workload.api_version": "argoproj.io/v1alpha1", "k8s.workload.kind": "Rollout", "k8s.workload.name": "r", "k8s.workload.uid": "1"},
			map[string][]string{"k8s.workload": {"k8s.workload.uid", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name"}},
		},
		"a pod without a UID is not identified": {map[string]any{"k8s.pod.name": "p"}, map[string][]string{}},
		"a Node that is known by its name only": {map[string]any{"k8s.node.name": "n"}, map[string][]string{}},
		"nothing":                               {map[string]any{}, map[string][]string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resource := pcommon.NewResource()
			require.NoError(t, resource.Attributes().FromRaw(tt.attributes))
			WriteEntityRefs(resource)
			written := map[string][]string{}
			for _, ref := range entity.ResourceEntityRefs(resource).All() {
				written[ref.Type()] = append(ref.IdKeys().AsRaw(), ref.DescriptionKeys().AsRaw()...)
			}
			assert.Equal(t, tt.want, written)
			assert.Equal(t, tt.attributes, resource.Attributes().AsRaw())
		})
	}
}

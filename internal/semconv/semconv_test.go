// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.yaml.in/yaml/v3"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// extracted are the attributes that settings of extract give by default, or choose. Rules of a user
// may give them, too.
var extracted = []string{"tilt.manifest", "service.name", "service.namespace", "service.version", "service.instance.id"}

func TestWhatIsWrittenIsWhatIsDescribed(t *testing.T) {
	content, err := os.ReadFile("../../metadata.yaml")
	require.NoError(t, err)
	var described struct {
		ResourceAttributes map[string]any                           `yaml:"resource_attributes"`
		Events             map[string]struct{ Attributes []string } `yaml:"events"`
	}
	require.NoError(t, yaml.Unmarshal(content, &described))
	for _, extracted := range extracted {
		delete(described.ResourceAttributes, extracted)
	}
	described.ResourceAttributes["otel.metric.overflow"] = true // of points, which have no other name of their own
	assert.ElementsMatch(t, slices.Collect(maps.Keys(described.ResourceAttributes)), slices.Collect(maps.Keys(own)))
	assert.ElementsMatch(t, described.Events["k8s.event"].Attributes, slices.Collect(maps.Keys(record)))
}

// TestNamesOfTheConventionsReferToThem: in metadata.yaml, and so in documentation.md.
func TestNamesOfTheConventionsReferToThem(t *testing.T) {
	content, err := os.ReadFile("../../metadata.yaml")
	require.NoError(t, err)
	var described struct {
		Attributes map[string]struct {
			Convention struct{ Ref string } `yaml:"semantic_convention"`
		} `yaml:"resource_attributes"`
	}
	require.NoError(t, yaml.Unmarshal(content, &described))
	ofConventions := map[string]bool{"k8s.cluster.uid": true, "k8s.cluster.name": true, "k8s.container.name": true}
	for _, name := range extracted[1:] {
		ofConventions[name] = true
	}
	for _, n := range names {
		ofConventions[n.Name] = true
		ofConventions[n.UID] = true
	}
	for name, attribute := range described.Attributes {
		expected := ""
		if ofConventions[name] {
			page, _, _ := strings.Cut(name, ".")
			expected = page + ".md#" + strings.ReplaceAll(name, ".", "-")
		}
		assert.Equal(t, expected, attribute.Convention.Ref, name)
	}
}

func TestObjectsAreNamedByGroupAndKind(t *testing.T) {
	tests := map[string]struct {
		objects []*resolver.Object
		want    map[string]any
	}{
		"a kind of Kubernetes": {
			[]*resolver.Object{{APIVersion: "v1", Kind: "Service", Name: "s", UID: "u"}},
			map[string]any{"k8s.service.name": "s", "k8s.service.uid": "u"},
		},
		"any version of its group": {
			[]*resolver.Object{{APIVersion: "autoscaling/v2beta2", Kind: "HorizontalPodAutoscaler", Name: "h", UID: "u"}},
			map[string]any{"k8s.hpa.name": "h", "k8s.hpa.uid": "u"},
		},
		"another group's kind of the same name": {
			[]*resolver.Object{{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "s", UID: "u"}}, map[string]any{},
		},
		"the group that the kind left": {
			[]*resolver.Object{{APIVersion: "extensions/v1beta1", Kind: "ReplicaSet", Name: "r"}}, map[string]any{"k8s.replicaset.name": "r"},
		},
		"of two of one kind the first": {
			[]*resolver.Object{{APIVersion: "batch/v1", Kind: "Job", Name: "inner"}, {APIVersion: "batch/v1", Kind: "Job", Name: "outer", UID: "u"}},
			map[string]any{"k8s.job.name": "inner"},
		},
		"a kind without a UID attribute": {
			[]*resolver.Object{{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: "fast", UID: "u"}}, map[string]any{"k8s.storageclass.name": "fast"},
		},
		"an API version that is no version": {[]*resolver.Object{{APIVersion: "a/b/c", Kind: "Pod", Name: "p"}}, map[string]any{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			attributes := pcommon.NewMap()
			for _, o := range tt.objects {
				Writer(attributes).Object(o)
			}
			assert.Equal(t, tt.want, attributes.AsRaw())
		})
	}
}

func TestQualifiedName(t *testing.T) {
	assert.Equal(t, "pod/p", QualifiedName(&resolver.Object{APIVersion: "v1", Kind: "Pod", Name: "p"}))
	assert.Equal(t, "replicaset.apps/r", QualifiedName(&resolver.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r"}))
	assert.Equal(t, "rollout.argoproj.io/r", QualifiedName(&resolver.Object{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "r"}))
}

func TestABareKindIsKubernetesOwn(t *testing.T) {
	group, ok := Group("deployment")
	assert.True(t, ok)
	assert.Equal(t, "apps", group)
	group, ok = Group("SERVICE")
	assert.True(t, ok)
	assert.Empty(t, group)
	_, ok = Group("rollout")
	assert.False(t, ok)
}

func TestAbsentValuesAreLeftOut(t *testing.T) {
	attributes := pcommon.NewMap()
	put := Writer(attributes)
	put.String("empty", "")
	put.StringIfNew("also empty", "")
	put.Identity(Workload, &resolver.Object{Kind: "Pod"})
	put.String("broken", "a\xffb")
	put.StringIfNew("broken", "other")
	assert.Equal(t, map[string]any{"k8s.workload.kind": "Pod", "broken": "a\uFFFDb"}, attributes.AsRaw())
}

// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/kind"
)

func TestWants(t *testing.T) {
	stored := func(namespace, involved string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, InvolvedObject: corev1.ObjectReference{Namespace: involved}}
	}
	event := func(kind, reason, namespace string) *corev1.Event {
		ev := stored(cmp.Or(namespace, metav1.NamespaceDefault), namespace)
		ev.Type, ev.Reason = kind, reason
		return ev
	}
	warning := event("Warning", "FailedScheduling", "shop")

	tests := map[string]struct {
		filter Filter
		event  *corev1.Event
		want   bool
	}{
		"an empty filter takes everything":                       {Filter{}, warning, true},
		"a type that is listed":                                  {Filter{Types: []string{"Normal", "Warning"}}, warning, true},
		"a type that is not listed":                              {Filter{Types: []string{"Normal"}}, warning, false},
		"types are case-sensitive":                               {Filter{Types: []string{"warning"}}, warning, false},
		"a reason that a glob includes":                          {Filter{IncludeReasons: []string{"Pull*", "Failed*"}}, warning, true},
		"a reason that no glob includes":                         {Filter{IncludeReasons: []string{"Pull*"}}, warning, false},
		"globs are case-sensitive":                               {Filter{IncludeReasons: []string{"failed*"}}, warning, false},
		"exclude beats include":                                  {Filter{IncludeReasons: []string{"Failed*"}, ExcludeReasons: []string{"*Scheduling"}}, warning, false},
		"a namespace that a glob excludes":                       {Filter{ExcludeNamespaces: []string{"sh?p"}}, warning, false},
		"a namespace that no glob excludes":                      {Filter{ExcludeNamespaces: []string{"kube-*"}}, warning, true},
		"a cluster-scoped object is never excluded by namespace": {Filter{ExcludeNamespaces: []string{"*"}}, event("Normal", "NodeReady", ""), true},
		"a namespace does not escape as another one":             {Filter{ExcludeNamespaces: []string{"tenant-b"}}, stored("tenant-b", "shop"), false},
		"a namespace does not escape as the cluster":             {Filter{ExcludeNamespaces: []string{"tenant-b"}}, stored("tenant-b", ""), false},
		"a namespace does not exclude events of another one":     {Filter{ExcludeNamespaces: []string{"shop"}}, stored("tenant-b", "shop"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.filter.Wants(tt.event))
		})
	}
}

func TestWantsKinds(t *testing.T) {
	pod, unversionedPod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod"}, corev1.ObjectReference{Kind: "Pod"}
	deployment := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}
	widget := corev1.ObjectReference{APIVersion: "shop.example.com/v1", Kind: "Widget"}

	tests := map[string]struct {
		include, exclude []string
		object           corev1.ObjectReference
		want             bool
	}{
		"no glob takes everything": {object: widget, want: true},
		"a kind":                   {include: []string{"pod"}, object: pod, want: true},
		"a kind in another case":   {include: []string{"Pod"}, object: pod, want: true},
		"another kind":             {include: []string{"pod"}, object: deployment},
		"a kind of a group":        {include: []string{"deployment.apps"}, object: deployment, want: true},
		"a kind that conventions name, without its group": {include: []string{"deployment"}, object: deployment, want: true},
		"its group is the usual one":                      {include: []string{"deployment"}, object: corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Deployment"}},
		"another kind may be of any group":                {include: []string{"widget"}, object: widget, want: true},
		"all kinds of groups":                             {include: []string{"*.example.com"}, object: corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget"}, want: true},
		"a glob of groups":                                {include: []string{"*.*.example.com"}, object: widget, want: true},
		"the core group is not a group with a name":       {include: []string{"*.*"}, object: pod, want: false},
		"everything":            {include: []string{"*"}, object: widget, want: true},
		"exclude beats include": {include: []string{"*"}, exclude: []string{"widget.*"}, object: widget},
		"without an API version, the kind decides":          {include: []string{"pod"}, object: unversionedPod, want: true},
		"without an API version, also for a glob of groups": {exclude: []string{"p*.example.com"}, object: unversionedPod},
		"all kinds of a group name no kind":                 {exclude: []string{"*.example.com"}, object: unversionedPod, want: true},
		"an object without a kind":                          {include: []string{"pod"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := Filter{IncludeKinds: patterns(t, tt.include), ExcludeKinds: patterns(t, tt.exclude)}
			assert.Equal(t, tt.want, f.Wants(&corev1.Event{InvolvedObject: tt.object}))
		})
	}
}

func patterns(t *testing.T, globs []string) (all []kind.Pattern) {
	for _, glob := range globs {
		p, err := kind.ParseGlob(glob)
		require.NoError(t, err)
		all = append(all, p)
	}
	return all
}

func TestFieldSelector(t *testing.T) {
	assert.Equal(t, "type=Warning", Filter{Types: []string{"Warning"}}.FieldSelector())
	assert.Empty(t, Filter{Types: []string{"Normal", "Warning"}}.FieldSelector())
	assert.Empty(t, Filter{}.FieldSelector())
	assert.Equal(t, `type=a\,b`, Filter{Types: []string{"a,b"}}.FieldSelector(), "a type is escaped")
}

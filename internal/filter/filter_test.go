// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestWants(t *testing.T) {
	event := func(kind, reason, namespace string) *corev1.Event {
		return &corev1.Event{Type: kind, Reason: reason, InvolvedObject: corev1.ObjectReference{Namespace: namespace}}
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
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.filter.Wants(tt.event))
		})
	}
}

func TestFieldSelector(t *testing.T) {
	assert.Equal(t, "type=Warning", Filter{Types: []string{"Warning"}}.FieldSelector())
	assert.Empty(t, Filter{Types: []string{"Normal", "Warning"}}.FieldSelector())
	assert.Empty(t, Filter{}.FieldSelector())
	assert.Equal(t, `type=a\,b`, Filter{Types: []string{"a,b"}}.FieldSelector(), "a type is escaped")
}

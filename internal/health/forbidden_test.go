// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
)

// What a custom resource lacks is no reason for a warning: the reference names the workload.
func TestAMissingPermissionForOwnersIsLoggedOnce(t *testing.T) {
	const add, missing = "No permission to read this kind of owner", "Missing permission for this kind of owner"
	for name, test := range map[string]struct {
		resource schema.GroupResource
		want     []string // level and a part of the message
	}{
		"pods":              {schema.GroupResource{Resource: "pods"}, []string{"warn " + missing}},
		"Namespaces":        {schema.GroupResource{Resource: "namespaces"}, []string{"warn " + missing}}, // extract needs them
		"Deployments":       {schema.GroupResource{Group: "apps", Resource: "deployments"}, []string{"warn " + missing}},
		"a custom resource": {schema.GroupResource{Group: "monitoring.coreos.com", Resource: "prometheuses"}, []string{"info " + add}},
		"ConfigMaps":        {schema.GroupResource{Resource: "configmaps"}, nil},
		"Secrets":           {schema.GroupResource{Resource: "secrets"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			settings := receivertest.NewNopSettings(metadata.Type)
			settings.Logger = zap.New(core)
			h, err := health.New(settings)
			require.NoError(t, err)
			for range 3 {
				h.Forbidden("list", test.resource, "shop")
				h.Forbidden("get", test.resource, "shop")
			}
			require.Equal(t, len(test.want), logs.Len())
			for i, entry := range logs.All() {
				assert.Contains(t, entry.Message, test.want[i][len("warn "):])
				assert.Equal(t, test.want[i][:4], entry.Level.String())
				assert.Contains(t, entry.ContextMap()["rule_to_add"], test.resource.Resource)
			}
		})
	}
}

func TestTagsThatDoNotFitAreLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	h, err := health.New(settings)
	require.NoError(t, err)
	for range 3 {
		h.TagsLeftOut()
	}
	assert.Equal(t, 1, logs.Len())
}

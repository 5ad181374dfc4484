// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
)

// TestTheFeaturesThatTheReceiverNeeds: every tested version of Kubernetes has them.
func TestTheFeaturesThatTheReceiverNeeds(t *testing.T) {
	t.Parallel()
	for _, feature := range features.All() {
		if feature.Without != "" {
			continue
		}
		t.Run(feature.Name, func(t *testing.T) {
			t.Parallel()
			has, err := feature.In(t.Context(), kube.RESTConfig())
			require.NoError(t, err)
			assert.True(t, has)
		})
	}
}

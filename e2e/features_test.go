// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// streamsLists reports whether the API server streams lists of events. Some versions of Kubernetes
// do not.
func (c *cluster) streamsLists(t *testing.T) bool {
	t.Helper()
	streams, err := features.StreamingLists.In(t.Context(), c.RESTConfig())
	require.NoError(t, err)
	return streams
}

// isList returns what picks the requests with which a receiver begins a list of events: streamed,
// if the API server can do that.
func (c *cluster) isList(t *testing.T) func(*http.Request) bool {
	t.Helper()
	if c.streamsLists(t) {
		return isStreamedList
	}
	return isFirstPage
}

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

// TestStreamingListsAreDetected compares what the API server does with the feature gate that it
// reports.
func TestStreamingListsAreDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*cluster{"with the version's own feature gates": kube, "switched off": bare.get(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := c.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
			require.NoError(t, err)
			metrics, err := promtext.Parse(page)
			require.NoError(t, err)
			gates := metrics.Series("kubernetes_feature_enabled", "name", "WatchList")
			require.Len(t, gates, 1)
			assert.Equal(t, gates[0].Value == 1, c.streamsLists(t))
		})
	}
	assert.False(t, bare.get(t).streamsLists(t))
}

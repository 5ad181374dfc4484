// SPDX-License-Identifier: Apache-2.0

package promtext

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = `# HELP occurrences_total Occurrences.
# TYPE occurrences_total counter
occurrences_total{reason="Back Off",kind="Pod"} 3
occurrences_total{reason="Back Off",kind="Node"} 4
occurrences_total{reason="Started",kind="Pod"} 1e+06
# TYPE latency_seconds histogram
latency_seconds_bucket{le="1"} 2
latency_seconds_bucket{le="+Inf"} 5
latency_seconds_sum 7.5
latency_seconds_count 5
untyped{a="b"} 0.5
`

func TestMetrics(t *testing.T) {
	metrics, err := Parse([]byte(page))
	require.NoError(t, err)
	assert.InDelta(t, 7, metrics.Sum("occurrences", "reason", "Back Off"), 0)
	assert.InDelta(t, 3, metrics.Sum("occurrences_total", "reason", "Back Off", "kind", "Pod"), 0)
	assert.InDelta(t, 1_000_007, metrics.Sum("occurrences"), 0)
	assert.InDelta(t, 5, metrics.Sum("latency_seconds"), 0)
	assert.InDelta(t, 0.5, metrics.Sum("untyped"), 0)
	assert.Len(t, metrics.Series("occurrences", "kind", "Pod"), 2)
	assert.Empty(t, metrics.Series("occurrences", "kind", "Service"))
	assert.True(t, metrics.Has("latency"))
	assert.False(t, metrics.Has("waiting"))
}

// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/kubeevents/kubeeventsreceiver/distribution/rolloutsconnector/internal/rollout"
)

// bytesOf returns all spans as OTLP.
func bytesOf(t *testing.T, m *rollout.Model) string {
	t.Helper()
	var all []string
	for _, w := range m.Workloads {
		for name, r := range w.Revisions {
			for _, part := range w.Spans(name, late).Parts {
				encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(r.Write(part, "scope", "1"))
				require.NoError(t, err)
				all = append(all, name+part.Key+string(encoded))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestRandomHistories: whatever restarts, repeats and fail-overs happen, the spans have the same
// bytes, and so the same ids.
func TestRandomHistories(t *testing.T) {
	whole := join(
		firstRollout("0s"), secondRollout(), rollback(), scaleUp(), statefulRollout(),
	)
	expected := bytesOf(t, modelOf(whole))
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		require.Equal(t, expected, bytesOf(t, liveThrough(t, whole, random)), "seed %d", seed)
	}
}

// liveThrough joins the records in another order, some of them twice, and restarts now and then.
func liveThrough(t *testing.T, s story, random *rand.Rand) *rollout.Model {
	t.Helper()
	m := &rollout.Model{}
	for _, logs := range disturbed(s, random) {
		read, _ := rollout.Read(logs)
		m.Join(restored(t, read)) // from the journal
		if random.IntN(20) == 0 {
			m = restored(t, m)
		}
	}
	return m
}

// disturbed returns the records of a story with those repeated that a new leader emits again, and
// with others out of order: each object's records come from another process.
func disturbed(s story, random *rand.Rand) (all story) {
	for i := 0; i < len(s); i++ {
		all = append(all, s[i])
		if random.IntN(10) == 0 {
			i = max(0, i-random.IntN(10)) - 1
			all = append(all, s[random.IntN(len(s))])
		}
		if len(all) > 3*len(s) {
			break
		}
	}
	all = append(all, s...)
	for range random.IntN(len(all)) {
		i, j := random.IntN(len(all)), random.IntN(len(all))
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// restored saves and reads a model.
func restored(t *testing.T, m *rollout.Model) *rollout.Model {
	t.Helper()
	saved, err := json.Marshal(m)
	require.NoError(t, err)
	again := &rollout.Model{}
	require.NoError(t, json.Unmarshal(saved, again))
	return again
}

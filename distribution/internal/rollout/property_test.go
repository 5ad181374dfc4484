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

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// bytesOf returns all spans as OTLP.
func bytesOf(t *testing.T, m *rollout.Model) string {
	t.Helper()
	var all []string
	for _, w := range m.Workloads {
		for name, r := range w.Revisions {
			for _, part := range w.Spans(name, late) {
				encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(r.Write([]rollout.Part{part}, "scope", "1"))
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
	t.Parallel()
	whole := append(read(t, "a scale-up joins the current trace"), read(t, "a StatefulSet")...)
	expected := bytesOf(t, modelOf(whole))
	journal := make([][]byte, len(whole))
	for i, logs := range whole {
		read, _ := rollout.Read(record.Read(logs), &rollout.Model{})
		journal[i] = saved(t, read)
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		require.Equal(t, expected, bytesOf(t, liveThrough(t, journal, random)), "seed %d", seed)
	}
}

// liveThrough joins the entries of a journal in another order, some of them twice, and restarts now
// and then.
func liveThrough(t *testing.T, journal [][]byte, random *rand.Rand) *rollout.Model {
	t.Helper()
	m := &rollout.Model{}
	for _, entry := range disturbed(journal, random) {
		m.Join(restored(t, entry))
		if random.IntN(50) == 0 {
			m = restored(t, saved(t, m))
		}
	}
	return m
}

// disturbed returns all entries, some of them twice, and many out of order: each object's records
// come from another process, and a new leader emits some again.
func disturbed(s [][]byte, random *rand.Rand) (all [][]byte) {
	all = slices.Clone(s)
	for range random.IntN(len(s)) {
		all = append(all, s[random.IntN(len(s))])
	}
	for range random.IntN(len(all)) {
		i, j := random.IntN(len(all)), random.IntN(len(all))
		all[i], all[j] = all[j], all[i]
	}
	return all
}

func saved(t *testing.T, m *rollout.Model) []byte {
	t.Helper()
	encoded, err := json.Marshal(m)
	require.NoError(t, err)
	return encoded
}

func restored(t *testing.T, encoded []byte) *rollout.Model {
	t.Helper()
	m := &rollout.Model{}
	require.NoError(t, json.Unmarshal(encoded, m))
	return m
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// smallSize is enough to find out whether a scenario still works. No test looks at its
// measurements, because they have no meaning.
var smallSize = size{
	namespaces: 2, deployments: 4, pods: 40,
	observations: 400, updates: 80, perSecond: 400,
	existing: 300,
}

// mostRequests is one for each object on the chains of smallSize, and one for each listing of a
// kind in a namespace.
const mostRequests = (40 + 4 + 4) + 2*3

// smallBenchmark is one with what make built; KUBEBUILDER_ASSETS and OTELCOL may name other
// programs.
func smallBenchmark() *benchmark {
	build := filepath.Join("..", "..", "build")
	return &benchmark{
		ours:   kubeEvents(cmp.Or(os.Getenv("OTELCOL"), filepath.Join(build, "otelcol-kubeevents"))),
		theirs: k8sEvents(filepath.Join(build, "comparison", "otelcol")),
		rounds: 1, size: smallSize, controlPlane: controlplanetest.Binaries(),
	}
}

// smallCluster is one for smallSize. The test is skipped where there are no programs, which make
// test builds.
func smallCluster(t *testing.T, b *benchmark) *cluster {
	t.Helper()
	for _, path := range []string{b.ours.binary, filepath.Join(b.controlPlane, "kube-apiserver")} {
		if _, err := os.Stat(path); err != nil && os.Getenv("CI") == "" {
			t.Skip("make build controlplane builds what is missing: ", err)
		}
	}
	kube, err := newCluster(t.Context(), b.controlPlane, b.size)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, kube.Stop()) })
	return kube
}

func TestLoad(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	kube := smallCluster(t, b)
	for _, s := range b.setups(direct, waiting, stored, inMemory) {
		_, err := s.once(t.Context(), func(ctx context.Context, c runner) (values, error) {
			run, err := b.loadOn(ctx, kube, c)
			require.NoError(t, err, c)
			assert.Equal(t, smallSize.observations, run.sent, c)
			assert.Equal(t, run.sent, run.delivered, c)
			assert.Equal(t, run.sent, run.owned, "%s: records with all owners", c)
			assert.Zero(t, run.surplus, c)
			assert.NotZero(t, run.requests.total(), c)
			assert.LessOrEqual(t, run.requests.total(), mostRequests, run.requests)
			return run.values(), nil
		})
		require.NoError(t, err)
	}

	// make test does not build what the benchmarks compare with.
	if _, err := os.Stat(b.theirs.binary); err != nil {
		t.Skip("make comparison builds what is missing: ", err)
	}
	run, err := b.loadOn(t.Context(), kube, b.theirs)
	require.NoError(t, err)
	assert.NotZero(t, run.delivered)
	assert.Zero(t, run.owned)
	assert.Zero(t, run.requests.total())
}

func TestKill(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	kube := smallCluster(t, b)
	b.kills = kills{observations: 300, times: 1}
	for _, s := range b.setups(direct, waiting) {
		v, err := s.once(t.Context(), func(ctx context.Context, c runner) (values, error) {
			return b.killOn(ctx, kube, c, b.kills.size(b.size))
		})
		require.NoError(t, err)
		assert.Zero(t, v[lost], s.name)
		assert.Zero(t, v[killUnrecognized], s.name)
		assert.Zero(t, v[unowned], s.name)
		assert.Positive(t, v[latencyMost], s.name)
	}
}

func TestHA(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	kube := smallCluster(t, b)
	b.playback, b.ha = smallPlayback, ha{program: b.ours.binary, before: b.ours.binary}
	setups, err := b.haSetups()
	require.NoError(t, err)
	assert.Equal(t, []string{elected + earlier, elected, direct + earlier, direct}, namesOf(setups))
	for _, o := range []outage{
		{name: "kill", live: 50, standby: true, load: size{observations: 300, updates: 50, perSecond: 50}, after: time.Second},
		{name: "restart", live: 50, orderly: true, load: size{observations: 300, updates: 50, perSecond: 100}, after: time.Second},
	} {
		v, err := setups[0].once(t.Context(), func(ctx context.Context, c runner) (values, error) {
			c.over = append(c.over, "extensions::k8s_leader_elector: {lease_duration: 4s, renew_deadline: 3s, retry_period: 1s}")
			return b.outageOn(ctx, kube, c, o)
		})
		require.NoError(t, err, o.name)
		for _, f := range o.figures() {
			f.Ours = []float64{v.suffixed(", " + o.name)[f.Name]}
			if f.Goal != nil && f.Unit == "" { // It counts records.
				assert.Equal(t, "yes", f.Met(), f)
			}
		}
		assert.Positive(t, v[sinceEnd], o.name)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	kube := smallCluster(t, b)
	existing, err := kube.writeEvents(t.Context(), b.size.existing)
	require.NoError(t, err)

	v, err := b.startAtEnd(t.Context(), kube, b.ours)
	require.NoError(t, err)
	assert.Contains(t, v, timeToReady)
	v, err = b.startAtBeginning(t.Context(), kube, b.ours, existing)
	require.NoError(t, err)
	assert.Zero(t, v[allLost])
	assert.Zero(t, v[allUnowned])
	assert.LessOrEqual(t, v[requestsForAll], float64(mostRequests))
}

func TestPlan(t *testing.T) {
	for _, sz := range []size{fullSize, smallSize} {
		places, repeats := map[int]bool{}, 0
		for _, steps := range plan(sz) {
			require.NotEmpty(t, steps)
			assert.False(t, steps[0].repeat, "there is nothing to repeat yet")
			for _, s := range steps {
				places[s.at] = true
				if s.repeat {
					repeats++
				}
			}
		}
		assert.Len(t, places, sz.observations)
		assert.Equal(t, sz.updates, repeats)
	}
}

func TestUnknownScenario(t *testing.T) {
	_, _, err := parse([]string{"lod"})
	require.ErrorContains(t, err, `no scenario "lod"`)
	assert.ErrorContains(t, err, "load")
}

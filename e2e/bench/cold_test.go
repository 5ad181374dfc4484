// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/deadwebhook"
)

var smallCold = cold{
	real: sizes{2}, simulated: sizes{2, 4}, delays: []time.Duration{0, time.Millisecond},
	deployments: 2, pods: 6, perSecond: 200,
}

func TestNamespacesOfASimulatedAPIServer(t *testing.T) {
	t.Parallel()
	b, _ := playbackLab(t)
	b.cold = smallCold
	figures, err := b.coldSimulated(t.Context())
	require.NoError(t, err)
	const variants, withoutRatio = 4, 2
	assert.Len(t, figures, len(coldFigures([]variant{{}}))*variants-withoutRatio, "everything was measured")
	for _, f := range figures {
		switch {
		case strings.HasPrefix(f.Name, coldComplete), strings.HasPrefix(f.Name, coldTagged):
			assert.Equal(t, []float64{100}, f.Ours, f.Name)
		case strings.HasPrefix(f.Name, coldObjects):
			assert.GreaterOrEqual(t, f.Ours[0], 1.0, f.Name)
		}
	}
}

func TestNamespacesOfARealAPIServer(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	b.cold = smallCold
	few := variantsOf("", smallCold.real, 0)[0]
	b.size = smallCold.size(few.namespaces)
	kube := smallCluster(t, b)
	v, err := b.coldRealOnce(t.Context(), kube, few)
	require.NoError(t, err)
	assert.InDelta(t, 100, v[coldComplete], 0)
	assert.InDelta(t, 100, v[coldTagged], 0)
	assert.NotZero(t, v[coldRequests])
	assert.GreaterOrEqual(t, v[coldObjects], 1.0)
}

func TestEachPodHasOneEvent(t *testing.T) {
	fleet := fullCold.fleet(20)
	seen := map[string]bool{}
	inOrder := true
	for i, change := range fullCold.eachPodOnce(fleet, time.Now()) {
		assert.Equal(t, time.Duration(i)*time.Millisecond, change.at)
		inOrder = inOrder && (i == 0 || change.event.InvolvedObject.Name > fleet.Started(i-1, time.Now()).InvolvedObject.Name)
		seen[change.event.InvolvedObject.Name] = true
	}
	assert.Len(t, seen, 200)
	assert.False(t, inOrder, "in random order")
}

func TestHanging(t *testing.T) {
	t.Parallel()
	b := smallBenchmark()
	b.hanging = hanging{
		healthy:   size{namespaces: 2, deployments: 4, pods: 40, observations: 40, perSecond: 100},
		workloads: 2, every: 100 * time.Millisecond,
	}
	b.size = b.hanging.healthy
	kube := smallCluster(t, b)
	phases := []phase{{suffix: ", without"}, {suffix: ", refusing", group: "refusing.example.com", url: deadwebhook.Refusing}}
	h, err := b.deployHanging(t.Context(), kube, phases)
	require.NoError(t, err)
	b.rounds = 1
	figures, err := b.hangingRounds(t.Context(), h, phases)
	require.NoError(t, err)
	assert.Len(t, figures, 2*len(hangingFigures(phases[:1]))-3, "no ratio and no such workloads in the first phase")
	for _, f := range figures {
		if strings.HasPrefix(f.Name, hangComplete) || strings.HasPrefix(f.Name, hangKnown) {
			assert.Equal(t, []float64{100}, f.Ours, f.Name)
		}
	}
}

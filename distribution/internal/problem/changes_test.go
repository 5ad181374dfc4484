// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestAStateThatLastsForADay: the end of a cordon is reported when the model has long forgotten its begin.
func TestAStateThatLastsForADay(t *testing.T) {
	now := story.Epoch
	end, node := now.Add(-time.Minute), incident.Key{Cluster: "c", Top: incident.Object{Kind: "node", Name: "node-1"}}
	cordon := func(id string, age time.Duration) problem.Change {
		return problem.Change{ID: id, Key: node, Kind: "node", Text: "node-1 was cordoned", Object: "node/node-1", At: now.Add(-age)}
	}
	over, rollout := cordon("over", 3*time.Hour), cordon("rollout", 3*time.Hour)
	over.IsOver, rollout.Outcome = true, "failed"
	goesOn := cordon("goes on", 3*time.Hour)
	goesOn.Text = "node-1 had disk pressure"
	var changes problem.Changes
	for _, c := range []problem.Change{
		cordon("new", time.Hour), cordon("old", 24*time.Hour), cordon("young", time.Hour-time.Second), over, rollout, goesOn,
	} {
		changes.Keep(c)
	}
	endOf := func(k incident.Key, text string, since time.Time) (at time.Time) {
		assert.Equal(t, node, k)
		if text == "node-1 was cordoned" && since.Before(end) {
			at = end
		}
		return at
	}
	look := func() (lines []string) {
		for _, n := range changes.LookBack(now, endOf) {
			assert.Equal(t, problem.Over, n.State)
			assert.Equal(t, node, n.Key)
			lines = append(lines, fmt.Sprintf("%s: %s %s %s, from %s to %s", n.ID, n.Kind, n.Object, n.Text, n.At.Sub(now), n.Until.Sub(now)))
		}
		return lines
	}
	assert.Equal(t, []string{
		"old: node node/node-1 node-1 was cordoned, from -24h0m0s to -1m0s", "new: node node/node-1 node-1 was cordoned, from -1h0m0s to -1m0s",
	}, look())
	assert.Empty(t, look(), "it is reported once")
	for id, want := range map[string]bool{"new": true, "old": true, "young": false, "over": true, "rollout": false, "goes on": false} {
		assert.Equal(t, want, changes.Get(id).IsOver, id)
	}
	assert.Equal(t, end, changes.Get("old").Until)
	assert.Zero(t, changes.Get("unknown"))
}

// TestWhileEventsMayBeMissing: a state and a rollout are over only when nothing can be missing.
func TestWhileEventsMayBeMissing(t *testing.T) {
	now := story.Epoch
	shown := incident.Change{Key: incident.Key{Namespace: "shop"}, Kind: "node", Text: "node-1 is not ready", At: now.Add(-time.Minute), Until: now.Add(-time.Second)}
	var changes problem.Changes
	states := func(isBlind bool) (states []string) {
		for _, n := range changes.Look(now, []incident.Change{shown}, isBlind) {
			states = append(states, n.State)
		}
		return states
	}
	assert.Equal(t, []string{problem.Happened}, states(true))
	assert.Empty(t, states(true))
	assert.Equal(t, []string{problem.Over}, states(false))
	assert.Empty(t, states(false))
}

// TestChangesAreKeptForThirtyDays, and not longer.
func TestChangesAreKeptForThirtyDays(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 1, problem.KeptFor: 1, problem.KeptFor + 1: 0} {
		var changes problem.Changes
		changes.Keep(problem.Change{ID: "a", At: story.Epoch})
		changes.Look(story.Epoch.Add(after), nil, false)
		assert.Len(t, changes.Since(story.Epoch), want, after)
	}
}

// TestChangesOfOneMoment: if there is no room for all, it does not depend on chance which of them are kept.
func TestChangesOfOneMoment(t *testing.T) {
	now, long := story.Epoch, strings.Repeat("x", 2000)
	var changes problem.Changes
	var all []string
	for i := range 8000 {
		id := fmt.Sprintf("%05d", i)
		all = append(all, id)
		changes.Keep(problem.Change{ID: id, Kind: "eviction", Text: long, At: now})
	}
	changes.Look(now, nil, false)
	var kept []string
	for c := range changes.All {
		kept = append(kept, c.ID)
	}
	slices.Sort(kept)
	require.Greater(t, len(kept), 4000)
	require.Less(t, len(kept), 8000)
	assert.Equal(t, all[len(all)-len(kept):], kept)
	read := 0
	for range changes.All {
		if read++; read == 2 {
			break
		}
	}
	assert.Equal(t, 2, read)
}

// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"cmp"
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
	node := incident.Key{Cluster: "c", Top: incident.Object{Kind: "node", Name: "node-1"}}
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
		if text == "node-1 was cordoned" {
			at = since.Add(30 * time.Minute)
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
		"old: node node/node-1 node-1 was cordoned, from -24h0m0s to -23h30m0s", "new: node node/node-1 node-1 was cordoned, from -1h0m0s to -30m0s",
	}, look())
	assert.Empty(t, look(), "it is reported once")
	for id, want := range map[string]bool{"new": true, "old": true, "young": false, "over": true, "rollout": false, "goes on": false} {
		assert.Equal(t, want, changes.Get(id).IsOver, id)
	}
	assert.Equal(t, now.Add(-23*time.Hour-30*time.Minute), changes.Get("old").Until)
	assert.Zero(t, changes.Get("unknown"))
}

// TestWhileEventsMayBeMissing: a state and a rollout are over only when nothing can be missing.
func TestWhileEventsMayBeMissing(t *testing.T) {
	now := story.Epoch
	shown := incident.Change{
		Key: incident.Key{Namespace: "shop"}, Kind: "node", Text: "node-1 is not ready", Object: "node/node-1", At: now.Add(-time.Minute), Until: now.Add(-time.Second),
	}
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
	for _, isBlind := range []bool{false, true, false} {
		assert.Empty(t, states(isBlind), "it is over once")
	}
	assert.Equal(t, problem.Change{
		ID: shown.ID(), Key: shown.Key, Kind: shown.Kind, Text: shown.Text, Object: shown.Object, At: shown.At, Until: shown.Until, IsOver: true,
	}, changes.Get(shown.ID()))
}

// TestTheOrderOfChanges: the oldest first, and those of the same moment by their ids, so that chance has no part in it.
func TestTheOrderOfChanges(t *testing.T) {
	now := story.Epoch
	var shown []incident.Change
	for i := range 20 {
		shown = append(shown, incident.Change{Kind: "eviction", Object: fmt.Sprint("web-", i), At: now.Add(-time.Duration(10+i/2) * time.Minute)})
	}
	var changes problem.Changes
	isSorted := func(news []problem.News) {
		assert.Len(t, news, 20)
		assert.True(t, slices.IsSortedFunc(news, func(a, b problem.News) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }))
	}
	isSorted(changes.Look(now, shown, false))
	assert.True(t, slices.IsSortedFunc(changes.Since(time.Time{}), func(a, b problem.Change) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) }))
	isSorted(changes.LookBack(now.Add(2*time.Hour), func(incident.Key, string, time.Time) time.Time { return now }))
}

// TestTheEndOfAStateInAFullNamespace is reported: it takes no room.
func TestTheEndOfAStateInAFullNamespace(t *testing.T) {
	now := story.Epoch
	var shown []incident.Change
	for i := range 300 {
		shown = append(shown, incident.Change{Kind: "node", Object: fmt.Sprint("node-", i), At: now.Add(-time.Minute)})
	}
	var changes problem.Changes
	require.Len(t, changes.Look(now, shown, false), 300)
	shown[7].Until = now
	news := changes.Look(now.Add(time.Minute), shown, false)
	require.Len(t, news, 1)
	assert.Equal(t, problem.Over, news[0].State)
}

// TestWhatTakesRoom: each text of a change or a problem counts, and a namespace does not displace one with its name in
// another cluster.
func TestWhatTakesRoom(t *testing.T) {
	now, long := story.Epoch, strings.Repeat("x", 20_000)
	for name, c := range map[string]problem.Change{
		"the text": {Text: long}, "the object": {Object: long}, "the namespace": {Key: incident.Key{Namespace: long}}, "the workload": {Key: incident.Key{Top: incident.Object{Name: long}}},
	} {
		var changes problem.Changes
		changes.Keep(problem.Change{ID: "of another cluster", Key: incident.Key{Cluster: "b", Namespace: c.Key.Namespace}, At: now.Add(-time.Hour)})
		for i := range 900 {
			c.ID, c.At, c.Key.Cluster = fmt.Sprint(i), now, "a"
			changes.Keep(c)
		}
		changes.Look(now, nil, false)
		assert.Less(t, len(changes.Since(time.Time{})), 850, name)
		assert.NotZero(t, changes.Get("of another cluster"), name)
	}
	for name, p := range map[string]problem.Problem{
		"the sentence": {Sentence: long}, "the reason of its end": {Because: long}, "the namespace": {Key: incident.Key{Namespace: long}},
		"the workload": {Key: incident.Key{Top: incident.Object{Name: long}}}, "the series of its members": {Others: make([]string, 600)},
	} {
		tracker := &problem.Tracker{Closed: []problem.Problem{{ID: "of another cluster", Key: incident.Key{Cluster: "b", Namespace: p.Key.Namespace}, Over: now}}}
		for i := range 2800 {
			p.ID, p.Over, p.Key.Cluster = fmt.Sprint(i), now, "a"
			tracker.Closed = append(tracker.Closed, p)
		}
		tracker.Look(now, nil, false)
		assert.Less(t, len(tracker.Closed), 2600, name)
		assert.Equal(t, "of another cluster", tracker.Closed[0].ID, name)
	}
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

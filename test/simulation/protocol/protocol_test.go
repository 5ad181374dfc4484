// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var whole = flag.Bool("whole", false, "explore four events, two crashes and one restore: this takes minutes")

// TestPromisesHoldInEveryState excepts two cases that docs/reliability.md describes: see write and skip.
func TestPromisesHoldInEveryState(t *testing.T) {
	all := map[string]Bounds{
		"without a fault":                    {Events: 4},
		"two crashes":                        {Events: 4, Crashes: 2},
		"a lease, answer or read that fails": {Events: 2, Faults: 1},
		"a crash and another fault":          {Events: 2, Crashes: 1, Faults: 1},
		"a restored etcd":                    {Events: 3, Restores: 1},
		"two restores":                       {Events: 2, Restores: 2},
		"a restored etcd, and a crash":       {Events: 3, Restores: 1, Crashes: 1},
		"a restored etcd, and another fault": {Events: 1, Restores: 1, Faults: 1},
	}
	if *whole {
		all = map[string]Bounds{"a restored etcd, and two crashes": {Events: 4, Restores: 1, Crashes: 2}}
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			states, broken := Explore(bounds)
			t.Log(states, "states")
			if broken != nil {
				t.Error(broken)
			}
		})
	}
}

// TestWhatAStateForgetsChangesNothing visits all states, also those that Explore takes for the same.
func TestWhatAStateForgetsChangesNothing(t *testing.T) {
	for _, bounds := range []Bounds{{2, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 0, 1}, {1, 0, 1, 1}} {
		nodes, visited := []node{{state: started(), left: bounds}}, map[string]bool{}
		for at := 0; at < len(nodes); at++ {
			n, forgetful := nodes[at], nodes[at]
			forgetful.state = n.state.Clone()
			n.key = string(forgetful.state.appendFuture(nil, n.left))
			forgetful.key = n.key
			require.Equal(t, futures(n), futures(forgetful), "%+v", n.state)
			for _, step := range stepsAt[n.state.Newest] {
				next := n.state.Clone()
				left, ok := n.left.after(step, n.state.isFault(step))
				if !ok || next.Apply(step) != nil {
					continue
				}
				if key := string(next.appendKey(nil)) + fmt.Sprint(left); !visited[key] {
					visited[key] = true
					nodes = append(nodes, node{state: next, left: left})
				}
			}
		}
		t.Log(bounds, len(nodes), "states")
	}
}

// futures returns the keys of a node and of those that follow it, and whether a promise is broken.
func futures(n node) []string {
	keys := []string{n.key}
	broken := n.follow(func(*State) {}, func(key []byte, _ *State, _ Bounds, _ *Step) {
		keys = append(keys, string(key))
	})
	slices.Sort(keys)
	return append(slices.Compact(keys), fmt.Sprint(broken != nil))
}

// TestAProcessThatStartsAfterARestoreMayLoseEvents forgets which position is of a lost history.
func TestAProcessThatStartsAfterARestoreMayLoseEvents(t *testing.T) {
	_, broken := explore(Bounds{Events: 3, Restores: 1, Crashes: 1}, func(s *State) {
		s.OfLost, s.Replicas[0].Lost, s.Replicas[1].Lost = false, 0, 0
	})
	require.NotNil(t, broken)
	assert.ErrorContains(t, broken, "is lost: nobody delivers it, when all works again")
}

// TestWrongRulesAreFound breaks one rule in each state.
func TestWrongRulesAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		wrong func(*State)
		want  string
	}{
		"a leader publishes what it has seen, not what it has delivered": {func(s *State) {
			for i := range s.Replicas {
				if r := &s.Replicas[i]; r.Leads && r.Seen > r.Reached {
					r.Reached, r.Owes = r.Seen, true
				}
			}
		}, "is lost"},
		"a standby drops what it holds when it leads": {func(s *State) {
			for i := range s.Replicas {
				for j := range s.Replicas[i].Holds {
					if s.Replicas[i].Leads && s.Replicas[i].Reached == 0 {
						s.Replicas[i].Holds[j] = Settled
					}
				}
			}
		}, "is lost"},
		"a leader does not read the position at the beginning of its term": {func(s *State) {
			for i := range s.Replicas {
				if r := &s.Replicas[i]; s.Lease == i+1 && !r.Leads {
					r.Read, r.From, r.Leads = 0, 0, true
				}
			}
		}, "is repeated"},
		"a standby that has noticed a restore does not publish this": {func(s *State) {
			for i := range s.Replicas {
				if r := &s.Replicas[i]; !r.Leads && r.Of < r.History {
					r.Read = 0
				}
			}
		}, "is lost"},
		"after a restore, a process starts from now on": {func(s *State) {
			if s.History > 0 && s.Position == 1 {
				s.Position = 0
			}
		}, "is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, broken := explore(Bounds{Events: 2, Crashes: 1, Restores: 1}, tt.wrong)
			require.NotNil(t, broken)
			assert.ErrorContains(t, broken, tt.want)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestSentences: what somebody on call reads first of a problem.
func TestSentences(t *testing.T) {
	t.Parallel()
	web := Key{Cluster: "c", Namespace: "shop", Top: Object{Kind: "deployment", Group: "apps", Name: "web"}}
	node := Key{Cluster: "c", Top: Object{Kind: "node", Name: "node-1"}}
	cause := []Cause{{Change: Change{Text: "web-bbb was rolled out"}}, {Change: Change{Text: "another one"}}}
	for want, p := range map[string]Problem{
		"deployment web in shop: a container ends by itself, again and again; the cause is not known": {
			Key: web, Class: classCrash, Reason: "BackOff", Message: "Back-off",
		},
		"deployment web in shop: no node has room for a pod; the cause: web-bbb was rolled out": {Key: web, Class: classSchedule, Causes: cause},
		"deployment web in shop: app ended: OOMKilled at 128 MiB, exit 137; the cause is not known": {
			Key: web, Class: classCrash, Container: "app", Ended: "OOMKilled at 128 MiB, exit 137", Message: "Back-off", Because: "b",
		},
		"deployment web in shop: its container ended: Error, exit 1; the cause is not known": {Key: web, Class: classCrash, Ended: "Error, exit 1", Because: "b"},
		"deployment web in shop: Odd, it is odd; the cause is not known": {
			Key: web, Class: classOther, Reason: "Odd", Message: "it is odd", Container: "app", Unknown: "not known",
		},
		"node node-1: NodeNotReady, Node node-1 status is now: NodeNotReady; the cause is not known": {
			Key: node, Class: classNode, Reason: "NodeNotReady", Message: "Node node-1 status is now: NodeNotReady",
		},
		"deployment web in shop: Odd, two lines; the cause is not known": {Key: web, Class: classOther, Reason: "Odd", Message: "two\nlines"},
		// A message that all share says what is wrong. That they are in one namespace does not.
		"the quota small is used up: 2 workloads; the cause: web-bbb was rolled out": {
			Key: web, Class: classCreate, Shared: "quota", Scope: []string{"the quota small is used up: 2 workloads"}, Causes: cause, LeftOut: "1 pod",
		},
		"3 workloads in shop at once: a probe fails, or kills a container; the cause is not known": {
			Key: web, Class: classProbe, Shared: "namespace", Scope: []string{"3 workloads in shop at once"}, LeftOut: "1 pod",
		},
	} {
		assert.Equal(t, want, p.Sentence())
	}
}

// TestSeriesOfAProblemOfSeveral: those of its members count, each once.
func TestSeriesOfAProblemOfSeveral(t *testing.T) {
	t.Parallel()
	first := &Problem{Series: "a", Class: classCrash, aliases: []string{"a-effect"}}
	second := &Problem{Series: "b", Class: classCrash, aliases: []string{"b-effect"}}
	joined := *first
	joined.members = []*Problem{first, second}
	assert.Equal(t, []string{"a", "a-effect", "b", "b-effect"}, joined.AllSeries())
	assert.Equal(t, []string{"b", "b-effect"}, second.AllSeries())
}

// TestKeysInJSON: a key that was written is read again, and has its id for readers.
func TestKeysInJSON(t *testing.T) {
	t.Parallel()
	for _, k := range []Key{
		{}, {Cluster: "c", Namespace: "n", Top: Object{Kind: "deployment", Group: "apps", Name: "web"}}, {Top: Object{Kind: "node", Name: "node-1"}},
	} {
		encoded, err := json.Marshal(k)
		require.NoError(t, err)
		assert.Contains(t, string(encoded), k.ID())
		read := Key{Cluster: "other"}
		require.NoError(t, json.Unmarshal(encoded, &read))
		assert.Equal(t, k, read)
	}
}

// TestWhenAChangeIsOver: the end of a state, or the outcome of a rollout when it stays as it is.
func TestWhenAChangeIsOver(t *testing.T) {
	t.Parallel()
	now := story.Epoch
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		change Change
		want   bool
	}{
		"a state that goes on":           {Change{Kind: kindNode, At: ago(time.Hour), isState: true}, false},
		"a state that ended":             {Change{Kind: kindNode, At: ago(time.Hour), Until: ago(time.Minute)}, true},
		"a rollout that goes on":         {Change{Kind: kindRollout, At: ago(time.Hour), Outcome: rollout.Incomplete}, false},
		"one that is complete":           {Change{Kind: kindRollout, At: ago(time.Hour), Outcome: rollout.Complete, final: now}, true},
		"one whose pods can still crash": {Change{Kind: kindRollout, At: ago(time.Hour), Outcome: rollout.Complete, final: now.Add(1), done: ago(time.Minute)}, false},
		"one that is replaced":           {Change{Kind: kindRollout, At: ago(time.Minute), Outcome: rollout.Superseded, isReplaced: true, final: ago(1)}, true},
		"one that is just replaced":      {Change{Kind: kindRollout, At: ago(time.Hour), Outcome: rollout.Superseded, isReplaced: true, final: now.Add(1)}, false},
		"one that fails for 10 minutes":  {Change{Kind: kindRollout, At: ago(10 * time.Minute), Outcome: rollout.Failed, final: now.Add(1)}, true},
		"one that fails for a moment":    {Change{Kind: kindRollout, At: ago(10*time.Minute - 1), Outcome: rollout.Failed, final: ago(1)}, false},
		"one that failed, and is replaced": {
			Change{Kind: kindRollout, At: ago(time.Minute), Outcome: rollout.Failed, isReplaced: true, final: now}, true,
		},
		"one that failed, and is just replaced": {
			Change{Kind: kindRollout, At: ago(time.Hour), Outcome: rollout.Failed, isReplaced: true, final: now.Add(1)}, false,
		},
	} {
		assert.Equal(t, tt.want, tt.change.IsOver(now), name)
	}
}

// TestTheEndOfAStateThatBeganLongAgo: the model knows only how it ended.
func TestTheEndOfAStateThatBeganLongAgo(t *testing.T) {
	t.Parallel()
	m, last := modelOf(
		"1:00 Node/node-0 NodeSchedulable: it is over", "5:00 Node/node-0 NodeReady: it is over", "9:00 Node/node-0 NodeSchedulable event=again: it is over",
		"2:00 Pod/node-0< NodeReady: odd",
	)
	at := m.At(t.Context(), last, Query{})
	node := Key{Cluster: "cluster", Top: Object{Kind: "node", Name: "node-0"}}
	for _, tt := range []struct {
		text  string
		since time.Duration
		want  string
	}{
		{"node node-0 was cordoned", -3 * time.Hour, "1m0s"}, {"node node-0 was cordoned", 2 * time.Minute, "9m0s"}, {"node node-0 was cordoned", 10 * time.Minute, ""},
		{"node node-0 became NotReady", -3 * time.Hour, "5m0s"}, {"node node-0 had disk pressure", -3 * time.Hour, ""}, {"node node-0 was rebooted", -3 * time.Hour, ""},
	} {
		end, got := at.EndOf(node, tt.text, story.Epoch.Add(tt.since)), ""
		if !end.IsZero() {
			got = end.Sub(story.Epoch).String()
		}
		assert.Equal(t, tt.want, got, tt.text)
	}
	assert.Zero(t, at.EndOf(Key{Cluster: "cluster", Top: Object{Kind: "node", Name: "node-9"}}, "node node-9 was cordoned", story.Epoch))
	for key := range m.workloads {
		if key.Top.Kind != "node" {
			assert.Zero(t, at.EndOf(key, "pod node-0 became NotReady", story.Epoch), key)
		}
	}
}

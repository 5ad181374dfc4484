// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// remembering returns a board whose problems a connector remembers: the open one under another id, and two
// that are over.
func remembering(t *testing.T) *board {
	t.Helper()
	b := boardOf("0:10 Pod/web-aaa-1 !BackOff{app}: Back-off restarting failed container app")
	shown := viewOf(b, everything(t)).model.At(context.Background(), b.clock(), incident.Query{}).Problems()
	require.Len(t, shown, 1)
	day := 24 * time.Hour
	p := problem.Problem{Series: shown[0].Series, Key: shown[0].Key, Class: "crash", Sentence: "deployment web in shop: a container ends by itself, again and again"}
	tracker := &problem.Tracker{}
	for id, ago := range map[string]time.Duration{"first": 20 * day, "second": 2 * day} {
		over := p
		over.ID, over.Onset, over.Over, over.Because = id, b.clock().Add(-ago), b.clock().Add(-ago+time.Hour), "the container has run since"
		tracker.Closed = append(tracker.Closed, over)
	}
	if tracker.Closed[0].ID == "second" {
		tracker.Closed[0], tracker.Closed[1] = tracker.Closed[1], tracker.Closed[0]
	}
	p.ID, p.Onset = "told", shown[0].Onset
	tracker.Open = []*problem.Problem{&p}
	changes := &problem.Changes{}
	for text, ago := range map[string]time.Duration{"front was synced to 8a1cb4a": 3 * day, "node-1 is not ready": 2 * day} {
		changes.Keep(problem.Change{ID: text, Key: p.Key, Text: text, At: b.clock().Add(-ago)})
	}
	known := memory{tracker, changes, b.own.Load()}
	b.incidents = func() statusextension.Incidents { return known }
	return b
}

// memory is what a connector knows.
type memory struct {
	*problem.Tracker
	changes *problem.Changes
	live    *incident.Live
}

func (m memory) Changes(since time.Time) []problem.Change { return m.changes.Since(since) }
func (m memory) Live() *incident.Live                     { return m.live }

// TestTheIDOfARecord is that of the page, and the page says what was before.
func TestTheIDOfARecord(t *testing.T) {
	b := remembering(t)
	_, body := fetch(t, b, "/api/problems")
	var told struct {
		Problems []struct {
			ID     string
			Before struct {
				Times int
				Last  struct{ ID, Because string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &told))
	require.Len(t, told.Problems, 1)
	assert.Equal(t, "told", told.Problems[0].ID)
	assert.Equal(t, 2, told.Problems[0].Before.Times)
	assert.Equal(t, "second", told.Problems[0].Before.Last.ID)
	_, page := fetch(t, b, "/")
	assert.Contains(t, page, "Before: 2 times since 9 February. The last one ended")
	assert.Contains(t, page, "the container has run since")
}

// TestProblemsOfThirtyDays are for programs and agents.
func TestProblemsOfThirtyDays(t *testing.T) {
	b := remembering(t)
	for path, want := range map[string][]string{
		"/api/problems?since=2026-02-01T00:00:00Z":                 {"told", "second", "first"},
		"/api/problems?since=2026-02-20T00:00:00Z":                 {"told", "second"},
		"/api/problems?since=2026-02-20T00:00:00Z&workload=web":    {"told", "second"},
		"/api/problems?since=2026-02-20T00:00:00Z&namespace=other": nil,
	} {
		_, body := fetch(t, b, path)
		var told struct{ History []struct{ ID string } }
		require.NoError(t, json.Unmarshal([]byte(body), &told))
		var ids []string
		for _, p := range told.History {
			ids = append(ids, p.ID)
		}
		assert.Equal(t, want, ids, path)
	}
	_, body := fetch(t, b, "/api/changes?since=2026-02-20T00:00:00Z")
	var told struct{ History []struct{ Text string } }
	require.NoError(t, json.Unmarshal([]byte(body), &told))
	require.Len(t, told.History, 2)
	assert.Equal(t, "node-1 is not ready", told.History[0].Text)
	text, failed := call(t, agentOf(t, b), "changes", map[string]any{"since": "2026-02-20T00:00:00Z"})
	assert.False(t, failed)
	assert.Contains(t, text, `"text":"front was synced to 8a1cb4a"`)
	text, failed = call(t, agentOf(t, b), "problems", map[string]any{"since": "2026-02-20T00:00:00Z"})
	assert.False(t, failed)
	assert.Contains(t, text, `"history":[{"id":"told"`)

	for path, want := range map[string]string{
		"/api/events?since=2026-02-20T00:00:00Z":                  `\"since\" is not a parameter`,
		"/api/problems?since=2026-02-20T00:00:00Z&type=Warning":   "since goes together with namespace and workload only",
		"/api/changes?since=2026-02-20T00:00:00Z&reason=BackOff":  "since goes together with namespace and workload only",
		"/api/problems?since=2026-02-20T00:00:00Z&manifest=front": "since goes together with namespace and workload only",
	} {
		status, body := fetch(t, b, path)
		assert.Equal(t, http.StatusBadRequest, status, path)
		assert.Contains(t, body, want, path)
	}

	status, body := fetch(t, boardOf(""), "/api/problems?since=2026-02-20T00:00:00Z")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "needs the connector kube_incidents in the logs pipelines of event_page")
}

// TestThePageOfThirtyDays lists problems by week, and counts changes.
func TestThePageOfThirtyDays(t *testing.T) {
	b := remembering(t)
	_, body := fetch(t, b, "/")
	assert.Contains(t, body, `<a href="days">30 days</a>`)
	status, body := fetch(t, b, "/days")
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, []string{
		"Week of 23 February: 2 problems, 2 changes",
		"Week of 9 February: 1 problem, 0 changes",
	}, texts(body, "h2"))
	rows := texts(body, "tr")
	assert.Equal(t, "1 March 10:00:10deployment web in shop: a container ends by itself, again and againit goes on", rows[1])
	assert.Contains(t, rows[2], "1 h 0 minthe container has run since")
	_, body = fetch(t, b, "/days?namespace=other")
	assert.Contains(t, body, "Week of 23 February: 0 problems, 0 changes")

	status, body = fetch(t, boardOf(""), "/days")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "needs the connector kube_incidents")
	_, body = fetch(t, boardOf(""), "/")
	assert.NotContains(t, body, "30 days")
}

// TestAPageThatSharesAModelKnowsTheSameTime as one with its own: with start_at: beginning, from the oldest event on.
func TestAPageThatSharesAModelKnowsTheSameTime(t *testing.T) {
	for _, shares := range []bool{false, true} {
		inBubble(t, func(t *testing.T, p pageOf) {
			live := incident.NewLive(time.Now)
			if shares {
				p.incidents = func() statusextension.Incidents { return memory{&problem.Tracker{}, &problem.Changes{}, live} }
			}
			live.Begin(time.Now()) // as the connector does at its start
			time.Sleep(2 * time.Second)
			p.works()
			logs := story.Records(unschedulable)[0].Logs(time.Now().Add(-40 * time.Minute))
			live.Take(incident.FactsOf(record.Read(logs), time.Now(), true))
			live.Use(func(*incident.Model) {}) // a look of the connector
			p.add(logs)
			time.Sleep(5 * time.Minute)
			_, in := p.says()
			assert.Equal(t, "23:20:02", in.RecordsSince.Format(time.TimeOnly), "shares: %v", shares)
		})
	}
}

// TestAPageBeginsToShareDuringARequest: another one has begun with the page's own model.
func TestAPageBeginsToShareDuringARequest(t *testing.T) {
	b := newBoard(time.Now)
	known, isFirst := memory{&problem.Tracker{}, &problem.Changes{}, incident.NewLive(time.Now)}, true
	b.incidents = func() statusextension.Incidents {
		if isFirst {
			isFirst = false
			b.live() // Another request, when all pipelines run. It sees the connector.
			return nil
		}
		return known
	}
	assert.NotPanics(t, func() { b.add(justNow(unschedulable)) })
}

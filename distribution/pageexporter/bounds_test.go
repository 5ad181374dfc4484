// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestAnAnswerIsBounded, whatever Events say: JSON, the page, and tools.
func TestAnAnswerIsBounded(t *testing.T) {
	b := boardOf("")
	all := plog.NewLogs()
	for i := range 1_900 {
		line := fmt.Sprintf("0:00 Deployment/web-%d !%s%d event=%d: %s", max(0, i-1_200)%8, strings.Repeat("<", 200), i, i, strings.Repeat("\x01\"", 500))
		story.Logs(line)[0].ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	b.add(all)
	_, body := fetch(t, b, "/api/workloads/web-0")
	var one struct {
		Workload struct{ ID string }
		Reasons  []struct {
			Reason      string
			Occurrences int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Len(t, one.Reasons, 21)
	assert.Equal(t, "others", one.Reasons[20].Reason)
	assert.Equal(t, 1288-20, one.Reasons[20].Occurrences)
	id := one.Workload.ID
	for _, path := range []string{
		"/api/workloads?limit=1000", "/api/problems?limit=1000", "/api/events?limit=1000", "/api/workloads/" + id + "?limit=1000", "/", "/?workload=" + id,
	} {
		status, body := fetch(t, b, path)
		assert.Equal(t, http.StatusOK, status, path)
		assert.LessOrEqual(t, len(body), maxAnswer, path)
		assert.Greater(t, len(body), 10_000, "%s: what fits is there", path)
	}
	text, failed := call(t, agentOf(t, b), "events", map[string]any{"limit": 1000})
	assert.False(t, failed)
	assert.LessOrEqual(t, len(text), forAgents.room+1000)
	assert.Contains(t, text, `"total":{"events":1900}`)
}

// TestAListThatIsCutHasItsLength, in JSON and for agents.
func TestAListThatIsCutHasItsLength(t *testing.T) {
	lines := ""
	for i := range 12 {
		lines += fmt.Sprintf("0:%02d Pod/web%d-aaa-1 !FailedScheduling event=a%d: %c\n0:%02d Pod/many-aaa-%d !FailedMount event=b%d: m\n", i, i, i, 'a'+i, i, i, i)
	}
	b := boardOf(lines)
	for path, want := range map[string]map[string]int{
		"/api/events?limit=5":     {"events": 24},
		"/api/workloads?limit=13": nil,
		"/api/workloads?limit=12": {"workloads": 13},
		"/api/problems?limit=1":   {"problems": 13},
	} {
		_, body := fetch(t, b, path)
		var head struct{ Total map[string]int }
		require.NoError(t, json.Unmarshal([]byte(body), &head), path)
		assert.Equal(t, want, head.Total, path)
	}
	for i := range podsShown + 1 {
		for _, r := range story.Records(fmt.Sprintf("0:30 Pod/big-aaa-%d starts", i)) {
			b.add(r.Logs(story.Epoch))
		}
	}
	_, body := fetch(t, b, "/api/workloads/big?limit=1")
	var big struct {
		Rollouts []struct{ Total map[string]int }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &big))
	require.Len(t, big.Rollouts, 1)
	assert.Equal(t, map[string]int{"spans": podsShown + 1}, big.Rollouts[0].Total)

	text, _ := call(t, agentOf(t, b), "problems", nil)
	assert.Contains(t, text, `"total":{"problems":13}`)
	text, _ = call(t, agentOf(t, b), "what_changed", map[string]any{"workload": "many"})
	assert.Contains(t, text, `"total":{"pods":12,"records":12}`, "the lists of a problem")
	assert.NotContains(t, text, `"total":{"problems"`)
}

// TestTheListsOfAProblemAreCut, each with its length, and those of causes.
func TestTheListsOfAProblemAreCut(t *testing.T) {
	five := []string{"1", "2", "3", "4", "5"}
	p := incident.Problem{
		Earlier: make([]time.Time, 5), Revisions: five, Pods: five, Nodes: five, Records: five,
		Causes: []incident.Cause{{Change: incident.Change{Records: five}}},
	}
	r := &reply{style: style{below: 3}}
	shown := r.problem(p)
	assert.Equal(t, totals{"earlier": 5, "revisions": 5, "pods": 5, "nodes": 5, "records": 5}, shown.Total)
	for _, list := range [][]string{shown.Revisions, shown.Pods, shown.Nodes, shown.Records, shown.Causes[0].Records} {
		assert.Equal(t, five[:3], list)
	}
	assert.Len(t, shown.Earlier, 3)
	assert.Len(t, p.Causes[0].Records, 5, "the model's")
	assert.Len(t, r.summary(incident.Summary{Manifests: five}).Manifests, 3)
	p.Pods = five[:3]
	assert.NotContains(t, r.problem(p).Total, "pods")
}

// TestSlowReadersHoldABoundedMemory: answers that are being written are counted until they are.
func TestSlowReadersHoldABoundedMemory(t *testing.T) {
	h := &handler{board: boardOf("")}
	h.held.Store(maxHeld)
	status, body := serveAt(t, h, "/api/problems")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "too many requests at once")
	h.held.Store(0)
	for range 3 {
		status, _ := serveAt(t, h, "/")
		assert.Equal(t, http.StatusOK, status)
	}
	assert.Zero(t, h.held.Load())
}

// TestWhoWaitedForASlowAnswerSharesIt: those who ask while it is computed compute one together.
func TestWhoWaitedForASlowAnswerSharesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(time.Now)
		computed := 0
		var viewers sync.WaitGroup
		for range 10 {
			viewers.Go(func() {
				_, err := b.look(t.Context(), "slow", filter{}, func(*view) ([]byte, error) {
					computed++
					b.news.Add(1) // Records come all the time.
					time.Sleep(maxLook / 2)
					return nil, nil
				})
				assert.NoError(t, err)
			})
			time.Sleep(maxLook / 100)
		}
		viewers.Wait()
		assert.Equal(t, 2, computed)
	})
}

// TestAViewerWhoLeavesEndsTheLook: its answer is not for others.
func TestAViewerWhoLeavesEndsTheLook(t *testing.T) {
	b := boardOf(imageChange)
	ctx, leave := context.WithCancel(t.Context())
	_, err := b.look(ctx, "page", everything(t), func(v *view) ([]byte, error) {
		assert.NotEmpty(t, v.at().Problems())
		leave()
		assert.Empty(t, v.at().Problems())
		assert.Empty(t, v.at().Changes())
		return endpoints["events"](v)
	})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, b.cache)
}

// TestAnErrorOfThePage is not one of the request.
func TestAnErrorOfThePage(t *testing.T) {
	response := httptest.NewRecorder()
	h := &handler{board: boardOf("")}
	h.serve(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "problems", "", inJSON, func(*view) ([]byte, error) {
		return nil, errors.New("template: a field is missing")
	})
	assert.Equal(t, http.StatusInternalServerError, response.Code)
	assert.JSONEq(t, `{"error": "template: a field is missing"}`, response.Body.String())
}

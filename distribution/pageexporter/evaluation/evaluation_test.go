// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the answers of first-cause again")

const firstCause = "answers/first-cause.json"

// TestFirstCause: a program that takes the first cause of the first problem has the stored answers, and the score of the
// README's command.
func TestFirstCause(t *testing.T) {
	t.Chdir("..")
	var all map[string]truth
	require.NoError(t, json.Unmarshal(truths, &all))
	files, err := filepath.Glob("../internal/incident/testdata/real/*.json")
	require.NoError(t, err)
	require.Len(t, all, len(files), "each recorded incident has a right answer")
	answers := map[string]answer{}
	for name := range all {
		answers[name] = ask(t, name)
	}
	if *update {
		content, err := json.MarshalIndent(answers, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("evaluation/"+firstCause, append(content, '\n'), 0o600))
	}
	content, err := os.ReadFile("evaluation/" + firstCause)
	require.NoError(t, err)
	var stored map[string]answer
	require.NoError(t, json.Unmarshal(content, &stored))
	var wrong []string
	for name, given := range answers {
		assert.Equal(t, stored[name].Workload, given.Workload, name)
		assert.Equal(t, stored[name].Cause, given.Cause, name)
		if !all[name].admits(given) {
			wrong = append(wrong, name)
		}
	}
	assert.Equal(t, []string{"autoscaler"}, wrong, "the newest problem is that of the autoscaler itself")
	assert.Equal(t, len(all)-len(wrong), scoreOf(stored).right)
}

// ask returns the first problem with its first cause, from one call.
func ask(t *testing.T, name string) answer {
	t.Helper()
	page, end, err := startPage(t.Context(), name)
	require.NoError(t, err)
	defer end()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "first-cause"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: page.String() + "/mcp"}, nil)
	require.NoError(t, err)
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "problems"})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	text := result.Content[0].(*mcp.TextContent).Text
	assert.NotContains(t, text, `"namespace":"`+name, "it would give the answer away")
	var told struct {
		Problems []struct {
			Workload struct{ Name string }
			Causes   []struct{ Text string }
			Unknown  string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &told))
	given := answer{Calls: 1, Bytes: len(text)}
	for i := len(told.Problems) - 1; i >= 0; i-- {
		p := told.Problems[i]
		given.Workload, given.Cause = p.Workload.Name, p.Unknown
		if len(p.Causes) > 0 {
			given.Cause = p.Causes[0].Text
		}
	}
	return given
}

// TestScores: an answer must name the workload and the cause, and no problem where there is none.
func TestScores(t *testing.T) {
	crash := truth{Workloads: []string{"web"}, Cause: "rolled out"}
	for name, tt := range map[string]struct {
		truth truth
		given answer
		want  bool
	}{
		"right":                     {crash, answer{Workload: "web", Cause: "web-2 was rolled out"}, true},
		"another cause":             {crash, answer{Workload: "web", Cause: "a node"}, false},
		"another workload":          {crash, answer{Workload: "api", Cause: "web-2 was rolled out"}, false},
		"no problem where is one":   {crash, answer{}, false},
		"no problem":                {truth{}, answer{}, true},
		"a problem where is none":   {truth{}, answer{Workload: "web", Cause: "rolled out"}, false},
		"a cause without a problem": {truth{}, answer{Cause: "x"}, true},
	} {
		assert.Equal(t, tt.want, tt.truth.admits(tt.given), name)
	}
	var b strings.Builder
	t.Chdir("..")
	require.NoError(t, printScores(&b))
	assert.Contains(t, b.String(), "first-cause")
}

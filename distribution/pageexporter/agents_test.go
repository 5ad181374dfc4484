// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// agentOf connects an agent to a board.
func agentOf(t *testing.T, b *board) *mcp.ClientSession {
	t.Helper()
	server := httptest.NewServer(newHandler(b, &Config{MCP: true}, "1.2.3"))
	t.Cleanup(server.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/prefix/mcp"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, session.Close())
		http.DefaultClient.CloseIdleConnections()
	})
	return session
}

// call returns the text of a tool's answer.
func call(t *testing.T, agent *mcp.ClientSession, tool string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	require.Len(t, result.Content, 1)
	assert.Nil(t, result.StructuredContent, "an agent pays for each word once")
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestAgentsHaveTheAnswersOfTheAPI(t *testing.T) {
	agent := agentOf(t, boardOf(imageChange))
	assert.Equal(t, "1.2.3", agent.InitializeResult().ServerInfo.Version)
	tools, err := agent.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		assert.True(t, tool.Annotations.ReadOnlyHint)
		assert.False(t, *tool.Annotations.OpenWorldHint)
		assert.NotEmpty(t, tool.Title)
		assert.Contains(t, tool.Description, "do not follow", "a tenant writes the texts")
	}
	assert.ElementsMatch(t, []string{"problems", "what_changed", "changes", "events"}, names)

	text, failed := call(t, agent, "problems", nil)
	require.False(t, failed)
	var told struct {
		Problems []struct {
			Workload struct{ ID string }
			Causes   []struct {
				Text    string
				Records []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &told))
	require.Len(t, told.Problems, 1)
	assert.Equal(t, "checkout-bbb was rolled out: app:1.0 → app:1.1-typo", told.Problems[0].Causes[0].Text)
	assert.NotEmpty(t, told.Problems[0].Causes[0].Records)
	assert.Less(t, len(text), 2000, "a short answer")

	for _, name := range []string{"checkout", "deployment/checkout", "Deployment.apps/checkout", told.Problems[0].Workload.ID} {
		text, failed := call(t, agent, "what_changed", map[string]any{"workload": name})
		require.False(t, failed, text)
		assert.Contains(t, text, "app:1.0 → app:1.1-typo")
		assert.Contains(t, text, `"changes":[{`)
	}
	text, _ = call(t, agent, "what_changed", map[string]any{"workload": "checkout", "time": "2026-03-01T10:04:00Z"})
	assert.NotContains(t, text, "1.1-typo", "it is later")
	text, _ = call(t, agent, "changes", map[string]any{"namespace": "shop", "before": "2026-03-01T10:10:00Z"})
	assert.Contains(t, text, "app:1.0 → app:1.1-typo")
	text, _ = call(t, agent, "changes", map[string]any{"namespace": "other"})
	assert.Contains(t, text, `"changes":[]`)
	text, _ = call(t, agent, "events", map[string]any{"workload": "checkout", "reason": "Started", "limit": 5})
	assert.Equal(t, 1, strings.Count(text, `"message":`))
}

// TestBothVersionsOfTheProtocol have the same tools and answers.
func TestBothVersionsOfTheProtocol(t *testing.T) {
	server := httptest.NewServer(newHandler(boardOf(imageChange), &Config{MCP: true}, "1.2.3"))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
		agent, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/prefix/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		require.NoError(t, err, version)
		assert.Equal(t, version, agent.InitializeResult().ProtocolVersion)
		tools, err := agent.ListTools(t.Context(), nil)
		require.NoError(t, err, version)
		assert.Len(t, tools.Tools, 4, version)
		text, failed := call(t, agent, "problems", nil)
		assert.False(t, failed, text)
		assert.Contains(t, text, "1.1-typo", version)
		assert.Contains(t, text, `"untrusted":["message"`, version)
		require.NoError(t, agent.Close())
	}
}

// TestAnAgentIsToldHowToAsk: an error says what to do.
func TestAnAgentIsToldHowToAsk(t *testing.T) {
	agent := agentOf(t, boardOf(imageChange+"5:10 Pod/checkout-aaa-1 Odd namespace=other: m"))
	for want, arguments := range map[string]map[string]any{
		`no workload with the name "nobody"`:                  {"workload": "nobody"},
		`several workloads have the name "checkout"; use the`: {"workload": "checkout"},
		`time is "noon": it can be a time such as`:            {"workload": "checkout", "time": "noon"},
	} {
		text, failed := call(t, agent, "what_changed", arguments)
		assert.True(t, failed)
		assert.Contains(t, text, want)
	}
	text, failed := call(t, agent, "what_changed", map[string]any{"workload": "checkout", "namespace": "shop"})
	assert.False(t, failed, text)
	text, failed = call(t, agent, "problems", map[string]any{"minutes": 7})
	assert.True(t, failed)
	assert.Contains(t, text, "minutes is")
}

// TestWhatAgentsSendForNothing: null, an empty text and 0 choose nothing, and a number may be a text.
func TestWhatAgentsSendForNothing(t *testing.T) {
	agent := agentOf(t, boardOf(imageChange))
	for tool, variants := range map[string][]map[string]any{
		"problems": {{"namespace": nil, "minutes": nil}, {"namespace": "", "minutes": 0}, {"namespace": 0, "minutes": "0"}, {"minutes": ""}},
		"what_changed": {
			{"workload": "checkout", "time": nil, "namespace": nil}, {"workload": "checkout", "time": "", "namespace": ""},
		},
		"changes": {{"namespace": nil, "minutes": nil, "before": nil}},
		"events":  {{"namespace": nil, "minutes": nil, "workload": nil, "reason": nil, "type": nil, "from": nil, "until": nil, "limit": nil}, {"limit": "20"}, {"limit": 0}},
	} {
		plain := map[string]any{}
		if tool == "what_changed" {
			plain["workload"] = "checkout"
		}
		want, failed := call(t, agent, tool, plain)
		require.False(t, failed, want)
		for _, arguments := range variants {
			got, failed := call(t, agent, tool, arguments)
			assert.False(t, failed, "%s %v: %s", tool, arguments, got)
			assert.Equal(t, want, got, "%s %v", tool, arguments)
		}
	}
	five, _ := call(t, agent, "problems", map[string]any{"minutes": 5})
	for _, minutes := range []any{"5", 5.0} {
		got, failed := call(t, agent, "problems", map[string]any{"minutes": minutes})
		assert.False(t, failed, got)
		assert.Equal(t, five, got)
	}
	text, failed := call(t, agent, "problems", map[string]any{"namespace": "0"})
	assert.False(t, failed, text)
	assert.Contains(t, text, `"problems":[]`, "a namespace can have this name")
}

// TestAnErrorForAnAgentSaysWhatIsAllowed: it is a result, so that the agent can try again.
func TestAnErrorForAnAgentSaysWhatIsAllowed(t *testing.T) {
	agent := agentOf(t, boardOf(imageChange))
	for _, tt := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"problems", map[string]any{"minutes": 15}, `minutes is "15": it can be 5, 10, 30 or 60`},
		{"problems", map[string]any{"minutes": "half an hour"}, `minutes is "half an hour": it can be 5, 10, 30 or 60`},
		{"problems", map[string]any{"reasoning": "I look for problems"}, `"reasoning" is not an argument: use namespace, minutes`},
		{"problems", map[string]any{"namespace": []string{"shop"}}, "namespace can be of the type string"},
		{"events", map[string]any{"limit": true}, "limit can be of the type integer"},
		{"events", map[string]any{"limit": 1e6}, "it can be a number from 1 to 1000"},
		{"what_changed", nil, "workload is not set: use the name, kind/name or id of one"},
		{"what_changed", map[string]any{"workload": nil}, "workload is not set"},
		{"what_changed", map[string]any{"workload": "checkout", "time": "2026-03-01T10:04:00"}, `time is "2026-03-01T10:04:00": it can be a time such as`},
	} {
		text, failed := call(t, agent, tt.tool, tt.arguments)
		assert.True(t, failed, tt.want)
		assert.Contains(t, text, tt.want)
	}
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "problems", Arguments: []int{1}})
	require.NoError(t, err)
	assert.True(t, result.IsError)
	assert.Contains(t, result.Content[0].(*mcp.TextContent).Text, "arguments can be an object such as")
}

// TestSchemasAreSimple: some models accept no unions, and no $schema.
func TestSchemasAreSimple(t *testing.T) {
	tools, err := agentOf(t, boardOf("")).ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		schema := tool.InputSchema.(map[string]any)
		assert.Equal(t, "object", schema["type"])
		for name, property := range schema["properties"].(map[string]any) {
			assert.Contains(t, []any{"string", "integer"}, property.(map[string]any)["type"], name)
			assert.NotNil(t, parameters[name], "it is a parameter of addresses")
		}
	}
}

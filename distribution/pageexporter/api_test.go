// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fetch returns the answer of the API of a board.
func fetch(t *testing.T, b *board, path string) (status int, body string) {
	t.Helper()
	return serveAt(t, &handler{board: b}, path)
}

func serveAt(t *testing.T, h *handler, path string) (status int, body string) {
	t.Helper()
	response := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	path, query, _ := strings.Cut(path, "?")
	request.URL.Path, request.URL.RawQuery = path, query
	h.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

func TestTheAnswersAreAsTheyAreRecorded(t *testing.T) {
	b := boardOf(imageChange)
	id := viewOf(b, everything(t)).at().Problems()[0].Key.ID()
	for file, path := range map[string]string{
		"problems": "/api/problems", "changes": "/prefix/api/changes?until=2026-03-01T10:04:00Z", "workloads": "/api/workloads/",
		"workload": "/api/workloads/" + id, "events": "/api/events?type=Warning&limit=1",
	} {
		status, body := fetch(t, b, path)
		require.Equal(t, http.StatusOK, status, path)
		golden(t, file+".json", body)
	}
	_, inLowerCase := fetch(t, b, "/api/events?type=warning&limit=1")
	golden(t, "events.json", inLowerCase)
}

func TestABadParameterIsNamed(t *testing.T) {
	b := boardOf("")
	for query, want := range map[string]string{
		"minutes=7":                   `minutes is \"7\": it can be 5, 10, 30 or 60`,
		"minutes=x":                   `minutes is \"x\"`,
		"from=yesterday":              `from is \"yesterday\": it can be a time such as`,
		"until=1":                     `until is \"1\"`,
		"until=10000-01-01T00:00:00Z": `until is \"10000`,
		"until=2026-03-01T08:00":      "until is 2026-03-01T08:00:00Z: the page has one hour, so use a time after 2026-03-01T09:",
		"from=2026-03-01T12:00&until=2026-03-01T11:00": "from is 2026-03-01T12:00:00Z: it must be earlier than until",
		"until=0000-01-01T00:00:00%2B23:59":            `until is \"0000-01-01T00:00:00+23:59\": it can be a time such as`,
		"from=9999-12-31T23:59:59-23:59":               `from is \"9999-12-31T23:59:59-23:59\"`,
		"limit=0":                                      "limit is", "limit=1001": "limit is",
		"type=foo":                           `type is \"foo\": it can be Normal or Warning`,
		"reason=Failed&reason=BackOff":       "reason is there 2 times: choose one value",
		"minutes=30&until=2026-03-01T12:00":  "minutes is 30, and until chooses another time: remove one of them",
		"minutes=60&from=2026-03-01T11:00":   "minutes is 60, and from chooses another time",
		"before=2026-03-01T12:00":            `\"before\" is not a parameter: use from, limit, manifest, minutes, namespace, reason, type, until, workload`,
		"name=x":                             `\"name\" is not a parameter: use from, limit,`,
		"reason=" + strings.Repeat("x", 513): "reason is longer than 512 bytes",
	} {
		for _, path := range []string{"/api/problems", "/api/changes", "/api/workloads", "/api/events", "/api/workloads/w"} {
			status, body := fetch(t, b, path+"?"+query)
			assert.Equal(t, http.StatusBadRequest, status, path)
			assert.Contains(t, body, want, path)
			assert.True(t, json.Valid([]byte(body)), body)
		}
		status, body := fetch(t, b, "/?"+query)
		assert.Equal(t, http.StatusBadRequest, status, "the page")
		assert.Contains(t, html.UnescapeString(body), strings.ReplaceAll(want, `\`, ""))
	}
	status, body := fetch(t, b, "/api/workloads/wnobody")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "no workload with the name \\\"wnobody\\\", nor an object of one, has an event in the last hour: api/workloads and the tool events list those that have")
}

// TestAWorkloadWithoutWhatIsChosen is known: the answer has none of it. Another one is not.
func TestAWorkloadWithoutWhatIsChosen(t *testing.T) {
	b := boardOf(imageChange)
	status, body := fetch(t, b, "/api/workloads/deployment%2Fcheckout")
	assert.Equal(t, http.StatusNotFound, status, body)
	for _, query := range []string{"reason=NoEventHasIt", "reason=Started&type=Warning"} {
		status, body := fetch(t, b, "/api/workloads/checkout?"+query)
		assert.Equal(t, http.StatusOK, status, query)
		assert.Contains(t, body, `"name": "checkout"`)
		assert.Contains(t, body, `"events": []`)
	}
	status, body = fetch(t, b, "/api/workloads/nobody?reason=Failed")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "api/workloads and the tool events list those that have")
}

func TestAParameterNamesAWorkload(t *testing.T) {
	for _, name := range []string{"deployment/quiet", "deploy/quiet"} {
		_, body := fetch(t, boardOf(imageChange), "/api/workloads?workload="+name)
		assert.Contains(t, body, `"name": "quiet"`)
		assert.NotContains(t, body, `"name": "checkout"`)
	}
}

// TestAnErrorOnThePage is a page, which a person can read, with the status that JSON has.
func TestAnErrorOnThePage(t *testing.T) {
	b := boardOf(imageChange)
	for path, want := range map[string]string{
		"/?workload=nobody": "no workload with the name", "/content?workload=nobody": "no workload with the name", "/?limit=0": "limit is",
	} {
		status, body := fetch(t, b, path)
		asJSON, _ := fetch(t, b, strings.NewReplacer("/content?", "/api/problems?", "/?", "/api/problems?").Replace(path))
		assert.Equal(t, asJSON, status, path)
		assert.Contains(t, texts(body, "p"), "Show everything", path)
		assert.Contains(t, body, want, path)
		assert.NotContains(t, body, "problems go on", path)
	}
	status, body := fetch(t, b, "/?workload=deployment/checkout")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "What changed")
}

// TestTimesThatProgramsSend for "not chosen", and for the beginning of all times.
func TestTimesThatProgramsSend(t *testing.T) {
	none, err := filterFrom(url.Values{"until": {"0001-01-01T00:00:00Z"}})
	require.NoError(t, err)
	assert.Equal(t, everything(t), none)
	first, err := filterFrom(url.Values{"until": {"0000-01-01T00:00:00Z"}})
	require.NoError(t, err)
	assert.Equal(t, time.Unix(0, 0).UTC(), first.Until, "what a model can compute with")
}

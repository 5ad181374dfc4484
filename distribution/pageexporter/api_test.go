// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answerOf returns the answer of the API of a store.
func answerOf(t *testing.T, s *store, path string) (status int, body string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	newHandler(s, nil).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	assert.Equal(t, "application/json", recorder.Header().Get("Content-Type"))
	read, err := io.ReadAll(recorder.Body)
	require.NoError(t, err)
	return recorder.Code, string(read)
}

// failedUpdate has a rollout, and one whose pod cannot get its image.
func failedUpdate() []happening {
	return join(first(0), replace(300)[:3], []happening{
		{at: 301, object: "Pod/web-bbb-1", reason: "Pulling", message: `Pulling image "web:typo"`, node: "worker-3"},
		{at: 302, object: "Pod/web-bbb-1", reason: "Failed", message: `Failed to pull image "web:typo": not found`, warning: true, node: "worker-3"},
	})
}

// TestTheAPI checks field by field what scripts read.
func TestTheAPI(t *testing.T) {
	s := storeOf(t, failedUpdate())
	for file, path := range map[string]string{"workloads.json": "/api/workloads", "workload.json": "/api/workloads/uid-web"} {
		t.Run(file, func(t *testing.T) {
			status, body := answerOf(t, s, path)
			assert.Equal(t, http.StatusOK, status)
			requireGolden(t, file, body)
		})
	}
}

func TestWhatTheAPISelects(t *testing.T) {
	s := storeOf(t, join(failedUpdate(), []happening{{at: 0, object: "Deployment/quiet", reason: "Any", message: "m"}}))
	for path, want := range map[string][]string{
		"/api/workloads":               {"web", "quiet"},
		"/any/prefix/api/workloads":    {"web", "quiet"},
		"/api/workloads/":              {"web", "quiet"},
		"/api/workloads?warnings=only": {"web"},
		"/api/workloads?name=quiet":    {"quiet"},
		"/api/workloads?reason=None":   {},
	} {
		t.Run(path, func(t *testing.T) {
			status, body := answerOf(t, s, path)
			assert.Equal(t, http.StatusOK, status)
			var answer struct{ Workloads []struct{ Name string } }
			require.NoError(t, json.Unmarshal([]byte(body), &answer))
			names := []string{}
			for _, w := range answer.Workloads {
				names = append(names, w.Name)
			}
			assert.Equal(t, want, names)
		})
	}
}

func TestParametersOfTheAPIThatHaveNoMeaning(t *testing.T) {
	s := storeOf(t, failedUpdate())
	for query, problem := range map[string]string{
		"warning=only":                    `there are: from, kind, manifest, minutes, name, namespace, reason, text, until, warnings, workload`,
		"minutes=15":                      `minutes is \"15\": it may be 10 or 60`,
		"from=2026-01-02T15:04:05Z":       "give both",
		"from=yesterday&until=2026-01-02": "from and until are two times such as 2026-01-02T15:04:05Z",
		"from=2026-01-02T15:04:05Z&until=2026-01-02T17:04:05Z": "at most one hour apart",
	} {
		for _, path := range []string{"/api/workloads", "/api/workloads/uid-web"} {
			status, body := answerOf(t, s, path+"?"+query)
			assert.Equal(t, http.StatusBadRequest, status, query)
			assert.Contains(t, body, problem)
		}
	}
	status, _ := answerOf(t, s, "/api/workloads?minutes=10")
	assert.Equal(t, http.StatusOK, status)
}

func TestAWorkloadThatIsNotThere(t *testing.T) {
	for name, path := range map[string]string{"another UID": "/api/workloads/other", "filtered out": "/api/workloads/uid-web?name=other"} {
		t.Run(name, func(t *testing.T) {
			status, body := answerOf(t, storeOf(t, failedUpdate()), path)
			assert.Equal(t, http.StatusNotFound, status)
			assert.Contains(t, body, "there is no workload with this UID")
		})
	}
}

// TestTheEndOfWhatTheAPISelects: with a zoom, it is that of the zoom, but never later than now.
func TestTheEndOfWhatTheAPISelects(t *testing.T) {
	s := storeOf(t, failedUpdate())
	for query, until := range map[string]string{
		"": "12:06:02", "?from=2026-03-01T12:00:00Z&until=2026-03-01T12:04:00Z": "12:04:00", "?from=2026-03-01T12:00:00Z&until=2026-03-01T12:59:00Z": "12:06:02",
	} {
		_, body := answerOf(t, s, "/api/workloads"+query)
		assert.Contains(t, body, `"until": "2026-03-01T`+until+`Z"`, query)
	}
}

// TestALongMessage: the events of the API have as much of it as the page.
func TestALongMessage(t *testing.T) {
	long := warn(0, "web-aaa-1", "BackOff")
	long.message = strings.Repeat("x", 2*maxMessage)
	s := storeOf(t, []happening{long})
	_, body := answerOf(t, s, "/api/workloads/uid-web")
	assert.Contains(t, body, `"`+strings.Repeat("x", maxMessage)+`…"`)
	assert.Equal(t, cut(long.message, maxMessage), s.see(filterFrom(nil)).Cards[0].Events[0].Message)
}

// TestTheObjectOfAnAutoscalersChange is the autoscaler, also if the change has the scaling that followed.
func TestTheObjectOfAnAutoscalersChange(t *testing.T) {
	s := storeOf(t, join(first(0), []happening{rescale(598, "any", 30), scale(600, "web-aaa", 3, 30), warn(605, "web-aaa-9", "FailedScheduling")}))
	_, body := answerOf(t, s, "/api/workloads/uid-web")
	var answer struct {
		Changed struct{ Changes []struct{ Object string } }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	assert.Equal(t, "horizontalpodautoscaler.autoscaling/any", answer.Changed.Changes[0].Object)
}

func TestTheIDInTheAddressOfThePageIsAUID(t *testing.T) {
	s := storeOf(t, failedUpdate())
	id := s.see(filterFrom(nil)).Cards[0].ID
	_, byID := answerOf(t, s, "/api/workloads/"+id)
	_, byUID := answerOf(t, s, "/api/workloads/uid-web")
	assert.JSONEq(t, byUID, byID)
}

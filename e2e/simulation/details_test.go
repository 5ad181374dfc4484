// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// details checks on each of the servers what a random script cannot compare: what depends on time,
// or on which versions belong to other clients.
func details(t *testing.T, s *server) {
	t.Run("a watch from the version before the compacted one",
		func(t *testing.T) { almostCompacted(t, s) })
	t.Run("a watch from a future version is silent until then",
		func(t *testing.T) { futureVersions(t, s) })
	t.Run("watches end after their timeouts", func(t *testing.T) { watchesEnd(t, s) })
}

const namespace = "script0"

// event writes an event and returns its version.
func (s *server) event(method, name string, count int) int64 {
	path := events.path(namespace)
	if method == http.MethodPut {
		path = events.path(namespace, name)
	}
	body := object{
		"metadata":       object{"namespace": namespace, "name": name},
		"involvedObject": object{"namespace": namespace}, "count": count,
	}
	_, written := s.ask(call{method: method, path: path, accept: protobufType, body: body})
	metadata, _ := written["metadata"].(object)
	version, _ := metadata["resourceVersion"].(string)
	parsed, err := strconv.ParseInt(version, 10, 64)
	require.NoError(s.t, err, "%v", written)
	return parsed
}

// opened opens a watch and returns it.
func (s *server) opened(t *testing.T, k kind, query url.Values) *watching {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	query.Set("watch", "true")
	head, w := s.watch(ctx, call{method: http.MethodGet, path: k.path(namespace), query: query,
		accept: protobufType})
	require.NotNil(t, w, "%v", head)
	return w
}

// changes returns the types of the messages so far, with the versions of the objects.
func (w *watching) changes() (changes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.messages {
		change := m.change
		metadata, _ := m.object.(object)["metadata"].(object)
		if version, ok := metadata["resourceVersion"].(string); ok {
			change += " " + version
		}
		changes = append(changes, change)
	}
	return changes
}

// watchesEnd checks that watches end, with bookmarks before if the kind has a watch cache.
func watchesEnd(t *testing.T, s *server) {
	_, list := s.ask(call{method: http.MethodGet, path: configMaps.path(namespace),
		accept: protobufType})
	version := list["metadata"].(object)["resourceVersion"].(string)
	begun := time.Now()
	opened := map[kind]*watching{}
	for _, k := range []kind{configMaps, events} {
		opened[k] = s.opened(t, k, url.Values{"allowWatchBookmarks": {"true"},
			"timeoutSeconds": {"4"}, "resourceVersion": {version}})
	}
	body := object{"metadata": object{"namespace": "default", "name": "another"}}
	s.ask(call{method: http.MethodPost, path: configMaps.path("default"), accept: protobufType,
		body: body})
	for k, w := range opened {
		ended := func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.ended
		}
		require.Eventually(t, ended, 10*time.Second, 10*time.Millisecond)
		assert.Equal(t, k == configMaps, len(w.changes()) > 0, "%s: %v", k, w.changes())
	}
	assert.InDelta(t, 4, time.Since(begun).Seconds(), 0.9)
}

func futureVersions(t *testing.T, s *server) {
	from := s.event(http.MethodPost, "future", 0) + 3
	w := s.opened(t, events, url.Values{"resourceVersion": {strconv.FormatInt(from, 10)}})
	var expected []string
	for i := range 8 {
		if version := s.event(http.MethodPut, "future", i+1); version > from {
			expected = append(expected, "MODIFIED "+strconv.FormatInt(version, 10))
		}
	}
	assert.NotEmpty(t, expected)
	time.Sleep(quietTime)
	w.settle()
	assert.Equal(t, expected, w.changes())
}

// almostCompacted watches from the version before the compacted one: its changes are there, but not
// what was before them.
func almostCompacted(t *testing.T, s *server) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		from, next := int64(0), int64(0)
		for i := 0; next != from+1; i++ { // Others may write between the two.
			name := strings.ToLower(method) + strconv.Itoa(i)
			if method == http.MethodPut {
				s.event(http.MethodPost, name, 1)
			}
			from = s.event(http.MethodPost, "before-"+name, 1)
			next = s.event(method, name, 2)
		}
		s.compact(next)
		w := s.opened(t, events, url.Values{"resourceVersion": {strconv.FormatInt(from, 10)}})
		expected := []string{"ADDED " + strconv.FormatInt(next, 10)}
		if method == http.MethodPut {
			expected = []string{"ERROR"}
			assert.Contains(t, show(w.messages[0].object), `"code": 500`)
		}
		assert.Equal(t, expected, w.changes(), method)
	}
}

// discovery checks that what the simulated server serves is a part of what the real one does.
func discovery(t *testing.T, authentic, model *server) {
	const aggregated = asJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, request := range []call{
		{path: "/api", accept: aggregated + "," + asJSON}, {path: "/api", accept: asJSON},
		{path: "/apis", accept: aggregated + "," + asJSON}, {path: "/apis", accept: asJSON},
		{path: "/api/v1", accept: asJSON}, {path: "/apis/apps", accept: asJSON},
		{path: "/apis/apps/v1", accept: asJSON},
		{path: "/apis/batch/v1", accept: asJSON},
		{path: "/apis/coordination.k8s.io/v1", accept: asJSON},
	} {
		request.method = http.MethodGet
		whole, _ := authentic.ask(request)
		part, _ := model.ask(request)
		assert.NoError(t, isPart(part, whole), "%s %s", request.path, request.accept)
	}
	for _, s := range []*server{authentic, model} {
		discoveryAgain(t, s, aggregated+","+asJSON)
	}
}

// discoveryAgain checks that a client that has a document gets none.
func discoveryAgain(t *testing.T, s *server, accept string) {
	for _, path := range []string{"/api", "/apis"} {
		ask := func(etag string) (status int, header http.Header) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			require.NoError(t, err)
			request.Header.Set("Accept", accept)
			request.Header.Set("If-None-Match", etag)
			response, err := s.client.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			return response.StatusCode, response.Header
		}
		_, header := ask("")
		assert.Regexp(t, `^"[0-9A-F]{128}"$`, header.Get("ETag"), "%s %s", s.name, path)
		assert.Contains(t, strings.Join(header.Values("Vary"), ","), "Accept", "%s %s", s.name, path)
		status, _ := ask(header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, status, "%s %s", s.name, path)
	}
}

// isPart returns an error if a document has something that another does not. In lists, names decide
// what belongs together.
func isPart(part, whole any) error {
	switch part := part.(type) {
	case object:
		for name, field := range part {
			other, _ := whole.(object)
			if err := isPart(field, other[name]); err != nil && field != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	case []any:
		others, _ := whole.([]any)
		for _, item := range part {
			same := func(other any) bool { return nameOf(other) == nameOf(item) }
			i := slices.IndexFunc(others, same)
			if i < 0 {
				return fmt.Errorf("%v is missing", item)
			}
			if err := isPart(item, others[i]); err != nil {
				return fmt.Errorf("%s: %w", nameOf(item), err)
			}
		}
		return nil
	}
	if fmt.Sprint(part) != fmt.Sprint(whole) {
		return fmt.Errorf("%v instead of %v", part, whole)
	}
	return nil
}

func nameOf(item any) string {
	fields, ok := item.(object)
	if !ok {
		return fmt.Sprint(item)
	}
	if metadata, ok := fields["metadata"].(object); ok {
		fields = metadata
	}
	return fmt.Sprint(fields["name"], fields["resource"], fields["subresource"], fields["version"])
}

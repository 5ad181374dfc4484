// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// details checks on each of the servers what a random script cannot compare: what depends on time,
// or on which versions belong to other clients.
func details(t *testing.T, s *server) {
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
		harness.Eventually(t, w.hasEnded, "the end of the watch of %s", k)
		assert.Equal(t, k == configMaps, len(w.changes()) > 0, "%s: %v", k, w.changes())
	}
	// Without its timeout, a watch goes on for half an hour.
	took := time.Since(begun)
	assert.GreaterOrEqual(t, took, 4*time.Second)
	assert.Less(t, took, time.Minute)
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
	harness.Poll(longest, func() bool { return len(w.changes()) >= len(expected) })
	time.Sleep(quietTime)
	w.settle()
	assert.Equal(t, expected, w.changes())
}

// discovery checks that what the simulated server serves is a part of what the real one does.
func discovery(t *testing.T, authentic, model *server) {
	const aggregated = asJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, path := range []string{"/api", "/apis"} {
		request := call{method: http.MethodGet, path: path, accept: aggregated}
		whole, _ := authentic.ask(request)
		part, _ := model.ask(request)
		assert.NoError(t, isPart(part, whole), path)
		for _, s := range []*server{authentic, model} { // A client that has a document gets none.
			response := s.send(t.Context(), request)
			require.NoError(t, response.Body.Close())
			request.etag = response.Header.Get("ETag")
			assert.Regexp(t, `^"[0-9A-F]{128}"$`, request.etag, "%s %s", s.name, path)
			response = s.send(t.Context(), request)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, http.StatusNotModified, response.StatusCode, "%s %s", s.name, path)
			request.etag = ""
		}
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

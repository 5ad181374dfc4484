// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// server is one of the two that are compared, with what a script remembers of it.
type server struct {
	t      testing.TB
	name   string
	url    string
	client *http.Client
	// remove deletes events at one version, and compact forgets what was before a version.
	remove  func(namespace string, names []string) (version int64)
	compact func(version int64)
	// begun returns what reports whether the store has begun a watch that was opened in between. Until
	// then, a compaction can still make its version too old.
	begun func() func() bool

	versions  []int64           // of the script's writes
	current   map[string]string // the version of each object, by its path
	uids      map[string]string
	tokens    []token // to continue lists
	watches   []*watching
	compacted int64
}

// token continues a list.
type token struct{ path, token string }

// begin forgets an earlier script.
func (s *server) begin() {
	s.versions, s.tokens, s.watches, s.compacted = nil, nil, nil, 0
	s.current, s.uids = map[string]string{}, map[string]string{}
}

// remember notes what a write did, if it did something.
func (s *server) remember(path string, document object) {
	metadata, _ := document["metadata"].(object)
	version, _ := metadata["resourceVersion"].(string)
	parsed, err := strconv.ParseInt(version, 10, 64)
	if document["kind"] == "Status" || err != nil || s.current[path] == version {
		return
	}
	s.versions = append(s.versions, parsed)
	s.current[path] = version
	if uid := metadata["uid"].(string); s.uids[uid] == "" {
		s.uids[uid] = fmt.Sprintf("of write %d", len(s.versions))
	}
}

// fresh waits until a watch cache has seen all writes: how far it is behind is up to it.
func (s *server) fresh(k kind, path string) {
	if k != events {
		collection, _, _ := strings.Cut(path, k.resource)
		s.ask(call{method: http.MethodGet, path: collection + k.resource, accept: protobufType})
	}
}

func simulated(t testing.TB, options apiserver.Options) *server {
	model := apiserver.New(options)
	listening := httptest.NewServer(model)
	t.Cleanup(listening.Close)
	return &server{
		t: t, name: "the simulated server", url: listening.URL, client: listening.Client(),
		remove: func(namespace string, names []string) int64 {
			require.NoError(t, model.Delete(schema.GroupResource{Resource: "events"}, namespace,
				names...))
			return model.Version()
		},
		compact: func(int64) { model.Compact() },
		begun:   func() func() bool { return func() bool { return true } },
	}
}

func realServer(t testing.TB, cp *controlplane.ControlPlane) *server {
	config := cp.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	etcd := etcd{t, cp.EtcdEndpoint()}
	// As it starts, the API server may write an event about a Service.
	time.Sleep(startTime)
	first, end := encode("/registry/events/default/"), encode("/registry/events/default0")
	etcd.post("/v3/kv/deleterange", object{"key": first, "range_end": end})
	return &server{t: t, name: "the real server", url: config.Host, client: client,
		remove: etcd.remove, compact: etcd.compact, begun: etcd.begun}
}

// etcd is that of the real server. Events are deleted there, because the API server cannot delete
// several at one version.
type etcd struct {
	t   testing.TB
	url string
}

func (e etcd) post(path string, request any) (version int64) {
	body, err := json.Marshal(request)
	require.NoError(e.t, err)
	response, err := http.Post(e.url+path, "application/json", bytes.NewReader(body))
	require.NoError(e.t, err)
	defer response.Body.Close()
	require.Equal(e.t, http.StatusOK, response.StatusCode)
	var answer struct{ Header struct{ Revision string } }
	require.NoError(e.t, json.NewDecoder(response.Body).Decode(&answer))
	version, err = strconv.ParseInt(answer.Header.Revision, 10, 64)
	require.NoError(e.t, err)
	return version
}

func (e etcd) remove(namespace string, names []string) int64 {
	type operation map[string]map[string]string
	var deletions []operation
	for _, name := range names {
		key := encode("/registry/events/" + namespace + "/" + name)
		deletions = append(deletions, operation{"requestDeleteRange": {"key": key}})
	}
	return e.post("/v3/kv/txn", map[string]any{"success": deletions})
}

// encode returns a key as etcd's JSON has it.
func encode(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }

// compact waits until etcd has sent all events to all watches. It reads the object of an event again while
// it sends the event, so after a compaction, the API server would end a watch that is behind, with an error.
func (e etcd) compact(version int64) {
	harness.Poll(longest, func() bool {
		// An event is counted as pending before its watch no longer counts as slow, so this order misses none.
		return e.count("slow_watcher_total") == 0 && e.count("pending_events_total") == 0
	})
	e.post("/v3/kv/compaction", map[string]any{"revision": version, "physical": true})
}

// begun: etcd counts its watches.
func (e etcd) begun() func() bool {
	before := e.count("watcher_total")
	return func() bool { return e.count("watcher_total") > before }
}

func (e etcd) count(name string) float64 {
	metrics, err := promtext.Get(e.t.Context(), e.url+"/metrics")
	require.NoError(e.t, err)
	return metrics.Sum("etcd_debugging_mvcc_" + name)
}

// call is one request, the same for both servers but for the versions in it.
type call struct {
	method, path string
	query        url.Values
	accept       string
	body         object
	kind         string // of a body of the core group that is sent in protobuf; empty: in JSON
	etag         string // of the document that the client has
}

// clone returns a call whose query and metadata can be changed for one server.
func (c call) clone() call {
	query := url.Values{}
	maps.Copy(query, c.query)
	c.query, c.body = query, maps.Clone(c.body)
	if metadata, ok := c.body["metadata"].(object); ok {
		c.body["metadata"] = maps.Clone(metadata)
	}
	return c
}

// ask sends a request and returns the answer in a form that can be compared.
func (s *server) ask(c call) (answer object, document object) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	response := s.send(ctx, c)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	parsed := parse(response.Header.Get("Content-Type"), content)
	document, _ = parse(response.Header.Get("Content-Type"), content).(object)
	return object{
		"status": response.StatusCode, "type": response.Header.Get("Content-Type"),
		"retry": response.Header.Get("Retry-After"),
		"body":  parsed,
	}, document
}

func (s *server) send(ctx context.Context, c call) *http.Response {
	var body io.Reader
	if c.body != nil {
		encoded, err := json.Marshal(c.body)
		require.NoError(s.t, err)
		if c.kind != "" {
			encoded = jsonToProtobuf(encoded, c.kind)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, c.method, s.url+c.path+"?"+c.query.Encode(),
		body)
	require.NoError(s.t, err)
	request.Header.Set("Accept", c.accept)
	if c.etag != "" {
		request.Header.Set("If-None-Match", c.etag)
	}
	request.Header.Set("Content-Type", asJSON)
	if c.kind != "" {
		request.Header.Set("Content-Type", protobufType)
	}
	response, err := s.client.Do(request)
	require.NoError(s.t, err)
	return response
}

// watching is an open watch with the messages so far.
type watching struct {
	mu       sync.Mutex
	messages []message
	ended    bool
	newest   time.Time
}

type message struct {
	change string
	object any
}

func (m message) isPlainBookmark() bool {
	metadata, _ := m.object.(object)["metadata"].(object)
	return m.change == "BOOKMARK" && metadata["annotations"] == nil
}

// watch opens a watch and reads it until the context ends. It returns nil if the server refuses it.
func (s *server) watch(ctx context.Context, c call) (head object, w *watching) {
	begun := s.begun()
	response := s.send(ctx, c)
	contentType := response.Header.Get("Content-Type")
	head = object{"status": response.StatusCode, "type": contentType}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		head["body"] = s.normalize(parse(contentType, content))
		return head, nil
	}
	w = &watching{newest: time.Now()}
	go w.read(response.Body)
	if strings.HasSuffix(c.path, "/"+events.resource) { // Other kinds have a watch cache.
		// If a watch that ended before leaves etcd only now, the count does not rise, and this waits for the longest time.
		harness.Poll(longest, func() bool { return w.hasEnded() || begun() })
	}
	return head, w
}

func (w *watching) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w *watching) read(body io.ReadCloser) {
	defer body.Close()
	for {
		change, object, err := nextMessage(body)
		w.mu.Lock()
		w.newest = time.Now()
		if err != nil {
			w.ended = true
			w.mu.Unlock()
			return
		}
		w.messages = append(w.messages, message{change, object})
		w.mu.Unlock()
	}
}

// settle waits until no message has come for a moment.
func (w *watching) settle() {
	for {
		w.mu.Lock()
		quiet := time.Since(w.newest)
		w.mu.Unlock()
		if quiet > quietTime {
			return
		}
		time.Sleep(quietTime - quiet + time.Millisecond)
	}
}

const (
	quietTime = 130 * time.Millisecond
	startTime = 2 * time.Second
	// longest is how long a test waits for what comes by itself. On a busy machine, it takes seconds.
	longest = 10 * time.Second
)

// seen returns the messages of the watches in a form that can be compared.
func (s *server) seen() (all []any) {
	for _, w := range s.watches {
		w.settle()
		w.mu.Lock()
		var messages []any
		for _, m := range w.messages {
			if m.isPlainBookmark() {
				continue // When they come is compared by a test of its own.
			}
			messages = append(messages, fmt.Sprintf("%s %s", m.change, show(s.normalize(m.object))))
		}
		all = append(all, map[string]any{"messages": messages, "ended": w.ended})
		w.mu.Unlock()
	}
	return all
}

func show(value any) string {
	shown, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(shown)
}

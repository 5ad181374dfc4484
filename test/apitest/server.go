// SPDX-License-Identifier: Apache-2.0

// Package apitest lets tests script the simulated API server: what it refuses, when it is slow, and
// which requests it has got. Tests read the answers of test/apiserver, which is
// compared with the real server. So no test builds on an answer that only a fake gives.
package apitest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

var (
	events = schema.GroupResource{Resource: "events"}
	nodes  = schema.GroupResource{Resource: "nodes"}
)

// Server is an API server whose events are in an etcd of their own, as in many large clusters. So
// versions are those of events, and a restore of events leaves the rest of the cluster as it is. Its
// methods may be called concurrently.
type Server struct {
	URL string
	// Dial connects to the server, if it has no address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Objects has the rest of the cluster.
	Objects *Objects

	store *apiserver.Server // of events

	mu       sync.Mutex
	backups  map[string]*apiserver.Backup // by version
	written  int
	refuse   func(*http.Request) int
	delay    time.Duration
	requests []string

	refuseCluster    []int // the statuses of the next requests for the namespace kube-system
	refuseConfigMaps func(verb string) int
}

// New starts a server that stops at the end of the test.
func New(t testing.TB) *Server {
	s := NewInMemory(t)
	server := serve(t, s)
	s.URL = server.URL
	return s
}

// serve answers requests over HTTP until the end of the test.
func serve(t testing.TB, handler http.Handler) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections() // of watches
		server.Close()
	})
	return server
}

// NewInMemory returns a server without a network, for tests in a bubble of testing/synctest.
// Clients use it as their transport.
func NewInMemory(testing.TB) *Server {
	s := &Server{URL: "http://in-memory", backups: map[string]*apiserver.Backup{}}
	s.Objects = newObjects(s.decide)
	s.begin(apiserver.Options{})
	return s
}

func (s *Server) begin(options apiserver.Options) {
	options.KeepCreationTimes = true
	s.store = apiserver.New(options)
}

// WithBookmarks lets watches of events have a bookmark every minute. Callers must not have put any
// event yet.
func (s *Server) WithBookmarks() { s.begin(apiserver.Options{EventBookmarks: true}) }

// Put creates or changes an event and returns the stored one. Every call is a write, even if it
// changes nothing else: the server notes each in managedFields.
func (s *Server) Put(ev *corev1.Event) *corev1.Event {
	changed := ev.DeepCopy()
	s.mu.Lock()
	s.written++
	changed.ManagedFields = append(changed.ManagedFields,
		metav1.ManagedFieldsEntry{Manager: "test " + strconv.Itoa(s.written)})
	s.mu.Unlock()
	return put(s.store, events, changed).(*corev1.Event)
}

// Delete deletes an event, as its TTL does.
func (s *Server) Delete(ev *corev1.Event) { remove(s.store, events, ev.Namespace, ev.Name) }

// Bookmark lets another kind change, and waits until all watches have a bookmark of that. It needs
// WithBookmarks.
func (s *Server) Bookmark() {
	put(s.store, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Version()}})
	time.Sleep(2*time.Minute + time.Second)
}

// Compact drops the history so far. A watch from an older resource version, and a list at one, gets
// 410 Gone.
func (s *Server) Compact() { s.store.Compact() }

// Version returns the resource version of the events. Restore can go back to it.
func (s *Server) Version() string {
	backup := s.store.Backup()
	version := strconv.FormatInt(backup.Version(), 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backups[version] = backup
	return version
}

// Restore lets the events go back to a resource version that Version has returned, as a restore of
// etcd from a backup does. Connections stay open.
func (s *Server) Restore(version string) {
	s.mu.Lock()
	backup := s.backups[version]
	s.mu.Unlock()
	s.store.RestoreUnnoticed(backup)
}

// Cut breaks the connection of every watch.
func (s *Server) Cut() { s.store.BreakConnections("") }

// Refuse makes a request for events fail with the status that the function returns. With 0, it
// succeeds; with -1, it never gets an answer.
func (s *Server) Refuse(status func(*http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = status
}

// RetryAfter makes each answer with status 429 ask for a pause before the next request. It is the
// answer of a server that limits requests: text, and not a Status.
func (s *Server) RetryAfter(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

// Requests returns the requests for events so far, as "list", "exact" (a list at an exact version),
// "more" (the next page of a list), "watch", and "version" (a list of a single name).
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers requests for events, and those for all else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/api/v1/events", strings.HasPrefix(path, "/api/v1/namespaces/") && strings.HasSuffix(path, "/events"):
		s.serveEvents(w, r)
	case path == "/api/v1/namespaces/"+metav1.NamespaceSystem, strings.Contains(path, "/configmaps"):
		s.Objects.cluster.ServeHTTP(w, r) // These are no lookups.
	default:
		s.Objects.ServeHTTP(w, r)
	}
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	kind := requestKind(r)
	s.mu.Lock()
	s.requests = append(s.requests, kind)
	refuse, delay := s.refuse, s.delay
	s.mu.Unlock()
	status := 0
	if refuse != nil {
		status = refuse(r)
	}
	switch {
	case status < 0:
		<-r.Context().Done()
	case status == http.StatusTooManyRequests && delay > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(delay.Seconds())))
		http.Error(w, "Too many requests, please try again later.", status)
	case status > 0:
		writeStatus(w, status, "")
	default:
		s.store.ServeHTTP(w, r)
	}
}

func requestKind(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case strings.HasPrefix(query.Get("fieldSelector"), "metadata.name="):
		return "version"
	case query.Get("continue") != "":
		return "more"
	case query.Get("resourceVersionMatch") == "Exact":
		return "exact"
	}
	return "list"
}

// SPDX-License-Identifier: Apache-2.0

// Package apitest simulates the events API of an API server over HTTP. It has the faults that tests
// cannot cause on a real one: a 410 at a chosen moment, a connection that becomes idle, a
// permission that is removed between two requests.
package apitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

// Server holds events and the history of their changes. Its methods may be called concurrently.
type Server struct {
	URL string
	// Objects answers requests for anything else; nil: nothing else exists.
	Objects *Objects

	mu        sync.Mutex
	changed   *sync.Cond // a change, a cut, or the end
	version   int        // the resource version of the newest change
	compacted int        // changes up to here are forgotten
	events    map[string]*corev1.Event
	history   []change
	cuts      int // watches that began before the last cut end
	closed    bool
	refuse    func(*http.Request) int
	requests  []string
	noStream  bool
	noEnd     bool
	// base is what existed when the history was compacted.
	base map[string]*corev1.Event

	cluster          *apiserver.Server // has the namespace kube-system and ConfigMaps
	refuseCluster    []int             // the statuses of the next requests for that namespace
	refuseConfigMaps func(verb string) int
}

type change struct {
	version int
	kind    string // ADDED, MODIFIED, DELETED, BOOKMARK
	event   *corev1.Event
}

// New starts a server that stops at the end of the test.
func New(t testing.TB) *Server {
	s := NewInMemory(t)
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		s.locked(func() { s.closed = true })
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// NewInMemory returns a server without a network, for tests in a bubble of testing/synctest.
// Clients use it as their transport.
func NewInMemory(t testing.TB) *Server {
	s := &Server{URL: "http://in-memory", events: map[string]*corev1.Event{}, version: 1}
	s.cluster = apiserver.New(apiserver.Options{ClusterUID: "cluster-uid", Decide: s.decide})
	s.changed = sync.NewCond(&s.mu)
	t.Cleanup(func() { s.locked(func() { s.closed = true }) })
	return s
}

// locked calls do under the lock and wakes every watch.
func (s *Server) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.changed.Broadcast()
}

// Put creates or changes an event and returns the stored one. An event without a UID gets one, and
// keeps it.
func (s *Server) Put(ev *corev1.Event) *corev1.Event {
	stored := ev.DeepCopy()
	s.locked(func() {
		s.version++
		kind, uid := "ADDED", types.UID("uid-"+strconv.Itoa(s.version))
		if existing, ok := s.events[name(stored)]; ok {
			kind, uid = "MODIFIED", existing.UID
		}
		if stored.UID == "" {
			stored.UID = uid
		}
		stored.ResourceVersion = strconv.Itoa(s.version)
		s.events[name(stored)] = stored
		s.history = append(s.history, change{s.version, kind, stored})
	})
	return stored
}

// Delete deletes an event, as its TTL does.
func (s *Server) Delete(ev *corev1.Event) {
	s.locked(func() {
		s.version++
		gone := ev.DeepCopy()
		gone.ResourceVersion = strconv.Itoa(s.version)
		delete(s.events, name(ev))
		s.history = append(s.history, change{s.version, "DELETED", gone})
	})
}

// Bookmark sends a bookmark to all watches, as if other resources had changed.
func (s *Server) Bookmark() {
	s.locked(func() {
		s.version++
		sent := &corev1.Event{}
		sent.ResourceVersion = strconv.Itoa(s.version)
		s.history = append(s.history, change{s.version, "BOOKMARK", sent})
	})
}

// Compact drops the history so far. A watch from an older resource version, and a list at one, gets
// 410 Gone.
func (s *Server) Compact() {
	s.locked(func() {
		s.compacted = s.version
		s.history = nil
		s.base = maps.Clone(s.events)
	})
}

// Version returns the resource version of the store.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.version)
}

// Restore resets the store to a resource version that it still has, as a restore of etcd from a
// backup does. Connections stay open.
func (s *Server) Restore(version string) {
	s.locked(func() {
		at, _ := strconv.Atoi(version)
		s.events = s.stateLocked(at)
		s.version = at
		s.history = slices.DeleteFunc(s.history, func(c change) bool { return c.version > at })
	})
}

// stateLocked returns what existed at a resource version.
func (s *Server) stateLocked(version int) map[string]*corev1.Event {
	state := maps.Clone(s.base)
	if state == nil {
		state = map[string]*corev1.Event{}
	}
	for _, c := range s.history {
		switch {
		case c.version > version, c.kind == "BOOKMARK":
		case c.kind == "DELETED":
			delete(state, name(c.event))
		default:
			state[name(c.event)] = c.event
		}
	}
	return state
}

// Cut breaks the connection of every watch.
func (s *Server) Cut() { s.locked(func() { s.cuts++ }) }

// Refuse makes a request fail with the status that the function returns. With 0, it succeeds; with
// -1, it never gets an answer.
func (s *Server) Refuse(status func(*http.Request) int) { s.locked(func() { s.refuse = status }) }

// WithoutStreaming makes the server reject streamed lists, as old servers do.
func (s *Server) WithoutStreaming() { s.locked(func() { s.noStream = true }) }

// WithoutEndBookmark makes the server accept streamed lists and never end them.
func (s *Server) WithoutEndBookmark() { s.locked(func() { s.noEnd = true }) }

// Requests returns the requests for events so far, as "list", "exact" (a list at an exact version),
// "stream" (a streamed list), "watch", and "version" (a list of a single name).
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func name(ev *corev1.Event) string { return ev.Namespace + "/" + ev.Name }

// ServeHTTP answers requests for events, for ConfigMaps and for the namespace kube-system.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, ok := eventsPath(r.URL.Path)
	if !ok {
		s.serveOther(w, r)
		return
	}
	query := r.URL.Query()
	kind := requestKind(r)
	s.mu.Lock()
	s.requests = append(s.requests, kind)
	refuse, noStream := s.refuse, s.noStream
	s.mu.Unlock()

	if status := refusal(refuse, r); status < 0 {
		<-r.Context().Done()
		return
	} else if status > 0 {
		writeStatus(w, status)
		return
	}
	switch {
	case kind == "list" || kind == "exact" || kind == "version":
		s.list(w, selectionOf(namespace, query), query)
	case kind == "stream" && noStream:
		writeStatus(w, http.StatusUnprocessableEntity)
	default:
		s.watch(w, r, selectionOf(namespace, query), kind == "stream", query.Get("resourceVersion"))
	}
}

func requestKind(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		return "stream"
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case strings.HasPrefix(query.Get("fieldSelector"), "metadata.name="):
		return "version"
	case query.Get("resourceVersionMatch") == "Exact" || strings.HasPrefix(query.Get("continue"), "exact "):
		return "exact"
	default:
		return "list"
	}
}

func refusal(refuse func(*http.Request) int, r *http.Request) int {
	if refuse == nil {
		return 0
	}
	return refuse(r)
}

func eventsPath(path string) (namespace string, ok bool) {
	if path == "/api/v1/events" {
		return "", true
	}
	rest, ok := strings.CutPrefix(path, "/api/v1/namespaces/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "/events")
}

// selection is what a request selects.
type selection struct {
	namespace string // empty: all
	name      string // empty: all
	eventType string // empty: all
}

func selectionOf(namespace string, query url.Values) selection {
	selected := selection{namespace: namespace}
	for term := range strings.SplitSeq(query.Get("fieldSelector"), ",") {
		switch field, value, _ := strings.Cut(term, "="); field {
		case "metadata.name":
			selected.name = value
		case "type":
			selected.eventType = value
		}
	}
	return selected
}

func (s selection) has(ev *corev1.Event) bool {
	return (s.namespace == "" || ev.Namespace == s.namespace) && (s.name == "" || ev.Name == s.name) &&
		(s.eventType == "" || ev.Type == s.eventType)
}

func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.URL.Path, "/api/v1/namespaces/")
	switch {
	case name == metav1.NamespaceSystem || strings.Contains(name, "/configmaps"):
		s.cluster.ServeHTTP(w, r)
	case s.Objects != nil:
		s.Objects.ServeHTTP(w, r)
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

// list writes one page, in the order of names. The continue token is the last name of the previous
// page. The token of a list at an exact version also has the version.
func (s *Server) list(w http.ResponseWriter, selected selection, query url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, exact := query.Get("continue"), query.Get("resourceVersion")
	if rest, ok := strings.CutPrefix(after, "exact "); ok {
		exact, after, _ = strings.Cut(rest, " ")
	}
	page := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	page.ResourceVersion = strconv.Itoa(s.version)
	events, token := s.events, ""
	if exact != "" {
		at, err := strconv.Atoi(exact)
		switch {
		case err != nil:
			writeStatus(w, http.StatusBadRequest)
			return
		case at < s.compacted:
			writeStatus(w, http.StatusGone)
			return
		case at > s.version:
			writeStatus(w, http.StatusGatewayTimeout)
			return
		}
		page.ResourceVersion = exact
		events, token = s.stateLocked(at), "exact "+exact+" "
	}
	most, _ := strconv.Atoi(query.Get("limit"))
	for _, ev := range sorted(events, selected) {
		if name(ev) <= after {
			continue
		}
		if most > 0 && len(page.Items) == most {
			page.Continue = token + name(&page.Items[most-1])
			break
		}
		page.Items = append(page.Items, *ev)
	}
	writeJSON(w, page)
}

func sorted(events map[string]*corev1.Event, selected selection) []*corev1.Event {
	var found []*corev1.Event
	for _, ev := range events {
		if selected.has(ev) {
			found = append(found, ev)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Event) int { return strings.Compare(name(a), name(b)) })
	return found
}

// watch streams changes after a resource version, or everything that exists and then changes, until
// it is cut. It writes without the lock, because a client that does not read must not stop the
// server.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, selected selection, initial bool, from string) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	at, _ := strconv.Atoi(from)
	s.mu.Lock()
	cuts, expired := s.cuts, !initial && at < s.compacted
	var frames []frame
	if initial {
		at, frames = s.version, s.initialLocked(selected)
	}
	s.mu.Unlock()
	if expired {
		_ = encoder.Encode(frame{"ERROR", status(http.StatusGone)})
		return
	}
	stop := s.wakeAtEnd(r)
	defer stop()
	for goesOn := true; goesOn; {
		for _, f := range frames {
			_ = encoder.Encode(f)
		}
		w.(http.Flusher).Flush()
		frames, at, goesOn = s.next(r, selected, at, cuts)
	}
}

// next waits for changes. It returns false when the watch is over.
func (s *Server) next(r *http.Request, selected selection, after, cuts int) (frames []frame, at int, goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.cuts == cuts && !s.closed && r.Context().Err() == nil {
		if frames, at = s.changesLocked(selected, after); at > after {
			return frames, at, true
		}
		s.changed.Wait()
	}
	return nil, after, false
}

// wakeAtEnd wakes the watches when the client disconnects.
func (s *Server) wakeAtEnd(r *http.Request) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
			s.locked(func() {})
		case <-done:
		}
	}()
	return func() { close(done) }
}

type frame struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

func (s *Server) initialLocked(selected selection) (frames []frame) {
	for _, ev := range sorted(s.events, selected) {
		frames = append(frames, frame{"ADDED", typed(ev)})
	}
	if s.noEnd {
		return frames
	}
	bookmark := &corev1.Event{}
	bookmark.ResourceVersion = strconv.Itoa(s.version)
	bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return append(frames, frame{"BOOKMARK", typed(bookmark)})
}

func (s *Server) changesLocked(selected selection, after int) (frames []frame, at int) {
	at = after
	for _, c := range s.history {
		if c.version <= after {
			continue
		}
		at = c.version
		if c.kind == "BOOKMARK" || selected.has(c.event) {
			frames = append(frames, frame{c.kind, typed(c.event)})
		}
	}
	return frames, at
}

func typed(ev *corev1.Event) *corev1.Event {
	out := ev.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	return out
}

func writeJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, document)
}

func writeBody(w http.ResponseWriter, document any) { _ = json.NewEncoder(w).Encode(document) }

func status(code int) metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
		http.StatusForbidden:           metav1.StatusReasonForbidden,
		http.StatusGone:                metav1.StatusReasonExpired,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
		http.StatusBadRequest:          metav1.StatusReasonBadRequest,
		http.StatusNotFound:            metav1.StatusReasonNotFound,
		http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	answer := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: http.StatusText(code),
	}
	if code == http.StatusGatewayTimeout {
		answer.Reason, answer.Message = metav1.StatusReasonTimeout, "Timeout: Too large resource version: 9, current: 1"
		answer.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
		}}
	}
	return answer
}

func writeStatus(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code))
}

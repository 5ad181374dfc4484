// SPDX-License-Identifier: Apache-2.0

// Package apitest plays the events API of an API server at its HTTP edge, for the faults that cannot be provoked on a real
// one: a 410 at a chosen moment, a connection that falls silent, a permission that is taken away between two requests.
package apitest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Server holds events and the history of their changes. Its methods may be called concurrently.
type Server struct {
	URL string

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
}

type change struct {
	version int
	kind    string // ADDED, MODIFIED, DELETED
	event   *corev1.Event
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{events: map[string]*corev1.Event{}, version: 1}
	s.changed = sync.NewCond(&s.mu)
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		s.locked(func() { s.closed = true })
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// locked runs do under the lock and wakes every watch.
func (s *Server) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.changed.Broadcast()
}

// Put creates or changes an event and returns what was stored. One without a UID gets one, and keeps it.
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

// Compact forgets all changes so far: a watch from an older resource version is answered by 410 Gone.
func (s *Server) Compact() {
	s.locked(func() {
		s.compacted = s.version
		s.history = nil
	})
}

// Cut breaks the connection of every watch.
func (s *Server) Cut() { s.locked(func() { s.cuts++ }) }

// Refuse lets a request fail with the status that the function returns; 0 lets it pass, -1 never answers it.
func (s *Server) Refuse(status func(*http.Request) int) { s.locked(func() { s.refuse = status }) }

// WithoutStreaming makes the server refuse to stream listings, as old servers do.
func (s *Server) WithoutStreaming() { s.locked(func() { s.noStream = true }) }

// Requests are the requests for events so far, as "list", "stream" (a streamed listing) and "watch".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func name(ev *corev1.Event) string { return ev.Namespace + "/" + ev.Name }

// ServeHTTP answers requests for events and for the namespace kube-system; nothing else exists.
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
	case kind == "list":
		s.list(w, namespace, query.Get("continue"), query.Get("limit"))
	case kind == "stream" && noStream:
		writeStatus(w, http.StatusUnprocessableEntity)
	default:
		s.watch(w, r, namespace, kind == "stream", query.Get("resourceVersion"))
	}
}

func requestKind(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		return "stream"
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
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

func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1/namespaces/kube-system" {
		writeJSON(w, corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster-uid"},
		})
		return
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// list answers with one page, in the order of names. The continue token is the name before the page.
func (s *Server) list(w http.ResponseWriter, namespace, after, limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	page.ResourceVersion = strconv.Itoa(s.version)
	most, _ := strconv.Atoi(limit)
	for _, ev := range s.sortedLocked(namespace) {
		if name(ev) <= after {
			continue
		}
		if most > 0 && len(page.Items) == most {
			page.Continue = name(&page.Items[most-1])
			break
		}
		page.Items = append(page.Items, *ev)
	}
	writeJSON(w, page)
}

func (s *Server) sortedLocked(namespace string) []*corev1.Event {
	var found []*corev1.Event
	for _, ev := range s.events {
		if namespace == "" || ev.Namespace == namespace {
			found = append(found, ev)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Event) int { return strings.Compare(name(a), name(b)) })
	return found
}

// watch streams changes after a resource version, or everything that exists and then changes, until it is cut. It writes
// without the lock: a client that does not read must not stop the server.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, namespace string, initial bool, from string) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	at, _ := strconv.Atoi(from)
	s.mu.Lock()
	cuts, expired := s.cuts, !initial && at < s.compacted
	var frames []frame
	if initial {
		at, frames = s.version, s.initialLocked(namespace)
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
		frames, at, goesOn = s.next(r, namespace, at, cuts)
	}
}

// next waits for changes, and returns false when the watch is over.
func (s *Server) next(r *http.Request, namespace string, after, cuts int) (frames []frame, at int, goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.cuts == cuts && !s.closed && r.Context().Err() == nil {
		if frames, at = s.changesLocked(namespace, after); at > after {
			return frames, at, true
		}
		s.changed.Wait()
	}
	return nil, after, false
}

// wakeAtEnd wakes the watches when the client goes away.
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

func (s *Server) initialLocked(namespace string) (frames []frame) {
	for _, ev := range s.sortedLocked(namespace) {
		frames = append(frames, frame{"ADDED", typed(ev)})
	}
	bookmark := &corev1.Event{}
	bookmark.ResourceVersion = strconv.Itoa(s.version)
	bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return append(frames, frame{"BOOKMARK", typed(bookmark)})
}

func (s *Server) changesLocked(namespace string, after int) (frames []frame, at int) {
	at = after
	for _, c := range s.history {
		if c.version <= after {
			continue
		}
		at = c.version
		if namespace == "" || c.event.Namespace == namespace {
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
	_ = json.NewEncoder(w).Encode(document)
}

func status(code int) metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
		http.StatusForbidden:           metav1.StatusReasonForbidden,
		http.StatusGone:                metav1.StatusReasonExpired,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: http.StatusText(code),
	}
}

func writeStatus(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code))
}

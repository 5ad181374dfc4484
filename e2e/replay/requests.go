// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"net/http"
	"strings"
	"sync"
)

// Kind is what a request asks for.
type Kind string

const (
	EventsList      Kind = "events list"
	EventsStream    Kind = "events streamed list" // a watch that begins with a listing
	EventsWatch     Kind = "events watch"
	OwnerGet        Kind = "owner get"
	OwnerList       Kind = "owner list" // a page
	Discovery       Kind = "discovery"
	ClusterIdentity Kind = "namespace kube-system"
	Election        Kind = "election" // a Lease, or a ConfigMap with the progress of the leader
	Other           Kind = "other"
)

// requests counts what was asked for, and what was sent.
type requests struct {
	mu      sync.Mutex
	counts  map[Kind]int
	objects int
}

func (r *requests) count(kind Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[Kind]int{}
	}
	r.counts[kind]++
}

// send counts objects that an answer about owners has.
func (r *requests) send(objects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects += objects
}

// Objects is how many objects the answers about owners had.
func (s *Server) Objects() int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return s.requests.objects
}

// Requests are how many requests there were of each kind.
func (s *Server) Requests() map[Kind]int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	counts := make(map[Kind]int, len(s.requests.counts))
	for kind, n := range s.requests.counts {
		counts[kind] = n
	}
	return counts
}

// target is what a request is for.
type target struct {
	kind                      Kind
	resource, namespace, name string
}

// parse returns what the path requests: /api/v1/namespaces/NAMESPACE/RESOURCE/NAME or a part of it,
// with /apis/GROUP/VERSION for groups.
func parse(r *http.Request) target {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	root := 2
	if segments[0] == "apis" {
		root = 3
	}
	if segments[0] != "api" && segments[0] != "apis" {
		return target{kind: Other}
	}
	if len(segments) <= root {
		return target{kind: Discovery}
	}
	rest := segments[root:]
	t := target{resource: rest[0]}
	if rest[0] == "namespaces" && len(rest) > 2 {
		t.namespace, t.resource, rest = rest[1], rest[2], rest[2:]
	}
	if len(rest) > 1 {
		t.name = rest[1]
	}
	t.kind = kindOf(t, r)
	return t
}

func kindOf(t target, r *http.Request) Kind {
	query := r.URL.Query()
	watching := query.Get("watch") == "true" || query.Get("watch") == "1"
	switch {
	case t.resource == "leases" || t.resource == "configmaps":
		return Election
	case r.Method != http.MethodGet:
		return Other
	case t.resource == "events" && t.name == "":
		return kindOfEvents(watching, query.Get("sendInitialEvents") == "true")
	case t.resource == "namespaces" && t.name == "kube-system":
		return ClusterIdentity
	case t.name != "":
		return OwnerGet
	case watching:
		return Other
	default:
		return OwnerList
	}
}

func kindOfEvents(watching, initial bool) Kind {
	switch {
	case watching && initial:
		return EventsStream
	case watching:
		return EventsWatch
	default:
		return EventsList
	}
}

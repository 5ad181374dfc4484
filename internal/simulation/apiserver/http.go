// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// call is a request that is served.
type call struct {
	Request
	version string // of the API
	answer  Answer
	as      accepted
	path    []string // of a discovery document

	http  *http.Request
	body  []byte
	w     http.ResponseWriter
	table *table // nil: discovery, or not served
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := parse(r)
	c.w = w
	// Until the body is read, it is not noticed that the client leaves.
	c.body, _ = io.ReadAll(r.Body)
	s.decide(c)
	ctx := r.Context()
	if c.answer.Delay > 0 && !sleep(ctx, c.answer.Delay) {
		return
	}
	if c.answer.Hang {
		<-ctx.Done()
	}
	if c.answer.Hang || c.answer.LoseAnswer && c.Verb == "watch" {
		panic(http.ErrAbortHandler)
	}
	if c.answer.LoseAnswer {
		c.w = discard{}
		defer panic(http.ErrAbortHandler)
	}
	if err := s.serve(c); err != nil {
		c.fail(err)
	}
}

// decide counts the request and asks what becomes of it.
func (s *Server) decide(c *call) {
	name, _ := c.http.Context().Value(clientKey{}).(string)
	c.Client = name
	s.mu.Lock()
	same := Request{Client: c.Client, Verb: c.Verb, Resource: c.Resource}
	c.Number = s.counts[same]
	s.counts[same]++
	s.mu.Unlock()
	if s.options.Decide != nil {
		c.answer = s.options.Decide(c.Request)
	}
}

// discard is where an answer goes that is lost.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// parse finds out what a request is about. A path that the API does not have is left to discovery.
func parse(r *http.Request) *call {
	c := &call{http: r, path: strings.Split(strings.Trim(r.URL.Path, "/"), "/")}
	c.Verb = "discover"
	rest := c.path
	switch {
	case len(rest) > 2 && rest[0] == "api":
		c.version, rest = rest[1], rest[2:]
	case len(rest) > 3 && rest[0] == "apis":
		c.Resource.Group, c.version, rest = rest[1], rest[2], rest[3:]
	default:
		return c
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		c.Namespace, rest = rest[1], rest[2:]
	}
	c.Resource.Resource = rest[0]
	if len(rest) > 1 {
		c.Name = strings.Join(rest[1:], "/")
	}
	c.Verb = verb(r, c.Name)
	c.Streaming = c.Verb == "watch" && r.URL.Query().Get("sendInitialEvents") == "true"
	return c
}

func verb(r *http.Request, name string) string {
	watches := !slices.Contains([]string{"", "0", "false"}, r.URL.Query().Get("watch"))
	switch {
	case r.Method == http.MethodGet && name == "" && watches:
		return "watch"
	case r.Method == http.MethodGet && name == "":
		return "list"
	case r.Method == http.MethodGet:
		return "get"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	default:
		return strings.ToLower(r.Method)
	}
}

func (s *Server) serve(c *call) error {
	if c.answer.Status != 0 {
		seconds := int((c.answer.RetryAfter + time.Second - 1) / time.Second)
		return apierrors.NewGenericServerResponse(c.answer.Status, c.Verb, c.Resource, c.Name,
			"simulated", seconds, false)
	}
	if c.Verb == "discover" {
		return s.discover(c)
	}
	if err := s.find(c); err != nil {
		return err
	}
	var ok bool
	if c.as, ok = accept(c.http.Header.Get("Accept"), true); !ok {
		return errNotAcceptable
	}
	switch c.Verb {
	case "get":
		return s.get(c)
	case "list":
		return s.list(c)
	case "watch":
		return s.watch(c)
	case "create", "update":
		return s.write(c)
	default:
		return apierrors.NewMethodNotSupported(c.Resource, c.Verb)
	}
}

func (s *Server) find(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findTable(c)
}

// findTable finds the table of the requested kind. Each time that the lock is taken, it must be
// found again: a backup may have been restored.
func (s *Server) findTable(c *call) error {
	t := s.tables[c.Resource]
	whole := c.Verb == "list" || c.Verb == "watch"
	if t == nil || !slices.Contains(t.Versions, c.version) || strings.Contains(c.Name, "/") ||
		t.Namespaced && c.Namespace == "" && !whole || !t.Namespaced && c.Namespace != "" {
		return errNoSuchPath
	}
	c.table = t
	return nil
}

// gvk is the kind of the requested objects.
func (c *call) gvk() schema.GroupVersionKind {
	gv := schema.GroupVersion{Group: c.Resource.Group, Version: c.version}
	return gv.WithKind(c.table.Kind.Kind)
}

var (
	errNoSuchPath    = httpError(http.StatusNotFound)
	errNotAcceptable = httpError(http.StatusNotAcceptable)
)

func httpError(code int) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}

// fail answers with an error. There is no Status for the path of a group that is not one of
// Kubernetes' own.
func (c *call) fail(err error) {
	known := c.path[0] == "api" || len(c.path) > 1 && c.path[0] == "apis" && isBuiltIn(c.path[1])
	if errors.Is(err, errNoSuchPath) && !known {
		http.NotFound(c.w, c.http)
		return
	}
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	as, _ := accept(c.http.Header.Get("Accept"), false)
	write(c.w, int(status.Code), as.format, statusKind, body(status, as.format))
}

func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		code := int32(http.StatusInternalServerError)
		return &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: err.Error()}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{}
	return &status
}

// await waits until the watch cache of the call's table has reached a version, for three seconds at
// most.
func (s *Server) await(c *call, version int64) error {
	deadline := time.Now().Add(cachePatience)
	for {
		s.mu.Lock()
		reached := s.cacheVersion(c.table)
		s.mu.Unlock()
		if reached >= version {
			return nil
		}
		if !c.table.cached || !time.Now().Before(deadline) {
			return tooLarge(version, reached, c.table.cached || c.Verb == "watch")
		}
		if !sleep(c.http.Context(), cachePoll) {
			return c.http.Context().Err()
		}
	}
}

const (
	cachePatience = 3 * time.Second
	cachePoll     = 50 * time.Millisecond
)

func tooLarge(asked, reached int64, cached bool) error {
	retry := 0
	if cached {
		retry = 1
	}
	message := fmt.Sprintf("Too large resource version: %d, current: %d", asked, reached)
	err := apierrors.NewTimeoutError(message, retry)
	cause := metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}
	cause.Message = "Too large resource version"
	err.ErrStatus.Details.Causes = []metav1.StatusCause{cause}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// call is a request that is served.
type call struct {
	Request
	version       string // of the API
	mediaType, as string // the encoding and the transformation that the client prefers
	path          string
	answer        Answer

	http  *http.Request
	body  []byte
	w     http.ResponseWriter
	table *table

	options *internalversion.ListOptions
	prefix  string // of the keys that a list or watch is about
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ctx := parse(w, r), r.Context()
	// Until the body is read, it is not noticed that the client leaves.
	c.body, _ = io.ReadAll(r.Body)
	s.decide(c)
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

// discard is where an answer goes that is lost.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// sleep reports whether the time passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// parse finds out what a request is about. A path that the API does not have is left to discovery.
func parse(w http.ResponseWriter, r *http.Request) *call {
	c := &call{w: w, http: r, path: strings.Trim(r.URL.Path, "/")}
	c.Client, _ = r.Context().Value(clientKey{}).(string)
	// All clients ask first for what the real server answers with.
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	mediaType, parameters, _ := mime.ParseMediaType(first)
	c.mediaType, c.as, c.Verb = mediaType, parameters["as"], "discover"
	rest := strings.Split(c.path, "/")
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
	c.Resource.Resource, c.Name = rest[0], strings.Join(rest[1:], "/")
	query := r.URL.Query()
	c.Verb = verb(r.Method, c.Name, query.Get("watch"))
	c.Streaming = c.Verb == "watch" && query.Get("sendInitialEvents") == "true"
	return c
}

func verb(method, name, watch string) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method != http.MethodGet:
		return strings.ToLower(method)
	case name != "":
		return "get"
	case watch == "true" || watch == "1":
		return "watch"
	}
	return "list"
}

// decide counts the request and asks what becomes of it.
func (s *Server) decide(c *call) {
	s.mu.Lock()
	same := Request{Client: c.Client, Verb: c.Verb, Resource: c.Resource}
	c.Number = s.counts[same]
	s.counts[same]++
	s.mu.Unlock()
	if s.options.Decide != nil {
		c.answer = s.options.Decide(c.Request)
	}
}

func (s *Server) serve(c *call) error {
	switch {
	case c.answer.Status != 0:
		seconds := int((c.answer.RetryAfter + time.Second - 1) / time.Second)
		return apierrors.NewGenericServerResponse(c.answer.Status, c.Verb, c.Resource, c.Name,
			"simulated", seconds, false)
	case c.Verb == "discover":
		return s.discover(c)
	case !s.find(c):
		return errNoSuchPath
	case c.mediaType != runtime.ContentTypeProtobuf || c.as != "" && !c.wantsMetadata():
		return errNotAcceptable
	case c.Verb == "get":
		return s.get(c)
	case c.Verb == "list":
		return s.list(c)
	case c.Verb == "watch":
		return s.watch(c)
	case c.Verb == "create" || c.Verb == "update":
		return s.write(c)
	}
	return apierrors.NewMethodNotSupported(c.Resource, c.Verb)
}

// find reports whether the path is one of a kind that is served.
func (s *Server) find(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.table = s.table(c.Resource)
	if c.table == nil || !slices.Contains(c.table.Versions, c.version) {
		return false
	}
	if c.Namespace != "" {
		c.prefix = c.Namespace + "/"
		return c.table.Namespaced
	}
	return !c.table.Namespaced || c.Verb == "list" || c.Verb == "watch"
}

var (
	errNoSuchPath    = httpError(http.StatusNotFound)
	errNotAcceptable = httpError(http.StatusNotAcceptable)
)

func httpError(code int) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}

// fail answers with an error. There is no Status for the path of a group that is not one of
// Kubernetes' own. Errors cannot be transformed: who asks for metadata accepts them as JSON.
func (c *call) fail(err error) {
	path := strings.Split(c.path+"/", "/")
	if errors.Is(err, errNoSuchPath) && path[0] != "api" &&
		!(path[0] == "apis" && isBuiltIn(path[1])) {
		http.NotFound(c.w, c.http)
		return
	}
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if c.mediaType == runtime.ContentTypeProtobuf && c.as == "" {
		c.send(int(status.Code), statusKind, encode(status))
	} else {
		c.sendJSON(int(status.Code), runtime.ContentTypeJSON, status)
	}
}

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

func statusOf(err error) *metav1.Status {
	var known *apierrors.StatusError
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return &status
}

func (c *call) send(code int, gvk schema.GroupVersionKind, body []byte) {
	c.w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	c.w.WriteHeader(code)
	_, _ = c.w.Write(document(gvk, body))
}

func (c *call) sendJSON(code int, contentType string, document any) {
	c.w.Header().Set("Content-Type", contentType)
	c.w.WriteHeader(code)
	_ = json.NewEncoder(c.w).Encode(document)
}

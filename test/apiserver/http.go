// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/binary"
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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
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
	only    string // the one key that a list or watch is about; empty: all with the prefix
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
	if d <= 0 { // The race detector may crash if goroutines of one bubble read timers at once that are due.
		return ctx.Err() == nil
	}
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
	c.Single = strings.Contains(query.Get("fieldSelector"), "metadata.name=")
	c.JSON = mediaType == runtime.ContentTypeJSON && (c.Verb == "get" || c.Verb == "list")
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
	case c.answer.Err != nil:
		return c.answer.Err
	case c.answer.Status != 0:
		seconds := int((c.answer.RetryAfter + time.Second - 1) / time.Second)
		return apierrors.NewGenericServerResponse(c.answer.Status, c.Verb, c.Resource, c.Name,
			"simulated", seconds, false)
	case c.Verb == "discover":
		return s.discover(c)
	case s.isStale(c):
		return errStale
	case !s.find(c):
		return errNoSuchPath
	case c.JSON:
		return s.readJSON(c)
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

// isStale reports whether the API server that the path belongs to does not answer.
func (s *Server) isStale(c *call) bool {
	defer s.lock()()
	return s.stale[c.Resource.Group]
}

// find reports whether the path is one of a kind that is served.
func (s *Server) find(c *call) bool {
	defer s.lock()()
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
	errStale         = httpError(http.StatusServiceUnavailable)
)

func httpError(code int) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}

// fail answers with an error. There is no Status for the path of a group that is not one of
// Kubernetes' own. Errors cannot be transformed: who asks for metadata accepts them as JSON.
func (c *call) fail(err error) {
	group, _, _ := strings.Cut(strings.TrimPrefix(c.path, "apis/"), "/")
	isKnown := strings.HasPrefix(c.path, "api/") || isBuiltIn(group)
	if errors.Is(err, errNoSuchPath) && !isKnown {
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

// get answers with one object: the newest version, or the cache's.
func (s *Server) get(c *call) error {
	version := c.http.URL.Query().Get("resourceVersion")
	if version != "" && version != "0" {
		return apierrors.NewBadRequest("GET with a resource version other than 0 is not simulated")
	}
	s.mu.Lock()
	records := c.table.live
	if version == "0" {
		records = c.table.asOf(s.cacheVersion(c))
	}
	r := find(records, c.table.key(c.Namespace, c.Name))
	s.reportServed(c, r)
	s.mu.Unlock()
	if r == nil {
		return apierrors.NewNotFound(c.Resource, c.Name)
	}
	s.reportRead(c, 1)
	c.send(http.StatusOK, c.kind(), c.encoded(r))
	return nil
}

// readJSON answers with the newest version of one object, or of all that a label selector selects.
func (s *Server) readJSON(c *call) error {
	selector, err := labels.Parse(c.http.URL.Query().Get("labelSelector"))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var found []Object
	unlock := s.lock()
	for _, r := range c.table.live {
		object := r.object
		if strings.HasPrefix(r.key, c.prefix) && (c.Name == "" && selector.Matches(labels.Set(object.GetLabels())) || object.GetName() == c.Name) {
			if c.wantsMetadata() {
				object = meta.AsPartialObjectMetadata(object)
			}
			found = append(found, object)
		}
	}
	unlock()
	s.reportRead(c, len(found))
	switch {
	case c.Name == "":
		c.sendJSON(http.StatusOK, runtime.ContentTypeJSON, map[string]any{"items": found})
	case len(found) == 0:
		return apierrors.NewNotFound(c.Resource, c.Name)
	default:
		c.sendJSON(http.StatusOK, runtime.ContentTypeJSON, found[0])
	}
	return nil
}

// reportServed reports the object of a request; nil: there is none. Callers must hold the lock.
func (s *Server) reportServed(c *call, r *record) {
	var object Object
	if r != nil {
		object = r.object
	}
	if s.options.Served != nil {
		s.options.Served(c.Request, s.version, object)
	}
}

func (s *Server) reportRead(c *call, objects int) {
	if s.options.Read != nil && c.wantsMetadata() {
		s.options.Read(c.Client, objects)
	}
}

// write creates or updates an object.
func (s *Server) write(c *call) error {
	gvk := c.gvk()
	decoded, found, err := scheme.Codecs.UniversalDeserializer().Decode(c.body, &gvk, nil)
	object, ok := decoded.(Object)
	if err != nil || !ok || *found != gvk || object.GetNamespace() != c.Namespace ||
		c.Verb == "update" && object.GetName() != c.Name {
		return apierrors.NewBadRequest("the body is not the object of the path")
	}
	r, code, err := s.createOrUpdate(c, object)
	if err != nil {
		return err
	}
	c.send(code, c.kind(), c.encoded(r))
	return nil
}

// createOrUpdate writes the object. As on the real server, an update of an Event or a Lease creates
// one that does not exist, which client-go's leader election makes use of.
func (s *Server) createOrUpdate(c *call, object Object) (r *record, code int, err error) {
	defer s.lock()()
	defer func() {
		if err == nil {
			s.reportServed(c, r)
		}
	}()
	exists := find(c.table.live, c.table.key(c.Namespace, object.GetName())) != nil
	isLease, isEvent := c.Resource == leasesResource, c.Resource == eventsResource
	switch {
	case c.Verb == "create" || !exists && (isLease || isEvent):
		object.SetUID("")
		object.SetCreationTimestamp(metav1.Time{})
		r, err = s.create(c.table, object)
		return r, http.StatusCreated, err
	case isLease && object.GetResourceVersion() == "":
		return nil, 0, apierrors.NewBadRequest("an update of a Lease needs a resource version")
	}
	r, err = s.update(c.table, object)
	return r, http.StatusOK, err
}

func (c *call) wantsMetadata() bool { return strings.HasPrefix(c.as, "PartialObjectMetadata") }

func (c *call) gvk() schema.GroupVersionKind {
	gv := schema.GroupVersion{Group: c.Resource.Group, Version: c.version}
	return gv.WithKind(c.table.Kind.Kind)
}

// kind is the type of the objects in the answers.
func (c *call) kind() schema.GroupVersionKind {
	if c.wantsMetadata() {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return c.gvk()
}

// encoded returns an object without its type, as it is an item of a list.
func (c *call) encoded(r *record) []byte {
	if _, isPartial := r.object.(*metav1.PartialObjectMetadata); isPartial || !c.wantsMetadata() {
		return r.encoded
	}
	return encode(meta.AsPartialObjectMetadata(r.object))
}

func encode(object interface{ Marshal() ([]byte, error) }) []byte { return must(object.Marshal()) }

func must[V any](value V, err error) V {
	if err != nil {
		panic(err) // All types of Kubernetes' API can be encoded.
	}
	return value
}

// document returns a whole answer, or the object in a message of a watch.
func document(gvk schema.GroupVersionKind, body []byte) []byte {
	unknown := runtime.Unknown{Raw: body}
	unknown.APIVersion, unknown.Kind = gvk.ToAPIVersionAndKind()
	const magic = "k8s\x00"
	out := make([]byte, len(magic)+unknown.Size())
	copy(out, magic)
	must(unknown.MarshalTo(out[len(magic):]))
	return out
}

// fieldOverhead is how many bytes appendField adds to a value at most.
const fieldOverhead = 1 + binary.MaxVarintLen64

// appendField appends a field of a protobuf message that has a length.
func appendField(out []byte, number byte, value []byte) []byte {
	out = binary.AppendUvarint(append(out, number<<3|2), uint64(len(value)))
	return append(out, value...)
}

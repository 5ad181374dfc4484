// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest/discovery"
)

// Objects is a fake API server over HTTP: discovery documents, metadata of objects in protobuf,
// paged lists, and their failures.
type Objects struct {
	server *httptest.Server // nil: in memory

	mu         sync.Mutex
	served     []served                                   // in the order of discovery
	objects    map[string]*metav1.PartialObjectMetadata   // by path
	watchers   map[chan objectChange]string               // with the path that each one watches
	order      map[string][]*metav1.PartialObjectMetadata // by resource, as lists have them; empty after a change
	faults     map[string]Fault                           // by path
	requests   []string                                   // paths, with "?list" for a page of a list
	userAgents map[string]bool
	cached     []string // of the requests, those with resourceVersion=0
	stale      map[schema.GroupVersion]bool
	read       int // objects in answers

	Delay        time.Duration // how long each request takes; during requests, use SetDelay
	Aggregated   bool          // whether there is aggregated discovery
	OldDiscovery bool          // whether it is version v2beta1 only, as before Kubernetes 1.30
	JSON         bool          // whether metadata comes as JSON
}

// served is one resource of a group version.
type served struct {
	gv       schema.GroupVersion
	resource metav1.APIResource
}

// Fault is how requests for a path fail. Times limits how many of them fail; 0: all.
type Fault struct {
	Status     int
	RetryAfter int           // seconds
	Hang       chan struct{} // closed to continue
	Times      int
}

var readable = metav1.Verbs{"get", "list", "watch"}

// NewObjects starts a server that serves a few of Kubernetes' own kinds and has no objects. It
// stops at the end of the test.
func NewObjects(t testing.TB) *Objects {
	a := NewObjectsInMemory()
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// NewObjectsInMemory is NewObjects without a network: a handler.
func NewObjectsInMemory() *Objects {
	a := &Objects{
		objects:    make(map[string]*metav1.PartialObjectMetadata),
		watchers:   make(map[chan objectChange]string),
		order:      make(map[string][]*metav1.PartialObjectMetadata),
		faults:     make(map[string]Fault),
		userAgents: make(map[string]bool),
		stale:      make(map[schema.GroupVersion]bool),
		Aggregated: true,
	}
	a.Serve("v1", "Pod", "pods", true)
	a.Serve("v1", "Service", "services", true)
	a.Serve("v1", "Node", "nodes", false)
	a.Serve("v1", "Namespace", "namespaces", false)
	a.Serve("apps/v1", "ReplicaSet", "replicasets", true)
	a.Serve("apps/v1", "Deployment", "deployments", true)
	a.Serve("apps/v1", "StatefulSet", "statefulsets", true)
	a.Serve("batch/v1", "Job", "jobs", true)
	a.Serve("networking.k8s.io/v1", "Ingress", "ingresses", true)
	return a
}

// RESTConfig returns the configuration of a client without limits.
func (a *Objects) RESTConfig() *rest.Config {
	return &rest.Config{Host: a.server.URL, QPS: -1, UserAgent: "resolver-test"}
}

// Serve adds a kind. Without verbs, it has those that read it.
func (a *Objects) Serve(apiVersion, kind, resource string, namespaced bool, verbs ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gv, _ := schema.ParseGroupVersion(apiVersion)
	r := metav1.APIResource{Kind: kind, Name: resource, Namespaced: namespaced, Verbs: readable}
	if len(verbs) > 0 {
		r.Verbs = verbs
	}
	a.served = append(a.served, served{gv, r})
}

// SetDelay sets Delay while there are requests.
func (a *Objects) SetDelay(delay time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Delay = delay
}

// Unserve removes a kind, as when a CRD is deleted.
func (a *Objects) Unserve(apiVersion, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.served = slices.DeleteFunc(a.served, func(s served) bool {
		return s.gv.String() == apiVersion && s.resource.Kind == kind
	})
}

// Object is an object as tests write it.
type Object struct {
	APIVersion, Kind, Namespace, Name, UID string
	Labels, Annotations                    map[string]string
	Owners                                 []metav1.OwnerReference
}

// OwnedBy returns an owner reference to the object.
func OwnedBy(o Object, controller ...bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID)}
	if len(controller) > 0 {
		ref.Controller = &controller[0]
	}
	return ref
}

// Put creates or replaces objects.
func (a *Objects) Put(objects ...Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range objects {
		at := a.pathLocked(o)
		clear(a.order)
		a.objects[at] = &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
				Labels: o.Labels, Annotations: o.Annotations, OwnerReferences: o.Owners, ResourceVersion: "2",
			},
		}
		a.reportLocked("ADDED", at)
	}
}

// objectChange is what a watch of objects reports.
type objectChange struct {
	kind   string
	object *metav1.PartialObjectMetadata
}

// reportLocked reports a change of the object at the path to those who watch it.
func (a *Objects) reportLocked(kind, at string) {
	o := a.objects[at]
	for watcher, followed := range a.watchers {
		if strings.Replace(path.Dir(at), "/namespaces/"+o.Namespace, "", 1) == followed || path.Dir(at) == followed {
			watcher <- objectChange{kind, o}
		}
	}
}

// Remove deletes objects.
func (a *Objects) Remove(objects ...Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range objects {
		clear(a.order)
		if at := a.pathLocked(o); a.objects[at] != nil {
			a.reportLocked("DELETED", at)
			delete(a.objects, at)
		}
	}
}

// Path returns the path that the object is read from.
func (a *Objects) Path(o Object) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pathLocked(o)
}

func (a *Objects) pathLocked(o Object) string {
	for _, s := range a.served {
		if s.gv.String() == o.APIVersion && s.resource.Kind == o.Kind {
			in := versionPath(s.gv)
			if o.Namespace != "" {
				in += "/namespaces/" + o.Namespace
			}
			return in + "/" + s.resource.Name + "/" + o.Name
		}
	}
	panic("not served: " + o.APIVersion + " " + o.Kind)
}

func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// Fail makes requests for a path fail from now on.
func (a *Objects) Fail(path string, f Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults[path] = f
}

// Heal makes requests for a path succeed again.
func (a *Objects) Heal(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.faults, path)
}

// Hang makes requests for a path wait until the returned function is called,
// or the test ends.
func (a *Objects) Hang(t testing.TB, path string) (release func()) {
	hang := make(chan struct{})
	release = sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	a.Fail(path, Fault{Hang: hang})
	return release
}

// Seen returns the requests since its last call, in order.
func (a *Objects) Seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.requests
	a.requests = nil
	return seen
}

// Read returns how many objects were in answers since its last call.
func (a *Objects) Read() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	read := a.read
	a.read = 0
	return read
}

// FromCache returns the paths whose requests allowed an answer from the watch cache, sorted.
func (a *Objects) FromCache() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.cached))
}

// SeenObjects is Seen without discovery, sorted.
func (a *Objects) SeenObjects() []string {
	isDiscovery := func(path string) bool {
		return strings.Count(path, "/") <= 3 && !strings.Contains(path, "?") && !strings.HasPrefix(path, "/api/v1/")
	}
	return slices.Sorted(slices.Values(slices.DeleteFunc(a.Seen(), isDiscovery)))
}

// AwaitRequest waits until the server gets a request for the path.
func (a *Objects) AwaitRequest(t testing.TB, path string) {
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.Contains(a.requests, path)
	}, 10*time.Second, time.Millisecond, "no request for %s", path)
}

// ServeHTTP answers one request.
func (a *Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, delay := a.receive(r)
	// The race detector may crash if goroutines of one bubble read timers at once that are due.
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	if fault.Hang != nil {
		select {
		case <-fault.Hang:
		case <-r.Context().Done():
			return
		}
	}
	if fault.Status != 0 {
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		writeStatusOf(w, fault.Status, path.Base(r.URL.Path))
		return
	}
	if isWatch(r) {
		a.answerWatch(w, r)
		return
	}
	a.answer(w, r)
}

// receive records the request and returns its fault.
func (a *Objects) receive(r *http.Request) (fault Fault, delay time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.userAgents[r.UserAgent()] = true
	path := r.URL.Path
	switch {
	case isWatch(r):
		path += "?watch"
	case isList(r):
		path += "?list"
	}
	a.requests = append(a.requests, path)
	if r.URL.Query().Get("resourceVersion") == "0" {
		a.cached = append(a.cached, path)
	}
	f := a.faults[path]
	if f.Times > 0 {
		f.Times--
		if f.Times == 0 {
			delete(a.faults, path)
		} else {
			a.faults[path] = f
		}
	}
	return f, a.Delay
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// answerWatch streams what is put from now on, until the server closes.
func (a *Objects) answerWatch(w http.ResponseWriter, r *http.Request) {
	watcher := make(chan objectChange, 1000)
	a.mu.Lock()
	a.watchers[watcher] = r.URL.Path
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watchers, watcher)
	}()
	w.Header().Set("Content-Type", "application/json;stream=watch")
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case changed := <-watcher:
			object, _ := json.Marshal(changed.object)
			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: changed.kind, Object: runtime.RawExtension{Raw: object}})
		case <-r.Context().Done():
			return
		}
	}
}

func isList(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "MetadataList") }

func (a *Objects) answer(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case isList(r):
		a.answerList(w, r)
	case segments[0] == "apis" && len(segments) <= 3, segments[0] == "api" && len(segments) <= 2:
		a.answerDiscovery(w, r)
	default:
		a.answerObject(w, r, segments)
	}
}

// answerDiscovery answers with a discovery document.
func (a *Objects) answerDiscovery(w http.ResponseWriter, r *http.Request) {
	form := discovery.V2
	switch {
	case !a.Aggregated:
		form = discovery.None
	case a.OldDiscovery:
		form = discovery.V2Beta1
	}
	switch code := a.catalogue().Serve(w, r, form); code {
	case 0:
	case discovery.NotFound:
		writeNoSuchPath(w)
	default:
		writeStatus(w, code)
	}
}

// catalogue returns what is served. Each resource has a subresource, which must not be mistaken for
// a kind of its own.
func (a *Objects) catalogue() (all discovery.Catalogue) {
	for _, s := range a.served {
		at := slices.IndexFunc(all, func(v discovery.Version) bool { return v.GroupVersion == s.gv })
		if at < 0 {
			at, all = len(all), append(all, discovery.Version{GroupVersion: s.gv, Stale: a.stale[s.gv]})
		}
		status := s.resource
		status.Name += "/status"
		all[at].Resources = append(all[at].Resources, s.resource, status)
	}
	return all
}

// SetStale lets discovery report that the API server behind an aggregated version does not answer.
func (a *Objects) SetStale(apiVersion string, stale bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gv, _ := schema.ParseGroupVersion(apiVersion)
	a.stale[gv] = stale
}

func (a *Objects) answerObject(w http.ResponseWriter, r *http.Request, segments []string) {
	name := segments[len(segments)-1]
	in, namespace, ok := a.collection(strings.TrimSuffix(r.URL.Path, "/"+name))
	if !ok || in.resource.Namespaced != (namespace != "") {
		writeNoSuchPath(w)
		return
	}
	o, found := a.objects[r.URL.Path]
	if !found {
		writeStatusOf(w, http.StatusNotFound, name)
		return
	}
	a.read++
	a.writeMetadata(w, o)
}

// collection returns the resource whose objects are at a path, all of them or those of a namespace.
func (a *Objects) collection(path string) (found served, namespace string, ok bool) {
	for _, s := range a.served {
		rest, ok := strings.CutPrefix(path, versionPath(s.gv)+"/")
		if !ok {
			continue
		}
		segments := strings.Split(rest, "/")
		if s.resource.Namespaced && len(segments) == 3 && segments[0] == "namespaces" && segments[2] == s.resource.Name {
			return s, segments[1], true
		}
		if rest == s.resource.Name {
			return s, "", true
		}
	}
	return served{}, "", false
}

// answerList writes a list of a namespace or of the cluster, or one page of it. A token to continue
// is the place of the last object that was read, and stays valid when objects come and go.
func (a *Objects) answerList(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	start, err := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	limit, errLimit := strconv.Atoi(cmp.Or(query.Get("limit"), "0"))
	if err != nil || errLimit != nil || query.Get("continue") != "" && query.Get("resourceVersion") != "" {
		writeStatus(w, http.StatusBadRequest)
		return
	}
	items, found := a.list(r.URL.Path, string(start))
	if !found {
		writeNoSuchPath(w)
		return
	}
	if query.Get("resourceVersion") == "0" {
		limit = 0 // The watch cache answers, and has no pages.
	}
	page := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	page.ResourceVersion = "1"
	if left := int64(len(items) - limit); limit > 0 && left > 0 {
		items, page.RemainingItemCount = items[:limit], &left
		page.Continue = base64.RawURLEncoding.EncodeToString([]byte(keyOf(items[limit-1])))
	}
	for _, o := range items {
		page.Items = append(page.Items, *o)
	}
	a.read += len(page.Items)
	a.writeMetadata(w, page)
}

// keyOf decides the order of lists.
func keyOf(o *metav1.PartialObjectMetadata) string { return o.Namespace + "/" + o.Name }

// list returns the objects at a collection's path whose keys come after a key, in order, and
// whether it is served.
func (a *Objects) list(path, after string) (items []*metav1.PartialObjectMetadata, found bool) {
	s, namespace, found := a.collection(path)
	if !found {
		return nil, false
	}
	for _, o := range a.ordered(s) {
		if (namespace == "" || o.Namespace == namespace) && keyOf(o) > after {
			items = append(items, o)
		}
	}
	return items, true
}

// ordered returns all objects of a resource, in the order of lists.
func (a *Objects) ordered(s served) []*metav1.PartialObjectMetadata {
	path := versionPath(s.gv) + "/" + s.resource.Name
	if items, known := a.order[path]; known {
		return items
	}
	var items []*metav1.PartialObjectMetadata
	for at, o := range a.objects {
		in := versionPath(s.gv) + "/"
		if o.Namespace != "" {
			in += "namespaces/" + o.Namespace + "/"
		}
		if at == in+s.resource.Name+"/"+o.Name {
			items = append(items, o)
		}
	}
	slices.SortFunc(items, func(a, b *metav1.PartialObjectMetadata) int { return strings.Compare(keyOf(a), keyOf(b)) })
	a.order[path] = items
	return items
}

var metaScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return scheme
}()

func (a *Objects) writeMetadata(w http.ResponseWriter, o runtime.Object) {
	if a.JSON {
		writeJSON(w, o)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_ = protobuf.NewSerializer(metaScheme, metaScheme).Encode(o, w)
}

// writeStatusOf answers as the API server does for an object that it serves.
func writeStatusOf(w http.ResponseWriter, code int, name string) {
	answer := status(code)
	answer.Details = &metav1.StatusDetails{Name: name}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	writeBody(w, answer)
}

// writeNoSuchPath answers as the API server does for a path that it does not serve.
func writeNoSuchPath(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// Close stops the server.
func (a *Objects) Close() { a.server.Close() }

// ReverseDiscovery reverses the order of discovery, so that Kubernetes' own groups come last.
func (a *Objects) ReverseDiscovery() {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Reverse(a.served)
}

// UserAgents returns the user agents of all requests.
func (a *Objects) UserAgents() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.userAgents))
}

// Watchers returns how many watches are open.
func (a *Objects) Watchers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watchers)
}

// SPDX-License-Identifier: Apache-2.0

package apitest

import (
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

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// Objects is an API server for lookups: discovery documents, the metadata of objects, and their
// failures. Its methods may be called concurrently.
type Objects struct {
	cluster *apiserver.Server
	server  *httptest.Server // nil: in memory

	mu         sync.Mutex
	faults     map[string]Fault // by path
	requests   []string         // paths, with "?list"
	userAgents map[string]bool
	cached     []string // of the requests, those with resourceVersion=0
	read       int      // objects in answers

	Delay time.Duration // how long each request takes; during requests, use SetDelay
	JSON  bool          // whether metadata comes as JSON, as from many aggregated API servers
}

// Fault is how requests for a path fail. Times limits how many of them fail; 0: all.
type Fault struct {
	Status     int
	RetryAfter int           // seconds
	Hang       chan struct{} // closed to continue
	Times      int
}

// NewObjects starts a server that serves a few of Kubernetes' own kinds and has no objects. It
// stops at the end of the test.
func NewObjects(t testing.TB) *Objects {
	o := NewObjectsInMemory()
	o.server = serve(t, o)
	return o
}

// NewObjectsInMemory is NewObjects without a network: a handler.
func NewObjectsInMemory() *Objects { return newObjects(nil) }

func newObjects(decide func(apiserver.Request) apiserver.Answer) *Objects {
	o := &Objects{faults: map[string]Fault{}, userAgents: map[string]bool{}}
	o.cluster = apiserver.New(apiserver.Options{KeepCreationTimes: true, ClusterUID: "cluster-uid", Decide: decide, Read: o.countRead})
	o.Serve("networking.k8s.io/v1", "Ingress", "ingresses", true)
	return o
}

func (o *Objects) countRead(_ string, objects int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read += objects
}

// RESTConfig returns the configuration of a client without limits.
func (o *Objects) RESTConfig() *rest.Config {
	return &rest.Config{Host: o.server.URL, QPS: -1, UserAgent: "resolver-test"}
}

// Serve adds a kind, or another version of one. Without verbs, it has those of Kubernetes' own kinds.
func (o *Objects) Serve(apiVersion, kind, resource string, namespaced bool, verbs ...string) {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	served := apiserver.Kind{Group: gv.Group, Kind: kind, Resource: resource, Namespaced: namespaced,
		Versions: []string{gv.Version}, Verbs: verbs, NoUIDs: true}
	for _, known := range o.cluster.Kinds() {
		if known.Group == gv.Group && known.Resource == resource {
			served.Versions = append(slices.DeleteFunc(slices.Clone(known.Versions), func(v string) bool { return v == gv.Version }), gv.Version)
		}
	}
	o.cluster.AddKind(served)
}

// Unserve removes a kind, as when a CRD is deleted.
func (o *Objects) Unserve(apiVersion, kind string) {
	o.cluster.RemoveKind(o.kindOf(Object{APIVersion: apiVersion, Kind: kind}))
}

// SetDelay sets Delay while there are requests.
func (o *Objects) SetDelay(delay time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Delay = delay
}

// Object is an object as tests write it.
type Object struct {
	APIVersion, Kind, Namespace, Name, UID string
	Labels, Annotations                    map[string]string
	Owners                                 []metav1.OwnerReference
	GenerateName                           string
}

// OwnedBy returns an owner reference to the object.
func OwnedBy(o Object, controller ...bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID)}
	if len(controller) > 0 {
		ref.Controller = &controller[0]
	}
	return ref
}

// kindOf returns the resource of an object.
func (o *Objects) kindOf(object Object) schema.GroupResource {
	gv, _ := schema.ParseGroupVersion(object.APIVersion)
	for _, kind := range o.cluster.Kinds() {
		if kind.Group == gv.Group && kind.Kind == object.Kind && slices.Contains(kind.Versions, gv.Version) {
			return schema.GroupResource{Group: kind.Group, Resource: kind.Resource}
		}
	}
	panic("not served: " + object.APIVersion + " " + object.Kind)
}

// Put creates or replaces objects.
func (o *Objects) Put(objects ...Object) {
	for _, object := range objects {
		put(o.cluster, o.kindOf(object), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name, UID: types.UID(object.UID),
			Labels: object.Labels, Annotations: object.Annotations, OwnerReferences: object.Owners, GenerateName: object.GenerateName,
		}})
	}
}

// PutWhole creates or replaces objects with all their fields, which a client that asks for JSON gets.
func (o *Objects) PutWhole(resource schema.GroupResource, objects ...apiserver.Object) {
	for _, object := range objects {
		put(o.cluster, resource, object)
	}
}

// Remove deletes those of the objects that exist.
func (o *Objects) Remove(objects ...Object) {
	for _, object := range objects {
		_ = o.cluster.Delete(o.kindOf(object), object.Namespace, object.Name)
	}
}

// Path returns the path that the object is read from.
func (o *Objects) Path(object Object) string {
	in := "/apis/" + object.APIVersion
	if !strings.Contains(object.APIVersion, "/") {
		in = "/api/" + object.APIVersion
	}
	if object.Namespace != "" {
		in += "/namespaces/" + object.Namespace
	}
	return in + "/" + o.kindOf(object).Resource + "/" + object.Name
}

// Fail makes requests for a path fail from now on.
func (o *Objects) Fail(path string, f Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults[path] = f
}

// Heal makes requests for a path succeed again.
func (o *Objects) Heal(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.faults, path)
}

// Hang makes requests for a path wait until the returned function is called,
// or the test ends.
func (o *Objects) Hang(t testing.TB, path string) (release func()) {
	hang := make(chan struct{})
	release = sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	o.Fail(path, Fault{Hang: hang})
	return release
}

// Seen returns the requests since its last call, in order.
func (o *Objects) Seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.requests
	o.requests = nil
	return seen
}

// Read returns how many objects were in answers since its last call.
func (o *Objects) Read() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	read := o.read
	o.read = 0
	return read
}

// FromCache returns the paths whose requests allowed an answer from the watch cache, sorted.
func (o *Objects) FromCache() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.cached))
}

// SeenObjects is Seen without discovery, sorted.
func (o *Objects) SeenObjects() []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(o.Seen(), isDiscovery)))
}

func isDiscovery(path string) bool {
	return strings.Count(path, "/") <= 3 && !strings.Contains(path, "?") && !strings.HasPrefix(path, "/api/v1/")
}

// AwaitRequest waits until the server gets a request for the path.
func (o *Objects) AwaitRequest(t testing.TB, path string) {
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.Contains(o.requests, path)
	}, 10*time.Second, time.Millisecond, "no request for %s", path)
}

// ServeHTTP answers one request.
func (o *Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, delay := o.receive(r)
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
	switch {
	case fault.Status != 0:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		writeStatus(w, fault.Status, path.Base(r.URL.Path))
	case o.JSON:
		o.answerJSON(w, r)
	default:
		o.cluster.ServeHTTP(w, r)
	}
}

// receive records the request and returns its fault.
func (o *Objects) receive(r *http.Request) (fault Fault, delay time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.userAgents[r.UserAgent()] = true
	path := r.URL.Path
	if isList(r) {
		path += "?list"
	}
	o.requests = append(o.requests, path)
	if r.URL.Query().Get("resourceVersion") == "0" {
		o.cached = append(o.cached, path)
	}
	f := o.faults[path]
	if f.Times > 0 {
		f.Times--
		if f.Times == 0 {
			delete(o.faults, path)
		} else {
			o.faults[path] = f
		}
	}
	return f, o.Delay
}

func isList(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "MetadataList") }

var fromProtobuf = func() *protobuf.Serializer {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return protobuf.NewSerializer(scheme, scheme)
}()

// answerJSON answers with metadata in JSON. Errors are JSON already.
func (o *Objects) answerJSON(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	o.cluster.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	if object, _, err := fromProtobuf.Decode(body, nil, nil); err == nil {
		body, _ = json.Marshal(object) // It has only plain values.
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

// SetStale lets discovery report that the API server behind an aggregated version does not answer.
func (o *Objects) SetStale(apiVersion string, stale bool) {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	o.cluster.SetStale(gv.Group, stale)
}

// Close stops the server.
func (o *Objects) Close() { o.server.Close() }

// ReverseDiscovery reverses the order of discovery, so that Kubernetes' own groups come last.
func (o *Objects) ReverseDiscovery() {
	for _, kind := range slices.Backward(o.cluster.Kinds()) {
		o.cluster.RemoveKind(schema.GroupResource{Group: kind.Group, Resource: kind.Resource})
		o.cluster.AddKind(kind)
	}
}

// UserAgents returns the user agents of all requests.
func (o *Objects) UserAgents() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.userAgents))
}

// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	protobuf      = "application/vnd.kubernetes.protobuf"
	testNamespace = "observability"
	testName      = "lease-kube-events"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// fakeAPI simulates the ConfigMaps of an API server at its HTTP edge. Its methods may be called
// concurrently.
type fakeAPI struct {
	t testing.TB

	mu        sync.Mutex
	version   int
	objects   map[string]*corev1.ConfigMap // by name; all are in testNamespace
	requests  []string                     // "get", "create" or "update", and the status if it is an error
	intercept func(verb string) error      // runs without the lock; an error is the response
	hanging   string                       // a request with this verb gets no response
	fell      []string                     // writes that lowered a version
}

func newFakeAPI(t testing.TB) *fakeAPI {
	return &fakeAPI{t: t, version: 100, objects: map[string]*corev1.ConfigMap{}}
}

// overHTTP returns a store that reaches the API through a socket, with requests in this media type.
func (f *fakeAPI) overHTTP(mediaType string) *Store {
	f.t.Helper()
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = mediaType
	return f.store(config)
}

// inMemory returns a store that calls the API directly, for tests with a simulated clock.
func (f *fakeAPI) inMemory() *Store {
	f.t.Helper()
	config := &rest.Config{Host: "http://api.invalid", Transport: direct{f}}
	config.ContentType = protobuf
	return f.store(config)
}

func (f *fakeAPI) store(config *rest.Config) *Store {
	client, err := kubeclient.Events(config, kubeclient.Pacing{})
	require.NoError(f.t, err)
	f.t.Cleanup(client.(*rest.RESTClient).Client.CloseIdleConnections)
	return NewStore(client, testNamespace, testName)
}

// direct is a RoundTripper without a network.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[r.Method]
	f.mu.Lock()
	intercept, hanging := f.intercept, f.hanging
	f.mu.Unlock()
	if verb == hanging {
		<-r.Context().Done()
		return
	}
	var object runtime.Object
	var err error
	if intercept != nil {
		err = intercept(verb)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		object, err = f.handle(verb, r)
	}
	status, entry := http.StatusOK, verb
	if err != nil {
		var failed apierrors.APIStatus = apierrors.NewInternalError(err)
		_ = asStatus(err, &failed)
		result := failed.Status()
		object, status = &result, int(result.Code)
		entry += " " + strconv.Itoa(status)
	}
	f.requests = append(f.requests, entry)
	mediaType := runtime.ContentTypeJSON
	if strings.Contains(r.Header.Get("Accept"), protobuf) {
		mediaType = protobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), mediaType)
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	if err := event.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(object, w); err != nil {
		f.t.Errorf("encode: %v", err)
	}
}

func asStatus(err error, status *apierrors.APIStatus) bool {
	found, ok := err.(apierrors.APIStatus)
	if ok {
		*status = found
	}
	return ok
}

func (f *fakeAPI) handle(verb string, r *http.Request) (runtime.Object, error) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/configmaps")
	name = strings.TrimPrefix(name, "/")
	var body *corev1.ConfigMap
	if verb != "get" {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		decoded, _, err := event.Codecs.UniversalDeserializer().Decode(read, nil, nil)
		if err != nil {
			return nil, err
		}
		body = decoded.(*corev1.ConfigMap)
		if body.Namespace != namespace || verb == "update" && body.Name != name {
			return nil, apierrors.NewBadRequest("the name of the object does not match the name in the URL")
		}
		name = body.Name
	}
	if namespace != testNamespace {
		if verb == "create" {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
		}
		return nil, apierrors.NewNotFound(configMaps, name)
	}
	stored, found := f.objects[name]
	switch {
	case verb == "create" && found:
		return nil, apierrors.NewAlreadyExists(configMaps, name)
	case verb == "create":
		body.UID = types.UID(strconv.Itoa(f.version))
		return f.put(body), nil
	case !found:
		return nil, apierrors.NewNotFound(configMaps, name)
	case verb == "get":
		return stored.DeepCopy(), nil
	case body.ResourceVersion == "":
		return nil, apierrors.NewBadRequest("an update without a precondition")
	case body.ResourceVersion != stored.ResourceVersion || body.UID != stored.UID:
		return nil, apierrors.NewConflict(configMaps, name, fmt.Errorf("the object has been modified"))
	}
	return f.put(body), nil
}

func (f *fakeAPI) put(object *corev1.ConfigMap) *corev1.ConfigMap {
	f.version++
	object = object.DeepCopy()
	object.ResourceVersion = strconv.Itoa(f.version)
	if old, ok := f.objects[object.Name]; ok {
		before, _ := decode(old.Data)
		after, _ := decode(object.Data)
		if before.fellTo(after) {
			f.fell = append(f.fell, fmt.Sprintf("from %v to %v", before, after))
		}
	}
	f.objects[object.Name] = object
	return object.DeepCopy()
}

// setData stores an object as somebody else does; nil deletes it.
func (f *fakeAPI) setData(data map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data == nil {
		delete(f.objects, testName)
		return
	}
	f.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testName, UID: "other"}, Data: data})
}

func (f *fakeAPI) set(p Position) {
	data := map[string]string{}
	require.NoError(f.t, p.encode(data))
	f.setData(data)
}

func (f *fakeAPI) stored() Position {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	object, ok := f.objects[testName]
	if !ok {
		return Position{}
	}
	p, err := decode(object.Data)
	require.NoError(f.t, err)
	return p
}

// onRequest sets what runs before each request. Its error is the response.
func (f *fakeAPI) onRequest(intercept func(verb string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.intercept = intercept
}

// hang makes the API server not answer requests with this verb.
func (f *fakeAPI) hang(verb string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hanging = verb
}

// forbid makes the API server forbid these verbs.
func (f *fakeAPI) forbid(verbs ...string) {
	f.onRequest(func(verb string) error {
		if slices.Contains(verbs, verb) {
			return forbidden(verb)
		}
		return nil
	})
}

func forbidden(verb string) error {
	return apierrors.NewForbidden(configMaps, testName, fmt.Errorf("User \"u\" cannot %s resource", verb))
}

// took returns the requests since the last call.
func (f *fakeAPI) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.requests
	f.requests = nil
	return taken
}

func at(streams map[string]uint64) Position { return Position{Streams: streams} }

// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testNamespace = "observability"
	testName      = "lease-kube-events"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// scriptedAPI is the simulated API server with the failures that a test wants. Its methods may be
// called concurrently.
type scriptedAPI struct {
	t       testing.TB
	cluster *apiserver.Server

	mu        sync.Mutex
	requests  []string                // "get", "create", "update", "try create" or "try update", and the status of an error
	intercept func(verb string) error // an error is the response
	hanging   string                  // a request with this verb gets no response
	written   Position                // by the last request
	fell      []string                // writes that lowered a version
}

func newScriptedAPI(t testing.TB) *scriptedAPI {
	s := &scriptedAPI{t: t}
	s.cluster = apiserver.New(apiserver.Options{Decide: s.decide, Served: s.noteWrite})
	return s
}

// store returns a store of another process.
func (s *scriptedAPI) store() *Store {
	s.t.Helper()
	config := &rest.Config{Host: "http://api.invalid", Transport: apitest.InMemory{Handler: s}}
	client, err := kubeclient.Events(config, kubeclient.Pacing{})
	require.NoError(s.t, err)
	return NewStore(client, testNamespace, testName)
}

// ServeHTTP notes the request with its status.
func (s *scriptedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &statusNoter{ResponseWriter: w}
	s.cluster.ServeHTTP(noted, r)
	entry := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[r.Method]
	if r.URL.Query().Has("dryRun") {
		entry = "try " + entry
	}
	if noted.code >= http.StatusBadRequest {
		entry += " " + strconv.Itoa(noted.code)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, entry)
}

type statusNoter struct {
	http.ResponseWriter
	code int
}

func (s *statusNoter) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *scriptedAPI) decide(r apiserver.Request) (answer apiserver.Answer) {
	s.mu.Lock()
	intercept, hanging := s.intercept, s.hanging
	s.mu.Unlock()
	answer.Hang = r.Verb == hanging
	if intercept != nil && !answer.Hang {
		answer.Err = intercept(r.Verb)
	}
	return answer
}

func (s *scriptedAPI) noteWrite(r apiserver.Request, _ int64, object apiserver.Object) {
	if r.Verb == "get" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.written
	s.written, _ = decode(object.(*corev1.ConfigMap).Data)
	if before.fellTo(s.written) {
		s.fell = append(s.fell, fmt.Sprintf("from %v to %v", before, s.written))
	}
}

// object returns the stored object, or nil.
func (s *scriptedAPI) object() *corev1.ConfigMap {
	stored, err := s.cluster.Get(configMaps, testNamespace, testName)
	if err != nil {
		return nil
	}
	return stored.(*corev1.ConfigMap)
}

// put stores an object as somebody else does.
func (s *scriptedAPI) put(labels, data map[string]string) {
	meta := metav1.ObjectMeta{Namespace: testNamespace, Name: testName, Labels: labels}
	object := &corev1.ConfigMap{ObjectMeta: meta, Data: data}
	_, err := s.cluster.Create(configMaps, object)
	if apierrors.IsAlreadyExists(err) {
		_, err = s.cluster.Update(configMaps, object)
	}
	require.NoError(s.t, err)
}

func (s *scriptedAPI) set(p Position) {
	data := map[string]string{}
	require.NoError(s.t, p.encode(data))
	s.put(nil, data)
}

func (s *scriptedAPI) remove() {
	require.NoError(s.t, s.cluster.Delete(configMaps, testNamespace, testName))
}

func (s *scriptedAPI) stored() Position {
	s.t.Helper()
	object := s.object()
	if object == nil {
		return Position{}
	}
	p, err := decode(object.Data)
	require.NoError(s.t, err)
	return p
}

// onRequest sets what runs before each request. Its error is the response.
func (s *scriptedAPI) onRequest(intercept func(verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// hang makes the API server not answer requests with this verb.
func (s *scriptedAPI) hang(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging = verb
}

// forbid makes the API server forbid these verbs.
func (s *scriptedAPI) forbid(verbs ...string) {
	s.onRequest(func(verb string) error {
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
func (s *scriptedAPI) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

func at(streams map[string]uint64) Position { return Position{Streams: streams} }

// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
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
	requests  []string                // "get", "create" or "update", and the status of an error
	intercept func(verb string) error // an error is the response
	hanging   string                  // a request with this verb gets no response
}

func newScriptedAPI(t testing.TB) *scriptedAPI {
	s := &scriptedAPI{t: t}
	s.cluster = apiserver.New(apiserver.Options{Decide: s.decide})
	return s
}

// term returns the progress of a new term.
func (s *scriptedAPI) term(observer Observer) *ConfigMap {
	s.t.Helper()
	config := &rest.Config{Host: "http://api.invalid", Transport: apitest.InMemory{Handler: s}}
	client, err := kubeclient.Events(config)
	require.NoError(s.t, err)
	return NewConfigMap(client, testNamespace, testName, observer, zap.NewNop())
}

// ServeHTTP notes the request with its status.
func (s *scriptedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &statusNoter{ResponseWriter: w}
	s.cluster.ServeHTTP(noted, r)
	entry := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[r.Method]
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

func (s *scriptedAPI) remove() {
	require.NoError(s.t, s.cluster.Delete(configMaps, testNamespace, testName))
}

// stored returns the versions that are stored.
func (s *scriptedAPI) stored() ledger.Versions {
	s.t.Helper()
	object := s.object()
	if object == nil {
		return nil
	}
	versions, err := decode(object.Data)
	require.NoError(s.t, err)
	return versions
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

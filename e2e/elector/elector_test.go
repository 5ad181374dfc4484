// SPDX-License-Identifier: Apache-2.0

// Package elector runs receivers in one process with contrib's extension k8s_leader_elector.
package elector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/k8sleaderelector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

const (
	lease = 3 * time.Second
	renew = 2 * time.Second
)

// server is an API server that keeps one Lease in addition to what apitest has.
type server struct {
	*apitest.Server
	away atomic.Bool // the Lease cannot be read

	mu    sync.Mutex
	lease *coordinationv1.Lease // nil: there is none
	wrote int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !strings.Contains(r.URL.Path, "/leases"):
		s.Server.ServeHTTP(w, r)
	case s.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		s.serveLease(w, r)
	}
}

func (s *server) serveLease(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		// The client of the extension writes protobuf.
		written, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.wrote++
		s.lease = written.(*coordinationv1.Lease)
		s.lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
		s.lease.ResourceVersion = strconv.Itoa(s.wrote)
	}
	if s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
		return
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

var electorID = component.MustNewID("k8s_leader_elector")

// newElector starts the extension.
func newElector(t *testing.T, url string) host {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: test, clusters: [{name: test, cluster: {server: %q}}],
		contexts: [{name: test, context: {cluster: test}}]}`, url)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	t.Setenv("KUBECONFIG", path)
	factory := k8sleaderelector.NewFactory()
	config := factory.CreateDefaultConfig().(*k8sleaderelector.Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"auth_type": "kubeConfig", "lease_name": "kube-events", "lease_namespace": "observability",
		"lease_duration": lease, "renew_deadline": renew, "retry_period": "100ms",
	}).Unmarshal(config))
	settings := extension.Settings{TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.ID = electorID
	created, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	h := host{electorID: created}
	require.NoError(t, created.Start(t.Context(), h))
	t.Cleanup(func() { assert.NoError(t, created.Shutdown(context.Background())) })
	return h
}

// newReceiver starts a receiver that the elector decides about.
func newReceiver(t *testing.T, h host, name string, next consumer.Logs) {
	t.Helper()
	factory := kubeeventsreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"auth_type": "kubeConfig", "start_at": "beginning", "k8s_leader_elector": electorID.String(),
	}).Unmarshal(config))
	settings := receivertest.NewNopSettings(factory.Type())
	settings.ID = component.NewIDWithName(factory.Type(), name)
	r, err := factory.CreateLogs(t.Context(), settings, config, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), h))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
}

func event(name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.Now()},
		Type:       "Normal", Reason: "Testing", Count: 1, LastTimestamp: metav1.Now(),
	}
}

// slowUser is a user of the elector that registered before a receiver. The extension calls its users
// one after the other, and waits for each.
func slowUser(t *testing.T, h host) (leads <-chan struct{}, release func()) {
	t.Helper()
	started, stop := make(chan struct{}, 10), make(chan struct{})
	h[electorID].(election.Elector).SetCallBackFuncs(func(context.Context) { started <- struct{}{} }, func() { <-stop })
	release = sync.OnceFunc(func() { close(stop) })
	t.Cleanup(release)
	return started, release
}

func TestNoReceiverEmitsAfterItsTermWhileTheElectorWaitsForAnotherUser(t *testing.T) {
	api := &server{Server: apitest.NewInMemory(t)}
	api.away.Store(true)
	outside := httptest.NewServer(api)
	t.Cleanup(outside.Close)
	t.Cleanup(outside.CloseClientConnections)
	h := newElector(t, outside.URL)
	_, release := slowUser(t, h)
	var first, second consumertest.LogsSink
	newReceiver(t, h, "first", &first)
	newReceiver(t, h, "second", &second)
	api.away.Store(false)
	have := func(records int) func() bool {
		return func() bool { return first.LogRecordCount() == records && second.LogRecordCount() == records }
	}
	api.Put(event("before"))
	require.Eventually(t, have(1), time.Minute, 10*time.Millisecond)
	time.Sleep(2 * lease) // The elector renews it.
	api.Put(event("later"))
	require.Eventually(t, have(2), time.Minute, 10*time.Millisecond)

	api.away.Store(true)
	time.Sleep(lease + time.Second) // Another replica may lead now.
	for i := range 5 {
		api.Put(event(fmt.Sprint("after", i)))
		time.Sleep(200 * time.Millisecond)
	}
	assert.True(t, have(2)(), "first has %d, second has %d", first.LogRecordCount(), second.LogRecordCount())
	api.away.Store(false)
	release()
	require.Eventually(t, have(7), time.Minute, 10*time.Millisecond, "the next term delivers it")
}

// A delivery that hangs delays the call that ends the term, but not the end of the other receiver's
// term.
func TestAReceiverThatHangsDoesNotDelayTheEndOfAnothersTerm(t *testing.T) {
	api := &server{Server: apitest.NewInMemory(t)}
	outside := httptest.NewServer(api)
	t.Cleanup(outside.Close)
	t.Cleanup(outside.CloseClientConnections)
	h := newElector(t, outside.URL)
	hangs, entered := make(chan struct{}), make(chan struct{}, 1)
	release := sync.OnceFunc(func() { close(hangs) })
	hanging, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-hangs
		return nil
	})
	require.NoError(t, err)
	var second consumertest.LogsSink
	newReceiver(t, h, "first", hanging)
	newReceiver(t, h, "second", &second)
	t.Cleanup(release)
	api.Put(event("before"))
	<-entered
	require.Eventually(t, func() bool { return second.LogRecordCount() == 1 }, time.Minute, 10*time.Millisecond)

	api.away.Store(true)
	time.Sleep(lease + time.Second) // Another replica may lead now.
	for i := range 5 {
		api.Put(event(fmt.Sprint("after", i)))
		time.Sleep(200 * time.Millisecond)
	}
	assert.Equal(t, 1, second.LogRecordCount())
	release()
	api.away.Store(false)
	require.Eventually(t, func() bool { return second.LogRecordCount() == 6 }, time.Minute, 10*time.Millisecond, "the next term delivers it")
}

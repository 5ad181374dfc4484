// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// gateway is a proxy between a receiver and the API server, as a load balancer is. It counts
// requests, and can break connections, refuse requests and let them hang. Credentials pass through
// it.
type gateway struct {
	kubeconfig string // leads through the gateway
	server     *httptest.Server
	forward    http.Handler

	mu    sync.Mutex // guards what follows
	asked []*http.Request
	fault func(w http.ResponseWriter, r *http.Request) (handled bool)
}

// newGateway makes a gateway for the user of a kubeconfig.
func newGateway(t *testing.T, kubeconfig string) *gateway {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	target := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	g := &gateway{forward: forwardTo(t, target)}
	g.server = httptest.NewUnstartedServer(g)
	g.server.EnableHTTP2 = true
	g.server.Config.ErrorLog = silent
	g.server.StartTLS()
	closeAtEnd(t, g.server)
	target.Server = g.server.URL
	target.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	g.kubeconfig = filepath.Join(t.TempDir(), "gateway.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, g.kubeconfig))
	return g
}

func closeAtEnd(t *testing.T, server *httptest.Server) {
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

func forwardTo(t *testing.T, target *clientcmdapi.Cluster) http.Handler {
	t.Helper()
	address, err := url.Parse(target.Server)
	require.NoError(t, err)
	transport, err := rest.TransportFor(&rest.Config{Host: target.Server, TLSClientConfig: rest.TLSClientConfig{CAData: target.CertificateAuthorityData}})
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(address) },
		Transport:     transport,
		ErrorLog:      silent,
		FlushInterval: -1, // A watch must not wait for a buffer to fill.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// silent drops what servers log about connections that a test broke.
var silent = log.New(io.Discard, "", 0)

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.asked = append(g.asked, r)
	fault := g.fault
	g.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	g.forward.ServeHTTP(w, r)
}

// config is the line of configuration that leads a receiver through the gateway.
func (g *gateway) config() string { return "kubeconfig: " + g.kubeconfig }

// requests are those so far that the test wants.
func (g *gateway) requests(want func(*http.Request) bool) (found []*http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.asked {
		if want(r) {
			found = append(found, r)
		}
	}
	return found
}

// cut breaks all connections.
func (g *gateway) cut() { g.server.CloseClientConnections() }

// inject sets a fault before all requests from now on; nil removes it.
func (g *gateway) inject(fault func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

// reasonOf is the reason that an API server gives with a code.
var reasonOf = map[int]metav1.StatusReason{
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
}

// refuse answers the requests that the test wants as an API server does.
func refuse(code int, want func(*http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !want(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reasonOf[code], Message: "refused by the test",
		})
		return true
	}
}

// once puts a fault before one request only.
func once(fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	var met atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) bool {
		if met.Load() || !fault(w, r) {
			return false
		}
		met.Store(true)
		return true
	}
}

func anyRequest(*http.Request) bool { return true }

func isWatch(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") != ""
}

// isFirstPage picks the requests that begin a list. A list of one name is not one of them:
// it asks for the version of the store.
func isFirstPage(r *http.Request) bool {
	query := r.URL.Query()
	return isEventsList(r) && !query.Has("continue") && !strings.Contains(query.Get("fieldSelector"), "metadata.name=")
}

func isEventsList(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") == ""
}

// isOn picks the requests for a resource, such as pods, single ones and lists.
func isOn(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/"+resource) || strings.Contains(r.URL.Path, "/"+resource+"/")
	}
}

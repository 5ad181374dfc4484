// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// cluster has an API server with TLS and HTTP/2: a connection carries many requests.
type cluster struct {
	api    *apitest.Server
	server *httptest.Server

	mu          sync.Mutex // guards connections
	connections map[string]*connection
}

// connection is one of the API server's.
type connection struct {
	net.Conn
	watches bool // it has had a watch
}

type connectionKey struct{}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{api: apitest.NewInMemory(t), connections: map[string]*connection{}}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			c.mu.Lock()
			r.Context().Value(connectionKey{}).(*connection).watches = true
			c.mu.Unlock()
		}
		c.api.ServeHTTP(w, r)
	}))
	c.server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		c.mu.Lock()
		defer c.mu.Unlock()
		added := &connection{Conn: conn}
		c.connections[conn.RemoteAddr().String()] = added
		return context.WithValue(ctx, connectionKey{}, added)
	}
	c.server.EnableHTTP2 = true
	c.server.StartTLS()
	t.Cleanup(func() {
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

// closeIdle closes the connections without watches, as load balancers do after a time.
func (c *cluster) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.connections {
		if !conn.watches {
			_ = conn.Close()
		}
	}
}

// The address leads to another cluster, while the former one still runs, and the watch still has a
// connection to it. Its events must not be taken for those of the other one.
func TestAnotherClusterAnswersOnNewConnections(t *testing.T) {
	former, present := newCluster(t), newCluster(t)
	var mu sync.Mutex
	to := former
	dial := kubeclient.Dial
	kubeclient.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		return dial(ctx, network, to.server.Listener.Addr().String())
	}
	t.Cleanup(func() { kubeclient.Dial = dial })
	present.api.SetCluster("present")
	for range 500 {
		former.api.Put(harness.Event("old", 1)) // Its versions are higher.
	}

	cfg := harness.ConfigFor(t, former.server.URL, "owners: {enabled: false}")
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`, former.server.URL)
	require.NoError(t, os.WriteFile(cfg.Kubeconfig, []byte(kubeconfig), 0o600))
	logs := &harness.Pipeline{}
	stop := harness.StartIn(t, cfg, receivertest.NewNopSettings(metadata.Type), componenttest.NewNopHost(), logs, nil)
	defer stop()
	count := int32(0)
	emits := func(c *cluster, name string) func() bool {
		return func() bool {
			count++
			c.api.Put(harness.Event(name, count))
			return slices.ContainsFunc(logs.Names(), func(record string) bool { return strings.HasPrefix(record, name) })
		}
	}
	require.Eventually(t, emits(former, "first"), harness.Timeout, 100*time.Millisecond)

	mu.Lock()
	to = present
	mu.Unlock()
	former.closeIdle()
	former.api.Cut()
	require.Eventually(t, emits(present, "second"), harness.Timeout, 300*time.Millisecond)
}

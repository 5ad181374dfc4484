// SPDX-License-Identifier: Apache-2.0

package healthprovider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
)

// resolve reads a configuration and the health of an address, as `validate` does.
func resolve(t *testing.T, address string, timeout time.Duration) (map[string]any, error) {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs: []string{"yaml:a: b", "health:" + address},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), confmap.NewProviderFactory(
			func(confmap.ProviderSettings) confmap.Provider { return newProvider(timeout, time.Millisecond) },
		)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, resolver.Shutdown(t.Context())) })
	resolved, err := resolver.Resolve(t.Context())
	if err != nil {
		return nil, err
	}
	return resolved.ToStringMap(), nil
}

// serve answers requests for the health with these codes, one after the other, and then with the last one.
func serve(t *testing.T, codes ...int) (address string) {
	t.Helper()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(codes[min(int(requests.Add(1)), len(codes))-1])
		_, _ = fmt.Fprint(w, "bind a ClusterRole")
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestAHealthyCollectorChangesNothing(t *testing.T) {
	for name, codes := range map[string][]int{
		"at once":            {http.StatusOK},
		"after some seconds": {http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := resolve(t, serve(t, codes...), time.Minute)
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"a": "b"}, config)
		})
	}
}

func TestACollectorThatIsNotHealthy(t *testing.T) {
	_, err := resolve(t, serve(t, http.StatusInternalServerError), 50*time.Millisecond)
	assert.ErrorContains(t, err, "is not healthy: 500 Internal Server Error: bind a ClusterRole")
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := resolve(t, strings.TrimPrefix(server.URL, "http://"), 50*time.Millisecond)
	assert.ErrorContains(t, err, "refused")
}

func TestAddresses(t *testing.T) {
	for uri, want := range map[string]string{
		"health:10.0.0.1:13134":  "10.0.0.1:13134",
		"health:collector:13134": "collector:13134",
		"health:fd00::1:13134":   "[fd00::1]:13134",
		"health:[fd00::1]:13134": "[fd00::1]:13134",
	} {
		address, err := addressIn(uri)
		require.NoError(t, err, uri)
		assert.Equal(t, want, address)
	}
	for _, uri := range []string{"health:", "health:host", "health::13134", "health:host:", "other:host:1"} {
		_, err := addressIn(uri)
		assert.ErrorContains(t, err, "is not health:HOST:PORT", uri)
	}
}

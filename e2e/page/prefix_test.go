// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testPrefixes is about proxies that serve the page under a path.
func testPrefixes(t *testing.T, b *browser, address string) {
	t.Run("an Ingress that removes the prefix", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, http.StripPrefix("/events", proxyTo(t, "http://"+address)))+"/events/")
	})
	t.Run("an Ingress that keeps the prefix", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, proxyTo(t, "http://"+address))+"/tools/events/")
	})
	t.Run("an Ingress that keeps the prefix, without the last slash", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, proxyTo(t, "http://"+address))+"/tools/events")
	})
}

// testUnderPrefix checks that the page has its style, follows along, and keeps the prefix.
func testUnderPrefix(t *testing.T, b *browser, url string) {
	t.Cleanup(func() { b.do(t, chromedp.Navigate("about:blank")) }) // before the proxy ends
	b.open(t, url)
	directory := strings.TrimSuffix(value[string](t, b, `location.origin + location.pathname`), "/")
	assert.Equal(t, strings.TrimSuffix(url, "/"), directory)
	assert.Equal(t, "flex", value[string](t, b, `getComputedStyle(document.getElementById("filters")).display`), "the page has its style")
	b.run(t, `document.querySelector("article h3 a").click();`)
	b.await(t, `location.search.startsWith("?workload=") && document.getElementById("state").value === "live"`)
	assert.Equal(t, directory+"/", value[string](t, b, `location.origin + location.pathname`))
	b.run(t, `document.querySelector("h1 a").click();`)
	b.await(t, `location.search === "" && document.getElementById("state").value === "live"`)
	assert.Equal(t, directory+"/", value[string](t, b, `location.origin + location.pathname`))
}

// proxyServer runs a proxy until the test ends.
func proxyServer(t *testing.T, handler http.Handler) (origin string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections() // those that updates use
		server.Close()
	})
	return server.URL
}

func proxyTo(t *testing.T, origin string) http.Handler {
	t.Helper()
	to, err := url.Parse(origin)
	require.NoError(t, err)
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

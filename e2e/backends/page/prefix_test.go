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
	to, err := url.Parse("http://" + address)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	for name, handler := range map[string]http.Handler{
		"an Ingress that removes the prefix": http.StripPrefix("/tools/events", proxy), "an Ingress that keeps the prefix": proxy,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			testUnderPrefix(t, b, server.URL+"/tools/events/")
		})
	}
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

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// headers keep the text of events from running as code, and other sites from loading what the page has.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// guarded keeps other sites away, which a browser that can reach the page may have open.
func guarded(next http.Handler, allowedHosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !isAllowed(r.Host, allowedHosts):
			http.Error(w, fmt.Sprintf("the page is not for the host %.100q: open it as localhost or with an IP address, or add the host to allowed_hosts", r.Host), http.StatusForbidden)
		case isFromOtherSite(r):
			http.Error(w, "the page is not for other sites", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isAllowed reports whether a browser may have opened the page under this host. Any name can be made to point
// to the page's address (DNS rebinding), and a page of that name could then read this one. An IP
// address can not.
func isAllowed(host string, allowed []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(host, ".") // of an absolute name

	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil { // An IPv6 address without a port has brackets.
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(allowed, func(name string) bool { return strings.EqualFold(name, host) })
}

// isFromOtherSite reports whether a page of another site sent the request. A link to the page is none.
func isFromOtherSite(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	isLink := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isLink
}

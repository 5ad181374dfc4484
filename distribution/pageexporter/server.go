// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"embed"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed page.* rollouts.*
var files embed.FS

// assets are the files that the page loads.
var assets = []string{"page.css", "page.controls.css", "page.js", "page.zoom.js", "page.commands.js", "rollouts.css", "rollouts.js"}

// The page has all times in UTC. Its script shows them in the viewer's time zone.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clock":  func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"minute": func(t time.Time) string { return t.UTC().Format("15:04") },
	"lines":  func(all []string) string { return strings.Join(all, "\n") },
	"lower":  strings.ToLower,
	"moment": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).ParseFS(files, "page.html.tmpl", "rollouts.html.tmpl"))

// newHandler serves the store. It answers requests for updates until ended is closed.
func newHandler(s *store, ended <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", &handler{store: s, updates: &updates{store: s, ended: ended}})
	return guarded(mux)
}

// handler serves the page under every path that ends with a slash: a proxy in front of it may keep
// its own prefix in the path. All addresses in the page are relative.
type handler struct {
	store   *store
	updates http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, name := path.Split(r.URL.Path)
	if h.serveAPI(w, r, dir, name) {
		return
	}
	if i := slices.Index(assets, name); i >= 0 {
		http.ServeFileFS(w, r, files, assets[i])
		return
	}
	switch name {
	case "":
		servePage(w, h.store.see(filterFrom(r.URL.Query())))
	case "updates":
		h.updates.ServeHTTP(w, r)
	default:
		redirectToSlash(w, r, name)
	}
}

// redirectToSlash answers a request for the page without the slash at its end. The new address is
// relative, because the viewer may see another path.
func redirectToSlash(w http.ResponseWriter, r *http.Request, name string) {
	to := url.URL{Path: "./" + name + "/", RawQuery: r.URL.RawQuery}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func servePage(w http.ResponseWriter, v view) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "page", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = page.WriteTo(w)
}

// guarded sets headers that keep the text of events from running as code. On a page that is for
// this machine only, it also rejects names of other sites: such a name may point to this machine
// (DNS rebinding), and a page of that site could then read this one.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && address.IP.IsLoopback() && !isLocal(r.Host) {
			http.Error(w, "this page is for the machine that it runs on: open it as localhost or 127.0.0.1", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	// An IPv6 address without a port still has its brackets. A browser opens a page on all
	// addresses under the unspecified address.
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && (address.IsLoopback() || address.IsUnspecified())
}

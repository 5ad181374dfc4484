// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

//go:embed page.css page.js page.html.tmpl
var files embed.FS

// assets are the files that the page loads.
var assets = []string{"page.css", "page.js"}

// newHandler serves the answers of a board.
func newHandler(b *board, config *Config) http.Handler {
	h := &handler{board: b}
	if config.MCP {
		h.agents = newAgentsHandler(b)
	}
	return guarded(h, config.AllowedHosts)
}

// handler serves the page under every path that ends with a slash: a proxy in front of it may keep
// its own prefix in the path. All addresses in the page are relative.
type handler struct {
	board  *board
	agents http.Handler // nil: there are none
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	leave, err := h.board.sit()
	if err != nil {
		serveError(w, err)
		return
	}
	defer leave()
	dir, name := path.Split(r.URL.Path)
	if h.agents != nil && name == "mcp" {
		h.agents.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page can only be read", http.StatusMethodNotAllowed)
		return
	}
	if answer, id := apiOf(r.URL.Path); answer != "" {
		h.serveAPI(w, r, answer, id)
		return
	}
	switch {
	case strings.HasSuffix(dir, "/api/"):
		serveError(w, errNoAnswer)
	case slices.Contains(assets, name):
		http.ServeFileFS(w, r, files, name) //nolint:gosec // The name is one of the assets.
	case name == "":
		h.servePage(w, r, "page")
	case name == "content":
		h.servePage(w, r, "content")
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

// servePage answers with the page, or with the content that its script replaces.
func (h *handler) servePage(w http.ResponseWriter, r *http.Request, template string) {
	f, err := filterFrom(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.serve(w, r, "text/html; charset=utf-8", template, f, func(v *view) ([]byte, error) { return v.render(template, f) })
}

// serve answers with what compute returns, or what it returned a moment ago. A browser that has the same
// answer already does not get it again.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, contentType, name string, f filter, compute func(*view) ([]byte, error)) {
	body, err := h.board.look(r.Context(), name, f, compute)
	if err != nil {
		serveError(w, err)
		return
	}
	sum := sha256.Sum256(body)
	etag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) //nolint:gosec // A template or JSON has escaped it.
}

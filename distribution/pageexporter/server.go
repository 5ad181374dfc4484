// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed page.css page.js page.html.tmpl
var files embed.FS

// newHandler serves the answers of a board.
func newHandler(b *board, config *Config, version string) http.Handler {
	h := &handler{board: b}
	if config.MCP {
		h.agents = newAgentsHandler(b, version)
	}
	return guarded(h, config.AllowedHosts)
}

// handler serves the page under every path that ends with a slash: a proxy in front of it may keep
// its own prefix in the path. All addresses in the page are relative.
type handler struct {
	board  *board
	agents http.Handler // nil: there are none
	calls  atomic.Int64 // of agents, until they are answered
	held   atomic.Int64 // bytes of answers that are being written
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, name := path.Split(r.URL.Path)
	if h.agents != nil && name == "mcp" {
		h.serveAgents(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page can only be read", http.StatusMethodNotAllowed)
		return
	}
	if api := apiPath.FindStringSubmatch(r.URL.Path); api != nil {
		answer, workload := cmp.Or(api[1], "workload"), api[2]
		h.serve(w, r, answer, workload, inJSON, endpoints[answer])
		return
	}
	switch {
	case strings.HasSuffix(dir, "/api/"):
		serveError(w, errNoAnswer, inJSON)
	case name == "page.css", name == "page.js":
		http.ServeFileFS(w, r, files, name) //nolint:gosec // It is one of two names.
	case name == "", name == "content", name == "days":
		template := cmp.Or(name, "page")
		h.serve(w, r, template, "", inHTML(template), func(v *view) ([]byte, error) { return v.render(template) })
	default:
		// The page without the slash at its end. The new address is relative, because the viewer may see another path.
		to := url.URL{Path: "./" + name + "/", RawQuery: r.URL.RawQuery}
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// readTimeout is the time in which an agent must send a call.
const readTimeout = 10 * time.Second

// serveAgents answers a call of an agent. It counts the call after it has read it, so that calls
// that come a byte at a time keep nobody away.
func (h *handler) serveAgents(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	call, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		serveError(w, requestError{fmt.Errorf("cannot read the call: %w: send at most %d bytes, within %s", err, maxCall, readTimeout), http.StatusBadRequest}, inJSON)
		return
	}
	defer h.calls.Add(-1)
	if h.calls.Add(1) > maxWaiting {
		serveError(w, errBusy, inJSON)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(call))
	h.agents.ServeHTTP(w, r)
}

// serve answers with what compute returns, or what it returned a moment ago. A browser that has the same
// answer already does not get it again.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, name, workload string, in format, compute func(*view) ([]byte, error)) {
	query := r.URL.Query()
	err := checkNames(query, name)
	var f filter
	if err == nil {
		f, err = filterFrom(query)
	}
	if err != nil {
		serveError(w, requestError{err, http.StatusBadRequest}, in)
		return
	}
	f.Workload = cmp.Or(workload, f.Workload)
	found, err := h.board.look(r.Context(), name, f, compute)
	if err != nil {
		serveError(w, err, in)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", found.etag)
	size := int64(len(found.body))
	defer h.held.Add(-size)
	if h.held.Add(size) > maxHeld {
		serveError(w, errBusy, in)
		return
	}
	w.Header().Set("Content-Type", in.contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.body))
}

// endpoints are the answers of the API by their names.
var endpoints = map[string]func(*view) ([]byte, error){
	"problems":  replyWith(forPrograms, (*reply).addProblems, (*reply).addFormerProblems),
	"changes":   replyWith(forPrograms, (*reply).addChanges, (*reply).addFormerChanges),
	"workloads": replyWith(forPrograms, (*reply).addWorkloads),
	"events":    replyWith(forPrograms, (*reply).addEvents),
	// Rollouts are the largest: they get the room that the others leave.
	"workload": replyWith(forPrograms, (*reply).addSummary, (*reply).addProblems, (*reply).addChanges, (*reply).addEvents, (*reply).addRollouts),
}

// requestError is an error of a request, with its status. Any other error is one of the page's own.
type requestError struct {
	error
	status int
}

var (
	// errNoWorkload is the answer about a workload that has no event.
	errNoWorkload = requestError{errors.New("api/workloads and the tool events list those that have"), http.StatusNotFound}
	errNoAnswer   = requestError{errors.New("there are api/problems, api/changes, api/workloads, api/workloads/ID and api/events"), http.StatusNotFound}
)

// apiPath matches the name of an answer, or the id of a workload. As the page, the API is under
// every prefix.
var apiPath = regexp.MustCompile(`/api/(?:(problems|changes|workloads|events)|workloads/([^/]+))/?$`)

// format is the form of answers and of errors.
type format struct {
	contentType string
	ofError     func(error) ([]byte, error)
}

var inJSON = format{"application/json", func(err error) ([]byte, error) {
	return encode(map[string]string{"error": err.Error()}, "", "")
}}

// serveError answers with an error.
func serveError(w http.ResponseWriter, err error, in format) {
	status := http.StatusInternalServerError
	if of, ok := errors.AsType[requestError](err); ok {
		status = of.status
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := in.ofError(err)
	w.Header().Set("Content-Type", in.contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

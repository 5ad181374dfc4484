// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"
	"net/http"
	"path"
	"strings"
)

// endpoints are the answers of the API by their names.
var endpoints = map[string]func(*reply) any{
	"problems":  func(r *reply) any { return problemsAnswer{r.head(), r.problemList()} },
	"changes":   func(r *reply) any { return changesAnswer{r.head(), r.changeList()} },
	"workloads": func(r *reply) any { return workloadsAnswer{r.head(), r.workloadList()} },
	"events":    func(r *reply) any { return eventsAnswer{r.head(), r.eventList()} },
	"workload":  func(r *reply) any { return r.workload() },
}

// requestError is an error of a request, with its status. Any other error is one of the page's own.
type requestError struct {
	error
	status int
}

// Unwrap returns the error without the status.
func (e requestError) Unwrap() error { return e.error }

var (
	// errNoWorkload is the answer about a workload that has no event.
	errNoWorkload = requestError{errors.New("api/workloads lists those that have"), http.StatusNotFound}
	errNoAnswer   = requestError{errors.New("there are api/problems, api/changes, api/workloads, api/workloads/ID and api/events"), http.StatusNotFound}
)

// apiOf returns the name of an answer, and the id of a workload if the path has one. As the page, the API is
// under every prefix.
func apiOf(address string) (name, id string) {
	dir, last := path.Split(strings.TrimSuffix(address, "/"))
	switch {
	case strings.HasSuffix(dir, "/api/") && last != "workload" && endpoints[last] != nil:
		return last, ""
	case strings.HasSuffix(dir, "/api/workloads/"):
		return "workload", last
	}
	return "", ""
}

// serveAPI answers with JSON.
func (h *handler) serveAPI(w http.ResponseWriter, r *http.Request, name, id string) {
	f, err := filterFrom(r.URL.Query())
	if err != nil {
		serveError(w, requestError{err, http.StatusBadRequest})
		return
	}
	if id != "" {
		f.Workload = id
	}
	h.serve(w, r, "application/json", name, f, func(v *view) ([]byte, error) {
		if err := v.resolve(); err != nil {
			return nil, err
		}
		return v.reply(forPrograms, endpoints[name])
	})
}

// serveError answers with an error.
func serveError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if of, ok := errors.AsType[requestError](err); ok {
		status = of.status
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := encode(map[string]string{"error": err.Error()}, "", "")
	_, _ = w.Write(body)
}

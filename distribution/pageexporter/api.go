// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"
	"net/http"
	"regexp"
)

// endpoints are the answers of the API by their names.
var endpoints = map[string]func(*view) ([]byte, error){
	"problems":  replyWith(forPrograms, (*reply).addProblems),
	"changes":   replyWith(forPrograms, (*reply).addChanges),
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

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The answers of the API, and of the tools for agents.
type (
	problemsAnswer struct {
		head
		Problems []incident.Problem `json:"problems"`
	}
	changesAnswer struct {
		head
		Changes []incident.Change `json:"changes"`
	}
	workloadsAnswer struct {
		head
		Workloads []incident.Summary `json:"workloads"`
	}
	eventsAnswer struct {
		head
		Events []event `json:"events"`
	}
	workloadAnswer struct {
		head
		incident.Summary
		Problems []incident.Problem `json:"problems"`
		Changes  []incident.Change  `json:"changes"`
		Rollouts []*span            `json:"rollouts"`
		Events   []event            `json:"events"`
	}
)

// answers are those of the API by their names.
var answers = map[string]func(*view, filter) (any, error){
	"problems": func(v *view, f filter) (any, error) {
		return problemsAnswer{v.head(f.at(v.now)), newest(v.problems(f.at(v.now)), f.Limit)}, nil
	},
	"changes": func(v *view, f filter) (any, error) {
		return changesAnswer{v.head(f.at(v.now)), newest(v.changes(f.at(v.now)), f.Limit)}, nil
	},
	"workloads": func(v *view, f filter) (any, error) {
		return workloadsAnswer{v.head(f.at(v.now)), newest(v.model.At(v.now, f.at(v.now)).Workloads(), f.Limit)}, nil
	},
	"events": func(v *view, f filter) (any, error) {
		return eventsAnswer{v.head(f.at(v.now)), v.events(f.at(v.now), f.Limit)}, nil
	},
	"workload": func(v *view, f filter) (any, error) {
		found := v.model.At(v.now, f.at(v.now)).Workloads()
		if len(found) != 1 {
			return nil, errNoWorkload
		}
		return v.workload(f, found[0]), nil
	},
}

var (
	// errNoWorkload is the answer about a workload without an event in the chosen time.
	errNoWorkload = errors.New("there is no such workload in what is chosen: api/workloads lists them")
	errNoAnswer   = errors.New("there are api/problems, api/changes, api/workloads, api/workloads/ID and api/events")
)

// workload returns everything about a workload.
func (v *view) workload(f filter, s incident.Summary) workloadAnswer {
	q := f.at(v.now)
	return workloadAnswer{
		v.head(q), s, newest(v.problems(q), f.Limit), newest(v.changes(q), f.Limit), v.rollouts(q), v.events(q, f.Limit),
	}
}

// newest returns the first ones of an answer. It is never nil, so that JSON has an empty list.
func newest[T any](all []T, limit int) []T { return append([]T{}, all[:min(limit, len(all))]...) }

// apiOf returns the name of an answer, and the id of a workload if the path has one. As the page, the API is
// under every prefix.
func apiOf(address string) (name, id string) {
	dir, last := path.Split(strings.TrimSuffix(address, "/"))
	switch {
	case strings.HasSuffix(dir, "/api/") && last != "workload" && answers[last] != nil:
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
		serveError(w, err)
		return
	}
	if id != "" {
		f.Workload = id
	}
	h.serve(w, r, "application/json", name, f, func(v *view) ([]byte, error) {
		f := f
		if f.Workload, err = v.resolve(f.Namespace, f.Workload); err != nil {
			return nil, err
		}
		answer, err := answers[name](v, f)
		if err != nil {
			return nil, err
		}
		return json.MarshalIndent(answer, "", "  ")
	})
}

// serveError answers with the error of a request.
func serveError(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errNoWorkload), errors.Is(err, errNoAnswer):
		status = http.StatusNotFound
	case errors.Is(err, errBusy):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// workloads is the answer of api/workloads.
type workloads struct {
	From      time.Time         `json:"from"`
	Until     time.Time         `json:"until"`
	Standby   bool              `json:"standby,omitempty"`
	Workloads []workloadSummary `json:"workloads"`
}

// workloadSummary is a workload in api/workloads.
type workloadSummary struct {
	UID         string  `json:"uid"`
	ID          string  `json:"id"` // in the address of the page
	ClusterUID  string  `json:"cluster_uid,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	Kind        string  `json:"kind"`
	Group       string  `json:"group,omitempty"`
	Name        string  `json:"name"`
	Occurrences int64   `json:"occurrences"`
	Warnings    int64   `json:"warnings"`
	Changed     *answer `json:"changed,omitempty"`
}

// workloadDetail is the answer of api/workloads/UID.
type workloadDetail struct {
	workloadSummary
	Rollouts []*span        `json:"rollouts"`
	Events   []countedEvent `json:"events"`
}

// countedEvent is an event in its newest state.
type countedEvent struct {
	record
	Count int64 `json:"count"`
}

// serveAPI reports whether the path is one of the API. As the page, the API is under every prefix.
func (h *handler) serveAPI(w http.ResponseWriter, r *http.Request, dir, name string) bool {
	isList := name == "workloads" && strings.HasSuffix(dir, "/api/") || name == "" && strings.HasSuffix(dir, "/api/workloads/")
	if !isList && !strings.HasSuffix(dir, "/api/workloads/") {
		return false
	}
	f := filterFrom(r.URL.Query())
	if err := invalid(r.URL.Query()); err != nil {
		serveError(w, http.StatusBadRequest, err.Error())
	} else if isList {
		serveJSON(w, http.StatusOK, h.store.list(f))
	} else if detail, ok := h.store.detail(name, f); ok {
		serveJSON(w, http.StatusOK, detail)
	} else {
		serveError(w, http.StatusNotFound, "there is no workload with this UID or id in the selected time: api/workloads lists them")
	}
	return true
}

func serveError(w http.ResponseWriter, status int, problem string) {
	serveJSON(w, status, map[string]string{"error": problem})
}

func serveJSON(w http.ResponseWriter, status int, value any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w)
}

// list returns all workloads that pass the filter, those with warnings first.
func (s *store) list(f filter) workloads {
	now, unlock := s.read()
	defer unlock()
	all := workloads{From: f.start(now).UTC(), Until: earlier(now, f.window(now).end()).UTC(), Standby: s.standby.Load(), Workloads: []workloadSummary{}}
	selections, _ := s.selected(f)
	shown, _ := arranged(selections, f, now)
	for _, of := range shown {
		all.Workloads = append(all.Workloads, s.summary(of))
	}
	return all
}

func (s *store) summary(of selection) workloadSummary {
	summary := workloadSummary{
		UID: of.uid, ID: of.id, ClusterUID: of.cluster, Namespace: of.namespace, Kind: of.top.Kind, Group: of.top.Group, Name: of.top.Name,
		Occurrences: of.all, Warnings: of.warnings,
	}
	if summary.Namespace == clusterScoped {
		summary.Namespace = ""
	}
	if of.warnings > 0 {
		summary.Changed = s.explained(of.workload)
	}
	return summary
}

// detail returns what is known of a workload, by its UID.
func (s *store) detail(uid string, f filter) (detail workloadDetail, ok bool) {
	now, unlock := s.read()
	defer unlock()
	selections, _ := s.selected(f)
	shown, _ := arranged(selections, f, now)
	i := slices.IndexFunc(shown, func(of selection) bool { return of.uid == uid || of.id == uid })
	if i < 0 {
		return detail, false
	}
	of := shown[i]
	detail = workloadDetail{
		workloadSummary: s.summary(of),
		Rollouts:        append([]*span{}, spansOf(s.rollouts.Workloads[of.rollouts], now)...),
		Events:          []countedEvent{},
	}
	for _, e := range of.eventsSince(f.start(now), f) {
		r := recordOf(&e.entry)
		r.Message = e.message // as long as on the page
		detail.Events = append(detail.Events, countedEvent{r, e.count})
	}
	return detail, true
}

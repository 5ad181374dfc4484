// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	metadataType = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	listType     = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}
)

// getOwner answers with what there is when the request comes.
func (s *Server) getOwner(w http.ResponseWriter, r *http.Request, t target) {
	found := s.currentFleet().get(t.resource, t.namespace, t.name, time.Now())
	s.takeTime(r)
	if found == nil {
		notFound(w, r)
		return
	}
	s.requests.send(1)
	answer(w, accepted(r), found)
}

// listOwners answers with a page. The token to continue is the place of its last object.
func (s *Server) listOwners(w http.ResponseWriter, r *http.Request, t target) {
	asked := time.Now()
	all := s.currentFleet().list(t.resource, t.namespace, asked)
	s.takeTime(r)
	query := r.URL.Query()
	after := query.Get("continue")
	limit, _ := strconv.Atoi(query.Get("limit"))
	if query.Get("resourceVersion") == "0" {
		limit = 0 // An API server's cache, which may then answer, knows no pages.
	}
	rest := all[sort.Search(len(all), func(i int) bool { return all[i].place > after }):]
	page := &metav1.PartialObjectMetadataList{TypeMeta: listType, Items: []metav1.PartialObjectMetadata{}}
	page.ResourceVersion = versionAt(asked)
	if limit > 0 && len(rest) > limit {
		remaining := int64(len(rest) - limit)
		page.RemainingItemCount, page.Continue = &remaining, rest[limit-1].place
		rest = rest[:limit]
	}
	for _, one := range rest {
		page.Items = append(page.Items, *one.describe())
	}
	s.requests.send(len(page.Items))
	answer(w, accepted(r), page)
}

// takeTime waits as long as an API server takes.
func (s *Server) takeTime(r *http.Request) {
	select {
	case <-time.After(s.options.Latency):
	case <-r.Context().Done():
	}
}

func clusterNamespace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "00000000-0000-4000-8000-000000000001"},
	}
}

func answer(w http.ResponseWriter, e encoding, document runtime.Object) {
	w.Header().Set("Content-Type", e.contentType(false))
	_, _ = w.Write(e.encode(document))
}

// invalid answers as a server that does not know an option.
func invalid(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: r.URL.RawQuery + " is invalid",
	})
}

// notFound answers as an API server does for an object that is not there.
func notFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: r.URL.Path + " not found",
		Details: &metav1.StatusDetails{Name: parse(r).name, Kind: parse(r).resource},
	})
}

// versionAt is the resource version of a list: the time, in microseconds.
func versionAt(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }

// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// ConfigMap returns the data of a ConfigMap; nil if it does not exist.
func (s *Server) ConfigMap(namespace, name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored, ok := s.configMaps[namespace+"/"+name]; ok {
		return maps.Clone(stored.Data)
	}
	return nil
}

// PutConfigMap stores a ConfigMap, as another client does.
func (s *Server) PutConfigMap(namespace, name string, data map[string]string) {
	s.locked(func() {
		s.putConfigMapLocked(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: maps.Clone(data)})
	})
}

// RefuseConfigMaps makes a request for a ConfigMap fail with the status that the function returns
// for its verb (get, create or update). With 0, the request succeeds.
func (s *Server) RefuseConfigMaps(status func(verb string) int) {
	s.locked(func() { s.refuseConfigMaps = status })
}

func (s *Server) putConfigMapLocked(object *corev1.ConfigMap) {
	s.configMapVersion++
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object.ResourceVersion = strconv.Itoa(s.configMapVersion)
	if s.configMaps == nil {
		s.configMaps = map[string]*corev1.ConfigMap{}
	}
	s.configMaps[object.Namespace+"/"+object.Name] = object
}

// serveConfigMap answers requests for ConfigMaps, and reports whether this was one.
func (s *Server) serveConfigMap(w http.ResponseWriter, r *http.Request) bool {
	path, _ := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
	namespace, name, ok := strings.Cut(path, "/configmaps")
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[r.Method]
	if !ok || verb == "" {
		return false
	}
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(name, "/")}}
	if verb != "get" {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = event.Codecs.UniversalDeserializer().Decode(body, nil, sent)
		}
		if err != nil {
			writeStatus(w, http.StatusBadRequest)
			return true
		}
	}
	sent.Namespace = namespace
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuseConfigMaps != nil {
		if code := s.refuseConfigMaps(verb); code != 0 {
			writeStatus(w, code)
			return true
		}
	}
	stored, found := s.configMaps[namespace+"/"+sent.Name]
	switch {
	case verb == "create" && found:
		writeConflict(w, metav1.StatusReasonAlreadyExists)
		return true
	case verb != "create" && !found:
		writeStatus(w, http.StatusNotFound)
		return true
	case verb == "update" && sent.ResourceVersion != stored.ResourceVersion:
		writeConflict(w, metav1.StatusReasonConflict)
		return true
	case verb != "get":
		s.putConfigMapLocked(sent)
		stored = sent
	}
	writeJSON(w, stored)
	return true
}

func writeConflict(w http.ResponseWriter, reason metav1.StatusReason) {
	answer := status(http.StatusConflict)
	answer.Reason = reason
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	writeBody(w, answer)
}

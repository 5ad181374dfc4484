// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
)

// put creates or changes an object, whatever version of it the test has. An object with another UID
// is another object of the same name.
func put(cluster *apiserver.Server, gr schema.GroupResource, object apiserver.Object) apiserver.Object {
	object.SetResourceVersion("")
	stored, err := cluster.Create(gr, object)
	if apierrors.IsAlreadyExists(err) {
		stored, err = cluster.Update(gr, object)
	}
	if apierrors.IsConflict(err) {
		remove(cluster, gr, object.GetNamespace(), object.GetName())
		stored, err = cluster.Create(gr, object)
	}
	if err != nil {
		panic(err) // The kind is not served.
	}
	return stored
}

func remove(cluster *apiserver.Server, gr schema.GroupResource, namespace, name string) {
	if err := cluster.Delete(gr, namespace, name); err != nil {
		panic(err) // It does not exist.
	}
}

// ConfigMap returns the data of a ConfigMap; nil if it does not exist.
func (s *Server) ConfigMap(namespace, name string) map[string]string {
	stored, err := s.Objects.cluster.Get(configMaps, namespace, name)
	if err != nil {
		return nil
	}
	return stored.(*corev1.ConfigMap).Data
}

// PutConfigMap stores a ConfigMap, as another client does.
func (s *Server) PutConfigMap(namespace, name string, data map[string]string) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	put(s.Objects.cluster, configMaps, &corev1.ConfigMap{ObjectMeta: meta, Data: maps.Clone(data)})
}

// RefuseConfigMaps makes a request for a ConfigMap fail with the status that the function returns
// for its verb (get, create or update). With 0, the request succeeds.
func (s *Server) RefuseConfigMaps(status func(verb string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseConfigMaps = status
}

// SetCluster lets another cluster answer at the address: one with this UID.
func (s *Server) SetCluster(uid string) {
	put(s.Objects.cluster, namespaces,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(uid)}})
}

// RefuseCluster makes requests for the namespace kube-system fail with these statuses, one after the
// other, and then always with the last one. With 0, they succeed.
func (s *Server) RefuseCluster(statuses ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseCluster = statuses
}

// decide refuses requests for ConfigMaps and the namespace kube-system.
func (s *Server) decide(r apiserver.Request) (answer apiserver.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Resource == namespaces && r.Name == metav1.NamespaceSystem && len(s.refuseCluster) > 0:
		answer.Status = s.refuseCluster[0]
		s.refuseCluster = s.refuseCluster[min(1, len(s.refuseCluster)-1):]
	case r.Resource == configMaps && s.refuseConfigMaps != nil:
		answer.Status = s.refuseConfigMaps(r.Verb)
	}
	return answer
}

// writeStatus answers with an error as the server does.
func writeStatus(w http.ResponseWriter, code int, name string) {
	failed := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, name, "scripted", 0, false)
	switch code {
	case http.StatusGone:
		failed = apierrors.NewResourceExpired("too old")
	case http.StatusGatewayTimeout:
		failed = apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 0)
		failed.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	failed.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_ = json.NewEncoder(w).Encode(failed.ErrStatus)
}

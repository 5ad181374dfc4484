// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
)

// ConfigMap returns the data of a ConfigMap; nil if it does not exist.
func (s *Server) ConfigMap(namespace, name string) map[string]string {
	stored, err := s.cluster.Get(configMaps, namespace, name)
	if err != nil {
		return nil
	}
	return stored.(*corev1.ConfigMap).Data
}

// PutConfigMap stores a ConfigMap, as another client does.
func (s *Server) PutConfigMap(namespace, name string, data map[string]string) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: maps.Clone(data)}
	if _, err := s.cluster.Update(configMaps, object); err != nil {
		_, _ = s.cluster.Create(configMaps, object) // It did not exist.
	}
}

// RefuseConfigMaps makes a request for a ConfigMap fail with the status that the function returns
// for its verb (get, create or update). With 0, the request succeeds.
func (s *Server) RefuseConfigMaps(status func(verb string) int) {
	s.locked(func() { s.refuseConfigMaps = status })
}

// SetCluster lets another cluster answer at the address: one with this UID.
func (s *Server) SetCluster(uid string) {
	_ = s.cluster.Delete(namespaces, "", metav1.NamespaceSystem) // It exists.
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(uid)}}
	_, _ = s.cluster.Create(namespaces, system)
}

// RefuseCluster makes requests for the namespace kube-system fail with these statuses, one after the
// other, and then always with the last one. With 0, they succeed.
func (s *Server) RefuseCluster(statuses ...int) { s.locked(func() { s.refuseCluster = statuses }) }

// decide refuses requests for ConfigMaps and namespaces.
func (s *Server) decide(r apiserver.Request) (answer apiserver.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Resource == namespaces && len(s.refuseCluster) > 0:
		answer.Status = s.refuseCluster[0]
		s.refuseCluster = s.refuseCluster[min(1, len(s.refuseCluster)-1):]
	case r.Resource == configMaps && s.refuseConfigMaps != nil:
		answer.Status = s.refuseConfigMaps(r.Verb)
	}
	return answer
}

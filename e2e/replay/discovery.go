// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver/discovery"
)

var readable = metav1.Verbs{"get", "list", "watch"}

// served is what the server has.
var served = discovery.Catalogue{
	{GroupVersion: schema.GroupVersion{Version: "v1"}, Resources: []metav1.APIResource{
		{Name: "events", SingularName: "event", Namespaced: true, Kind: "Event", Verbs: readable},
		{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: readable},
		{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: readable},
		{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: readable},
	}},
	{GroupVersion: schema.GroupVersion{Group: "apps", Version: "v1"}, Resources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", Verbs: readable},
		{Name: "replicasets", SingularName: "replicaset", Namespaced: true, Kind: "ReplicaSet", Verbs: readable},
	}},
}

// discover answers with a discovery document.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	s.takeTime(r)
	if served.Serve(w, r, discovery.V2) != 0 {
		notFound(w, r)
	}
}

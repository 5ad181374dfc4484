// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var readable = metav1.Verbs{"get", "list", "watch"}

// coreResources and appsResources are what the server has.
var (
	coreResources = []metav1.APIResource{
		{Name: "events", SingularName: "event", Namespaced: true, Kind: "Event", Verbs: readable},
		{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: readable},
		{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: readable},
		{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: readable},
	}
	appsResources = []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", Verbs: readable},
		{Name: "replicasets", SingularName: "replicaset", Namespaced: true, Kind: "ReplicaSet", Verbs: readable},
	}
	appsGroup = metav1.APIGroup{
		Name:             "apps",
		Versions:         []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}},
		PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"},
	}
)

// discover answers in JSON alone, which all clients take.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	document, found := discovery(r)
	s.takeTime(r)
	if !found {
		notFound(w, r)
		return
	}
	body := must(json.Marshal(document))
	w.Header().Set("Content-Type", "application/json")
	if wantsAggregated(r) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if isKnown(w, r, body) {
			return
		}
	}
	_, _ = w.Write(body)
}

// isKnown names the content of an aggregated document, as an API server does, and answers a client
// that has it already.
func isKnown(w http.ResponseWriter, r *http.Request, body []byte) bool {
	tag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))
	w.Header().Set("ETag", tag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") != tag {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

func discovery(r *http.Request) (document any, found bool) {
	path := strings.Trim(r.URL.Path, "/")
	switch {
	case wantsAggregated(r) && path == "api":
		return aggregated("", coreResources), true
	case wantsAggregated(r):
		return aggregated("apps", appsResources), true
	case path == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case path == "apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{appsGroup}}, true
	case path == "apis/apps":
		group := appsGroup
		group.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}
		return group, true
	case path == "api/v1":
		return resourceList("v1", coreResources), true
	case path == "apis/apps/v1":
		return resourceList("apps/v1", appsResources), true
	default:
		return nil, false
	}
}

// wantsAggregated reports whether the client requests all groups, versions and resources in one
// document.
func wantsAggregated(r *http.Request) bool {
	root := r.URL.Path == "/api" || r.URL.Path == "/apis"
	return root && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
}

func resourceList(groupVersion string, resources []metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: groupVersion, APIResources: resources,
	}
}

func aggregated(group string, resources []metav1.APIResource) apidiscoveryv2.APIGroupDiscoveryList {
	version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range resources {
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, SingularResource: r.SingularName, Scope: scope, Verbs: r.Verbs,
			ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: r.Kind},
		})
	}
	return apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items: []apidiscoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscoveryv2.APIVersionDiscovery{version},
		}},
	}
}

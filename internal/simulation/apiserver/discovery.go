// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects that the server serves.
type Kind struct {
	Group          string
	Versions       []string // the preferred one first
	Kind, Resource string
	Namespaced     bool
}

func (k Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// builtIn are the kinds of a new server.
var builtIn = []Kind{
	{"", []string{"v1"}, "ConfigMap", "configmaps", true},
	{"", []string{"v1"}, "Event", "events", true},
	{"", []string{"v1"}, "Namespace", "namespaces", false},
	{"", []string{"v1"}, "Node", "nodes", false},
	{"", []string{"v1"}, "Pod", "pods", true},
	{"", []string{"v1"}, "Service", "services", true},
	{"apps", []string{"v1"}, "DaemonSet", "daemonsets", true},
	{"apps", []string{"v1"}, "Deployment", "deployments", true},
	{"apps", []string{"v1"}, "ReplicaSet", "replicasets", true},
	{"apps", []string{"v1"}, "StatefulSet", "statefulsets", true},
	{"batch", []string{"v1"}, "CronJob", "cronjobs", true},
	{"batch", []string{"v1"}, "Job", "jobs", true},
	{"coordination.k8s.io", []string{"v1"}, "Lease", "leases", true},
}

func isBuiltIn(group string) bool {
	return slices.ContainsFunc(builtIn, func(kind Kind) bool { return kind.Group == group })
}

var (
	eventsResource     = schema.GroupResource{Resource: "events"}
	namespacesResource = schema.GroupResource{Resource: "namespaces"}
	leasesResource     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// discover answers with a document about what is served.
func (s *Server) discover(c *call) error {
	s.mu.Lock()
	kinds := s.kinds()
	s.mu.Unlock()
	const aggregatedKind = "APIGroupDiscoveryList"
	contentType, document := c.mediaType, plainDocument(c.path, kinds)
	switch {
	case c.mediaType != runtime.ContentTypeJSON:
		return errNotAcceptable
	case document == nil:
		return errNoSuchPath
	case c.path == "apis" && c.as == aggregatedKind && !s.options.NoAggregatedDiscovery:
		contentType += ";g=apidiscovery.k8s.io;v=v2;as=" + aggregatedKind
		document = aggregated(kinds)
	}
	c.sendJSON(http.StatusOK, contentType, document)
	return nil
}

// plainDocument returns the document at a path, or nil.
func plainDocument(path string, kinds []Kind) any {
	root, name, isPart := strings.Cut(path, "/")
	groups := groupsOf(kinds)
	if root == "apis" && !isPart {
		return metav1.APIGroupList{Groups: groups}
	}
	for _, group := range groups {
		if root == "apis" && group.Name == name {
			return group
		}
	}
	gv, err := schema.ParseGroupVersion(name)
	all := resources(kinds, gv)
	if err != nil || len(all) == 0 || (root == "api") != (gv.Group == "") {
		return nil
	}
	return metav1.APIResourceList{GroupVersion: name, APIResources: all}
}

// groupsOf returns the groups of the kinds with their versions, but not the core group.
func groupsOf(kinds []Kind) (groups []metav1.APIGroup) {
	for _, k := range kinds {
		isGroup := func(group metav1.APIGroup) bool { return group.Name == k.Group }
		if k.Group == "" || slices.ContainsFunc(groups, isGroup) {
			continue
		}
		group := metav1.APIGroup{Name: k.Group}
		for _, version := range k.Versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: k.Group + "/" + version, Version: version,
			})
		}
		group.PreferredVersion = group.Versions[0]
		groups = append(groups, group)
	}
	return groups
}

// resources returns the resources of a version with their subresources.
func resources(kinds []Kind, gv schema.GroupVersion) (all []metav1.APIResource) {
	for _, k := range kinds {
		if k.Group != gv.Group || !slices.Contains(k.Versions, gv.Version) {
			continue
		}
		resource := metav1.APIResource{Name: k.Resource, SingularName: strings.ToLower(k.Kind),
			Namespaced: k.Namespaced, Kind: k.Kind}
		resource.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
		all = append(all, resource)
		if !slices.Contains([]string{"configmaps", "events", "leases"}, k.Resource) {
			resource.Name, resource.SingularName = k.Resource+"/status", ""
			resource.Verbs = []string{"get", "patch", "update"}
			all = append(all, resource)
		}
	}
	return all
}

// aggregated returns all groups with the resources of their versions, without subresources.
func aggregated(kinds []Kind) (all apidiscoveryv2.APIGroupDiscoveryList) {
	scopes := map[bool]apidiscoveryv2.ResourceScope{
		true: apidiscoveryv2.ScopeNamespace, false: apidiscoveryv2.ScopeCluster}
	for _, group := range groupsOf(kinds) {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, v := range group.Versions {
			version := apidiscoveryv2.APIVersionDiscovery{Version: v.Version}
			gv := schema.GroupVersion{Group: group.Name, Version: v.Version}
			for _, r := range resources(kinds, gv) {
				if strings.Contains(r.Name, "/") {
					continue
				}
				version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
					Resource: r.Name, SingularResource: r.SingularName,
					Scope: scopes[r.Namespaced], Verbs: r.Verbs,
					ResponseKind: &metav1.GroupVersionKind{Kind: r.Kind},
				})
			}
			item.Versions = append(item.Versions, version)
		}
		all.Items = append(all.Items, item)
	}
	return all
}

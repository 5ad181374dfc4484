// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers with a document about what is served.
func (s *Server) discover(c *call) error {
	documents := s.documents()
	document, found := documents[strings.Join(c.path, "/")]
	header := c.http.Header.Get("Accept")
	wantsAll := strings.Contains(header, "as=APIGroupDiscoveryList") &&
		strings.Contains(header, "v=v2") && len(c.path) == 1
	as, ok := accept(header, false)
	switch {
	case !found:
		return errNoSuchPath
	case wantsAll && !s.options.NoAggregatedDiscovery:
		c.w.Header().Set("Content-Type", aggregatedType)
		return json.NewEncoder(c.w).Encode(aggregated(document, documents))
	case !ok:
		return errNotAcceptable
	}
	gvk := document.GetObjectKind().GroupVersionKind()
	if c.path[0] == "api" {
		gvk.Version = "" // The documents of the core group are older than versions.
	}
	document.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	write(c.w, http.StatusOK, as.format, gvk, body(document, as.format))
	return nil
}

// documents returns the documents by their paths.
func (s *Server) documents() map[string]runtime.Object {
	groups := &metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList")}
	versions := &metav1.APIVersions{TypeMeta: typeMeta("APIVersions"), Versions: []string{"v1"}}
	all := map[string]runtime.Object{"api": versions, "apis": groups}
	for _, kind := range s.kinds() {
		for _, version := range kind.Versions {
			gv := schema.GroupVersion{Group: kind.Group, Version: version}
			path := pathOf(gv)
			if all[path] == nil {
				kind := typeMeta("APIResourceList")
				all[path] = &metav1.APIResourceList{TypeMeta: kind, GroupVersion: gv.String()}
				groups.Groups = withVersion(groups.Groups, gv)
			}
			list := all[path].(*metav1.APIResourceList)
			list.APIResources = append(list.APIResources, kind.resources()...)
		}
	}
	for _, group := range groups.Groups {
		group.TypeMeta = typeMeta("APIGroup")
		all["apis/"+group.Name] = &group
	}
	return all
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// kinds returns what is served, by group and name.
func (s *Server) kinds() (kinds []Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		kinds = append(kinds, t.Kind)
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return kinds
}

// withVersion adds a version to the last group or begins another. The core group is not in the
// list.
func withVersion(groups []metav1.APIGroup, gv schema.GroupVersion) []metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	if gv.Group == "" {
		return groups
	}
	if n := len(groups); n == 0 || groups[n-1].Name != gv.Group {
		groups = append(groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: version})
	}
	last := &groups[len(groups)-1]
	last.Versions = append(last.Versions, version)
	return groups
}

// resources returns a kind's resource and subresource.
func (k Kind) resources() []metav1.APIResource {
	verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch",
		"update", "watch"}
	if k.groupResource() == namespacesResource {
		verbs = slices.Delete(verbs, 2, 3) // Namespaces can only be deleted one by one.
	}
	resource := metav1.APIResource{
		Name: k.Resource, SingularName: strings.ToLower(k.Kind), Namespaced: k.Namespaced,
		Kind: k.Kind, Verbs: verbs,
	}
	if slices.Contains([]string{"configmaps", "events", "leases"}, k.Resource) {
		return []metav1.APIResource{resource}
	}
	status := metav1.APIResource{
		Name: k.Resource + "/status", Namespaced: k.Namespaced, Kind: k.Kind,
		Verbs: metav1.Verbs{"get", "patch", "update"},
	}
	return []metav1.APIResource{resource, status}
}

// aggregated returns what the documents say about the core group or about all others.
func aggregated(root runtime.Object, documents map[string]runtime.Object) any {
	core := metav1.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}
	groups := []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{core}}}
	if list, ok := root.(*metav1.APIGroupList); ok {
		groups = list.Groups
	}
	all := &apidiscoveryv2.APIGroupDiscoveryList{}
	all.APIVersion, all.Kind = "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"
	for _, group := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			list := documents[pathOf(gv)].(*metav1.APIResourceList)
			item.Versions = append(item.Versions, aggregatedVersion(gv, list.APIResources))
		}
		all.Items = append(all.Items, item)
	}
	return all
}

func aggregatedVersion(
	gv schema.GroupVersion, resources []metav1.APIResource,
) (version apidiscoveryv2.APIVersionDiscovery) {
	version.Version, version.Freshness = gv.Version, apidiscoveryv2.DiscoveryFreshnessCurrent
	for _, r := range resources {
		// The real server names no more of its own kinds.
		kind := &metav1.GroupVersionKind{Kind: r.Kind}
		if !isBuiltIn(gv.Group) {
			kind.Group, kind.Version = gv.Group, gv.Version
		}
		if _, sub, found := strings.Cut(r.Name, "/"); found {
			last := &version.Resources[len(version.Resources)-1]
			last.Subresources = append(last.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub, ResponseKind: kind, Verbs: r.Verbs,
			})
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs,
		})
	}
	return version
}

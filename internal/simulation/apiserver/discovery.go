// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verbs are those of a kind. Namespaces can only be deleted one by one.
func (k Kind) verbs() metav1.Verbs {
	if k.groupResource() == namespacesResource {
		return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// group is a group with the kinds of each version, the preferred version first.
type group struct {
	name     string
	versions []string
	kinds    map[string][]Kind
}

// groups returns what is served: the core group first, the others by name.
func (s *Server) groups() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*group{}
	byName := func(a, b Kind) int { return strings.Compare(a.Resource, b.Resource) }
	kinds := []Kind{}
	for _, t := range s.tables {
		kinds = append(kinds, t.Kind)
	}
	for _, kind := range slices.SortedFunc(slices.Values(kinds), byName) {
		g := found[kind.Group]
		if g == nil {
			g = &group{name: kind.Group, kinds: map[string][]Kind{}}
			found[kind.Group] = g
		}
		for _, version := range kind.Versions {
			if g.kinds[version] == nil {
				g.versions = append(g.versions, version)
			}
			g.kinds[version] = append(g.kinds[version], kind)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *group) int { return strings.Compare(a.name, b.name) })
}

// discover answers with a document about what is served.
func (s *Server) discover(c *call) error {
	groups := s.groups()
	header := c.http.Header.Get("Accept")
	root, path := c.path[0], c.path[1:]
	switch {
	case root != "api" && root != "apis":
		return errNoSuchPath
	case len(path) == 0 && !s.options.NoAggregatedDiscovery && strings.Contains(header, "as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"),
		len(path) == 0 && !s.options.NoAggregatedDiscovery && strings.Contains(header, "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"):
		return c.aggregated(slices.DeleteFunc(groups, func(g *group) bool { return (g.name == "") != (root == "api") }))
	case len(path) == 0 && root == "api":
		return c.discovered("APIVersions", &metav1.APIVersions{Versions: []string{"v1"}})
	case len(path) == 0:
		list := &metav1.APIGroupList{}
		for _, g := range groups[1:] {
			list.Groups = append(list.Groups, g.plain())
		}
		return c.discovered("APIGroupList", list)
	}
	name := ""
	if root == "apis" {
		name, path = path[0], path[1:]
	}
	for _, g := range groups {
		switch {
		case g.name != name:
		case len(path) == 0:
			plain := g.plain()
			return c.discovered("APIGroup", &plain)
		case slices.Contains(g.versions, path[0]):
			return c.discovered("APIResourceList", g.resources(path[0]))
		}
	}
	return errNoSuchPath
}

func (c *call) discovered(kind string, document interface{ Marshal() ([]byte, error) }) error {
	as, ok := accept(c.http.Header.Get("Accept"), false)
	if !ok {
		return notAcceptable("only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf")
	}
	var encoded []byte
	if as.isJSON() {
		encoded = must(json.Marshal(document))
	} else {
		encoded = must(document.Marshal())
	}
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	if c.path[0] == "api" {
		gvk.Version = "" // The documents of the core group are older than versions.
	}
	write(c.w, http.StatusOK, as.format, gvk, encoded)
	return nil
}

func (g *group) plain() metav1.APIGroup {
	plain := metav1.APIGroup{Name: g.name}
	for _, version := range g.versions {
		plain.Versions = append(plain.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + version, Version: version})
	}
	plain.PreferredVersion = plain.Versions[0]
	return plain
}

// hasStatus reports whether a kind has the subresource status.
func (k Kind) hasStatus() bool {
	return !slices.Contains([]string{"configmaps", "events", "leases"}, k.Resource)
}

func (g *group) resources(version string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: schema.GroupVersion{Group: g.name, Version: version}.String()}
	for _, kind := range g.kinds[version] {
		plain := metav1.APIResource{
			Name: kind.Resource, SingularName: strings.ToLower(kind.Kind), Namespaced: kind.Namespaced, Kind: kind.Kind, Verbs: kind.verbs(),
		}
		list.APIResources = append(list.APIResources, plain)
		if kind.hasStatus() {
			plain.Name, plain.SingularName, plain.Verbs = plain.Name+"/status", "", metav1.Verbs{"get", "patch", "update"}
			list.APIResources = append(list.APIResources, plain)
		}
	}
	return list
}

// aggregated answers with all groups in one document.
func (c *call) aggregated(groups []*group) error {
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, version := range g.versions {
			v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, kind := range g.kinds[version] {
				v.Resources = append(v.Resources, kind.aggregated(version))
			}
			item.Versions = append(item.Versions, v)
		}
		list.Items = append(list.Items, item)
	}
	c.w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(c.w).Encode(list)
	return nil
}

func (k Kind) aggregated(version string) apidiscoveryv2.APIResourceDiscovery {
	gvk := &metav1.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind}
	if isBuiltIn([]string{"apis", k.Group}) {
		gvk = &metav1.GroupVersionKind{Kind: k.Kind} // The real server names no more.
	}
	scope := apidiscoveryv2.ScopeCluster
	if k.Namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	resource := apidiscoveryv2.APIResourceDiscovery{
		Resource: k.Resource, ResponseKind: gvk, Scope: scope, SingularResource: strings.ToLower(k.Kind), Verbs: k.verbs(),
	}
	if k.hasStatus() {
		resource.Subresources = []apidiscoveryv2.APISubresourceDiscovery{
			{Subresource: "status", ResponseKind: gvk, Verbs: metav1.Verbs{"get", "patch", "update"}},
		}
	}
	return resource
}

// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unique"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind describes how the API server serves one kind of object: the path, and whether its objects
// are in namespaces. It is immutable.
type Kind struct {
	Name       unique.Handle[schema.GroupKind]
	APIVersion string
	Resource   schema.GroupVersionResource
	Namespaced bool
	Listable   bool
}

func newKind(gv schema.GroupVersion, r resource) *Kind {
	return &Kind{
		Name:       unique.Make(gv.WithKind(r.ResponseKind.Kind).GroupKind()),
		APIVersion: unique.Make(gv.String()).Value(),
		Resource:   gv.WithResource(unique.Make(r.Resource).Value()),
		Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
		Listable:   slices.Contains(r.Verbs, "list"),
	}
}

// isReadable reports whether single objects of the resource can be read: it is not create-only.
func (r resource) isReadable() bool { return slices.Contains(r.Verbs, "get") }

// isBuiltIn reports whether the name of the kind's group is one of Kubernetes' own.
func (k *Kind) isBuiltIn() bool {
	group := k.Resource.Group
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// snapshot is all that the API server serves at one time. The catalogue replaces it as a whole, but
// takes a kind out of it that turns out not to be served.
type snapshot struct {
	// versions has the versions of each kind, the most preferred one first.
	versions map[schema.GroupKind][]*Kind
	// groups has the most preferred version of each kind, by the kind's name: core first, then
	// Kubernetes' own groups, then the others.
	groups map[string][]*Kind
	// incomplete has the groups whose aggregated API server could not be reached.
	incomplete map[string]bool
}

func newSnapshot() *snapshot {
	return &snapshot{
		versions:   make(map[schema.GroupKind][]*Kind),
		groups:     make(map[string][]*Kind),
		incomplete: make(map[string]bool),
	}
}

// addDocument adds what a document has. The preferred versions of a group come first in it.
func (s *snapshot) addDocument(from *document) {
	for _, group := range from.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Metadata.Name, Version: version.Version}
			for _, r := range version.Resources {
				s.add(gv, r)
			}
			if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				s.incomplete[gv.Group] = true
			}
		}
	}
}

func (s *snapshot) add(gv schema.GroupVersion, r resource) {
	gk := gv.WithKind(r.ResponseKind.Kind).GroupKind()
	isOfVersion := func(k *Kind) bool { return k.Resource.Version == gv.Version }
	if r.isReadable() && !slices.ContainsFunc(s.versions[gk], isOfVersion) {
		s.versions[gk] = append(s.versions[gk], newKind(gv, r))
	}
}

// index fills groups.
func (s *snapshot) index() {
	for gk, versions := range s.versions {
		s.groups[gk.Kind] = append(s.groups[gk.Kind], versions[0])
	}
	for _, kinds := range s.groups {
		slices.SortFunc(kinds, byPreference)
	}
}

// byPreference orders kinds of the same name.
func byPreference(a, b *Kind) int {
	rank := func(k *Kind) int {
		switch {
		case k.Resource.Group == "":
			return 0
		case k.isBuiltIn():
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Resource.Group, b.Resource.Group))
}

// find returns the kinds that a reference may mean, the best guess first. With an API version,
// there is at most one: as that version of the group serves it, else as the most preferred one
// does.
func (s *snapshot) find(apiVersion, name string) []*Kind {
	if apiVersion == "" {
		return s.groups[name]
	}
	gv := CurrentGroupVersion(apiVersion, name)
	versions := s.versions[gv.WithKind(name).GroupKind()]
	if len(versions) == 0 {
		return nil
	}
	best := max(0, slices.IndexFunc(versions, func(k *Kind) bool { return k.Resource.Version == gv.Version }))
	return versions[best : best+1 : best+1]
}

// mayLack reports whether a kind that the snapshot does not have may be served all the same.
func (s *snapshot) mayLack(apiVersion, name string) bool {
	if apiVersion == "" {
		return len(s.incomplete) > 0
	}
	return s.incomplete[CurrentGroupVersion(apiVersion, name).Group]
}

// drop takes out what is read from the kind's path.
func (s *snapshot) drop(unserved *Kind) {
	gk := unserved.Name.Value()
	same := func(k *Kind) bool { return k.Resource == unserved.Resource }
	s.versions[gk] = slices.DeleteFunc(slices.Clone(s.versions[gk]), same)
	s.groups[gk.Kind] = slices.DeleteFunc(slices.Clone(s.groups[gk.Kind]), same)
}

// coreVersion is the only version that the core group ever had.
const coreVersion = "v1"

// versionPattern matches a version of Kubernetes: v1, v2beta1.
var versionPattern = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// successors maps kinds that were first served in the group extensions to their present group.
// Kubernetes stopped serving them in extensions in 1.16 (Ingress: 1.22). Old event producers and
// owner references still use the old group.
var successors = map[string]string{
	"DaemonSet":         "apps",
	"Deployment":        "apps",
	"ReplicaSet":        "apps",
	"Ingress":           "networking.k8s.io",
	"NetworkPolicy":     "networking.k8s.io",
	"PodSecurityPolicy": "policy",
}

// parseAPIVersion parses an apiVersion field the way its writer meant it. A value without a slash
// is a version of the core group if it looks like a version. Otherwise it is a group without a
// version, which some producers write ("extensions", "apps").
func parseAPIVersion(apiVersion string) schema.GroupVersion {
	group, version, found := strings.Cut(apiVersion, "/")
	switch {
	case found:
		return schema.GroupVersion{Group: group, Version: version}
	case apiVersion == "" || apiVersion == coreVersion || versionPattern.MatchString(apiVersion):
		return schema.GroupVersion{Version: apiVersion}
	default:
		return schema.GroupVersion{Group: apiVersion}
	}
}

// CurrentGroupVersion returns the group and version of an apiVersion field. If the kind has moved to
// another group, it returns that group, without a version: the version of the old group means nothing
// in the new one.
func CurrentGroupVersion(apiVersion, kind string) schema.GroupVersion {
	gv := parseAPIVersion(apiVersion)
	if gv.Group != "extensions" {
		return gv
	}
	if successor, moved := successors[kind]; moved {
		return schema.GroupVersion{Group: successor}
	}
	return gv
}

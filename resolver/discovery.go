// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// acceptAggregated asks for all groups, versions and resources in one document,
// which servers since 1.27 have, and takes the list of groups from others.
const acceptAggregated = discovery.AcceptV2 + "," + discovery.AcceptV2Beta1 + "," + discovery.AcceptV1

// discoverer asks the API server what it serves, in the smallest documents that
// say so. It remembers nothing.
type discoverer struct {
	client rest.Interface
	gate   *gate
	now    func() time.Duration
}

// version returns the kinds that are served in one version of a group, by their
// names. There are none in a version that is not served.
func (d *discoverer) version(wanted context.Context, gv schema.GroupVersion) (map[string]*kind, error) {
	asked := d.now()
	var list metav1.APIResourceList
	err := d.read(wanted, pathOf(gv), "", &list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return kindsOf(gv, list.APIResources, asked), nil
}

// versions returns the versions of a group, the preferred one first. There are
// none of a group that is not served.
func (d *discoverer) versions(wanted context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{coreVersion}, nil
	}
	var served metav1.APIGroup
	err := d.read(wanted, "/apis/"+group, "", &served)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return versionsOf(served), nil
}

// everything returns the kinds of all groups but core by their names: one for
// each group that has it, the best guess first.
func (d *discoverer) everything(wanted context.Context) (map[string][]*kind, error) {
	asked := d.now()
	var document struct {
		metav1.TypeMeta `json:",inline"`
		Items           []apidiscoveryv2.APIGroupDiscovery `json:"items"`
		Groups          []metav1.APIGroup                  `json:"groups"`
	}
	if err := d.read(wanted, "/apis", acceptAggregated, &document); err != nil {
		return nil, err
	}
	all := make(map[string][]*kind)
	for _, group := range document.Items {
		addKinds(all, aggregatedKinds(group, asked))
	}
	for _, group := range document.Groups {
		kinds, err := d.group(wanted, group)
		if errors.Is(err, errNotSent) {
			return nil, err
		}
		// A group that fails (an aggregated API server is down) hides no other.
		addKinds(all, kinds)
	}
	for _, kinds := range all {
		slices.SortStableFunc(kinds, builtInFirst)
	}
	return all, nil
}

// group returns the kinds of a group, each in the most preferred version.
func (d *discoverer) group(wanted context.Context, group metav1.APIGroup) (map[string]*kind, error) {
	all := make(map[string]*kind)
	for _, version := range versionsOf(group) {
		kinds, err := d.version(wanted, schema.GroupVersion{Group: group.Name, Version: version})
		if err != nil {
			return all, err
		}
		addMissing(all, kinds)
	}
	return all, nil
}

// aggregatedKinds returns the kinds of a group, each in the most preferred
// version.
func aggregatedKinds(group apidiscoveryv2.APIGroupDiscovery, learned time.Duration) map[string]*kind {
	all := make(map[string]*kind)
	for _, version := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
		resources := make([]metav1.APIResource, 0, len(version.Resources))
		for _, r := range version.Resources {
			resources = append(resources, plainResource(r))
		}
		addMissing(all, kindsOf(gv, resources, learned))
	}
	return all
}

// plainResource returns what an aggregated document says of a resource in the
// form that other discovery documents have.
func plainResource(r apidiscoveryv2.APIResourceDiscovery) metav1.APIResource {
	plain := metav1.APIResource{Name: r.Resource, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: r.Verbs}
	if r.ResponseKind != nil {
		plain.Kind = r.ResponseKind.Kind
	}
	return plain
}

// read gets one document. accept may be empty.
func (d *discoverer) read(wanted context.Context, path, accept string, into any) error {
	return d.gate.send(wanted, func(ctx context.Context) error {
		request := d.client.Get().AbsPath(path)
		if accept != "" {
			request.SetHeader("Accept", accept)
		}
		document, err := request.DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(document, into)
	})
}

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// versionsOf returns the names of the group's versions, the preferred one first.
func versionsOf(group metav1.APIGroup) []string {
	var versions []string
	if preferred := group.PreferredVersion.Version; preferred != "" {
		versions = append(versions, preferred)
	}
	for _, v := range group.Versions {
		if !slices.Contains(versions, v.Version) {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

func addMissing(to, from map[string]*kind) {
	for name, k := range from {
		if _, found := to[name]; !found {
			to[name] = k
		}
	}
}

func addKinds(to map[string][]*kind, from map[string]*kind) {
	for name, k := range from {
		to[name] = append(to[name], k)
	}
}

// builtInFirst orders kinds of the same name: Kubernetes' own groups come before
// those that somebody installed.
func builtInFirst(a, b *kind) int {
	switch {
	case isBuiltIn(a) == isBuiltIn(b):
		return 0
	case isBuiltIn(a):
		return -1
	default:
		return 1
	}
}

// isBuiltIn reports whether the kind's group is, by its name, one of Kubernetes.
func isBuiltIn(k *kind) bool {
	group := k.resource.Group
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

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

// acceptAggregated requests all groups, versions and resources in one document, which servers since
// 1.27 have. From other servers it accepts the list of groups.
const acceptAggregated = discovery.AcceptV2 + "," + discovery.AcceptV2Beta1 + "," + discovery.AcceptV1

// discoverer asks the API server what it serves, with the smallest documents that contain it. It
// caches nothing.
type discoverer struct {
	client  rest.Interface
	limiter *limiter
	now     func() time.Duration
}

// version returns the kinds of one version of a group, by name. If the version is not served, there
// are none.
func (d *discoverer) version(ctx context.Context, gv schema.GroupVersion) (map[string]*kind, error) {
	requestedAt := d.now()
	var list metav1.APIResourceList
	err := d.read(ctx, pathOf(gv), "", &list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return kindsOf(gv, list.APIResources, requestedAt), nil
}

// versions returns the versions of a group, the preferred one first. If the group is not served,
// there are none.
func (d *discoverer) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{coreVersion}, nil
	}
	var served metav1.APIGroup
	err := d.read(ctx, "/apis/"+group, "", &served)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return versionsOf(served), nil
}

// everything returns the kinds of all groups except core, by name: one for each group that has the
// kind, the best guess first.
func (d *discoverer) everything(ctx context.Context) (map[string][]*kind, error) {
	requestedAt := d.now()
	var document struct {
		metav1.TypeMeta `json:",inline"`
		Items           []apidiscoveryv2.APIGroupDiscovery `json:"items"`
		Groups          []metav1.APIGroup                  `json:"groups"`
	}
	if err := d.read(ctx, "/apis", acceptAggregated, &document); err != nil {
		return nil, err
	}
	all := make(map[string][]*kind)
	for _, group := range document.Items {
		addKinds(all, aggregatedKinds(group, requestedAt))
	}
	for _, group := range document.Groups {
		kinds, err := d.group(ctx, group)
		if errors.Is(err, errNotSent) {
			return nil, err
		}
		// A group that fails (an aggregated API server is down) must not hide the others.
		addKinds(all, kinds)
	}
	for _, kinds := range all {
		slices.SortStableFunc(kinds, builtInFirst)
	}
	return all, nil
}

// group returns the kinds of a group, each in its most preferred version.
func (d *discoverer) group(ctx context.Context, group metav1.APIGroup) (map[string]*kind, error) {
	all := make(map[string]*kind)
	for _, version := range versionsOf(group) {
		kinds, err := d.version(ctx, schema.GroupVersion{Group: group.Name, Version: version})
		if err != nil {
			return all, err
		}
		addMissing(all, kinds)
	}
	return all, nil
}

// aggregatedKinds returns the kinds of a group, each in its most preferred version.
func aggregatedKinds(group apidiscoveryv2.APIGroupDiscovery, discoveredAt time.Duration) map[string]*kind {
	all := make(map[string]*kind)
	for _, version := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
		resources := make([]metav1.APIResource, 0, len(version.Resources))
		for _, r := range version.Resources {
			resources = append(resources, plainResource(r))
		}
		addMissing(all, kindsOf(gv, resources, discoveredAt))
	}
	return all
}

// plainResource converts a resource of an aggregated document to the form of the other discovery
// documents.
func plainResource(r apidiscoveryv2.APIResourceDiscovery) metav1.APIResource {
	plain := metav1.APIResource{Name: r.Resource, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: r.Verbs}
	if r.ResponseKind != nil {
		plain.Kind = r.ResponseKind.Kind
	}
	return plain
}

// read gets one document. accept may be empty.
func (d *discoverer) read(ctx context.Context, path, accept string, into any) error {
	return d.limiter.send(ctx, func(ctx context.Context) error {
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

// builtInFirst orders kinds of the same name: Kubernetes' own groups come first.
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

// isBuiltIn reports whether the name of the kind's group is one of Kubernetes' own.
func isBuiltIn(k *kind) bool {
	group := k.resource.Group
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

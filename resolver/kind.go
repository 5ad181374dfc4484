// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"slices"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is how the API server serves one kind of object: the path, and whether its objects are in
// namespaces. It is immutable.
type kind struct {
	name       unique.Handle[schema.GroupKind]
	apiVersion string
	resource   schema.GroupVersionResource
	namespaced bool
	listable   bool
	watchable  bool

	discoveredAt time.Duration // when the discovery request was sent
}

func newKind(gv schema.GroupVersion, r metav1.APIResource, discoveredAt time.Duration) *kind {
	return &kind{
		name:         unique.Make(gv.WithKind(r.Kind).GroupKind()),
		apiVersion:   unique.Make(gv.String()).Value(),
		resource:     gv.WithResource(strings.Clone(r.Name)),
		namespaced:   r.Namespaced,
		listable:     slices.Contains(r.Verbs, "list"),
		watchable:    slices.Contains(r.Verbs, "watch"),
		discoveredAt: discoveredAt,
	}
}

// isReadable reports whether single objects of the resource can be read: it is not a subresource,
// and not create-only.
func isReadable(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "get")
}

// hasSamePath reports whether both kinds are read from the same path.
func (k *kind) hasSamePath(other *kind) bool {
	return k.resource == other.resource && k.namespaced == other.namespaced
}

// kindsOf returns the readable kinds among the resources of a group version.
func kindsOf(gv schema.GroupVersion, resources []metav1.APIResource, discoveredAt time.Duration) map[string]*kind {
	kinds := make(map[string]*kind, len(resources))
	for _, r := range resources {
		if _, known := kinds[r.Kind]; !known && isReadable(r) {
			kinds[r.Kind] = newKind(gv, r, discoveredAt)
		}
	}
	return kinds
}

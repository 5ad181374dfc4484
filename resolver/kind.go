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

// kind is how the API server serves one kind of object: where it is read, and
// whether its objects are in namespaces. Immutable.
type kind struct {
	name       unique.Handle[schema.GroupKind]
	apiVersion string
	resource   schema.GroupVersionResource
	namespaced bool
	listable   bool
	watchable  bool

	learned time.Duration // when the API server was asked
}

func newKind(gv schema.GroupVersion, r metav1.APIResource, learned time.Duration) *kind {
	return &kind{
		name:       unique.Make(gv.WithKind(r.Kind).GroupKind()),
		apiVersion: unique.Make(gv.String()).Value(),
		resource:   gv.WithResource(strings.Clone(r.Name)),
		namespaced: r.Namespaced,
		listable:   slices.Contains(r.Verbs, "list"),
		watchable:  slices.Contains(r.Verbs, "watch"),
		learned:    learned,
	}
}

// isReadable reports whether the resource is one whose objects can be read one
// by one: not a subresource, and not one that can only be created.
func isReadable(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "get")
}

// readsLike reports whether both are read from the same paths.
func (k *kind) readsLike(other *kind) bool {
	return k.resource == other.resource && k.namespaced == other.namespaced
}

// kindsOf returns the readable kinds among the resources of a group's version.
func kindsOf(gv schema.GroupVersion, resources []metav1.APIResource, learned time.Duration) map[string]*kind {
	kinds := make(map[string]*kind, len(resources))
	for _, r := range resources {
		if _, twice := kinds[r.Kind]; !twice && isReadable(r) {
			kinds[r.Kind] = newKind(gv, r, learned)
		}
	}
	return kinds
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is one object of a chain. Objects are immutable and shared between chains: callers must
// not change them or their maps.
type Object struct {
	// APIVersion is a version in which the API server serves the object: the version of the
	// reference if it is served, else another version of the same group. If the object was not
	// found, it is the version of the reference.
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped kinds
	Name       string
	// UID is the object's real UID. If the object was not found, it is the UID of the reference. It
	// is empty if neither is known.
	UID types.UID

	// Labels and Annotations hold only the keys that Config keeps. They are nil if no key is kept,
	// or if the object is known only from a reference.
	Labels      map[string]string
	Annotations map[string]string

	// owner is none if the object has no owner, or if its owner is not known. Objects with the same
	// owner share it.
	owner unique.Handle[owner]

	found bool // see Found
}

// GroupKind returns the object's API group and kind. A kind alone is not unique, because groups can
// have kinds with the same name. If a kind moved out of the group extensions, GroupKind returns its
// present group.
func (o *Object) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: currentGroupVersion(o.APIVersion, o.Kind).Group, Kind: o.Kind}
}

// servedAs returns the object as another version of its group serves it. The metadata is the same
// in all versions.
func (o *Object) servedAs(apiVersion string) *Object {
	if o.APIVersion == apiVersion {
		return o
	}
	other := *o
	other.APIVersion = apiVersion
	return &other
}

// is reports whether both are the same object. UIDs decide; if one is missing, the name decides.
func (o *Object) is(other *Object) bool {
	if o.UID != "" && other.UID != "" {
		return o.UID == other.UID
	}
	return o.Name == other.Name && o.Namespace == other.Namespace && o.GroupKind() == other.GroupKind()
}

// Chain is an object and its owners.
type Chain struct {
	// Objects always holds the requested object. Its owners follow; each one owns the object before
	// it.
	Objects []*Object

	// Resolution reports whether the chain reaches its end, and if not, why.
	Resolution Resolution
}

// EndKnown reports whether the last object of the chain has no owner.
func (c Chain) EndKnown() bool {
	return c.Resolution == Complete || c.Resolution == Ambiguous
}

// End returns the object at the top of the chain, which has no owner; nil if it is not known.
func (c Chain) End() *Object {
	if !c.EndKnown() || len(c.Objects) == 0 {
		return nil
	}
	return c.Objects[len(c.Objects)-1]
}

// Resolution is how far the resolver could follow a chain.
type Resolution string

const (
	// Complete means that the last object of the chain has no owner.
	Complete Resolution = "complete"
	// Ambiguous means that the chain is complete, but follows the first of several owners of which
	// none is the controller.
	Ambiguous Resolution = "ambiguous"
	// NotFound means that the last object of the chain does not exist, that another object has its
	// name, or that its kind is not served.
	NotFound Resolution = "not_found"
	// Forbidden means that the permission to read the last object of the chain is missing.
	Forbidden Resolution = "forbidden"
	// Timeout means that the last object of the chain was not found in time.
	Timeout Resolution = "timeout"
	// Unavailable means that the request for the last object of the chain failed, or that the
	// resolver is closed.
	Unavailable Resolution = "unavailable"
	// Cycle means that the owner of the last object is already in the chain.
	Cycle Resolution = "cycle"
	// Depth means that the last object has an owner beyond Config.MaxDepth.
	Depth Resolution = "depth"
)

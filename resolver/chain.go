// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is one object of a chain. Objects are immutable and shared between
// chains: callers must not write to them or to their maps.
type Object struct {
	// APIVersion is a version that the API server serves the object in: the one
	// that the reference names if it is served, else another of the same group.
	// Of an object that was not found it is what the reference says.
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped kinds
	Name       string
	// UID is the object's real UID, or what the reference says when the object
	// was not found. It is empty when neither is known.
	UID types.UID

	// Labels and Annotations hold only the keys that Config keeps. They are nil
	// when nothing was kept and when the object is known from a reference alone.
	Labels      map[string]string
	Annotations map[string]string

	// owner is none when nothing owns the object, and when that is not known.
	// Objects with the same owner share it.
	owner unique.Handle[owner]
}

// GroupKind returns the object's API group and kind, which together name what
// the object is. (A kind alone names nothing: groups share kinds.) A kind that
// moved on from the group extensions is returned with its present group.
func (o *Object) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: currentGroupVersion(o.APIVersion, o.Kind).Group, Kind: o.Kind}
}

// servedAs returns the object as another version of its group serves it. The
// metadata is the same in all.
func (o *Object) servedAs(apiVersion string) *Object {
	if o.APIVersion == apiVersion {
		return o
	}
	other := *o
	other.APIVersion = apiVersion
	return &other
}

// is reports whether both objects are the same one. UIDs decide; where one is
// missing, the name does.
func (o *Object) is(other *Object) bool {
	if o.UID != "" && other.UID != "" {
		return o.UID == other.UID
	}
	return o.Name == other.Name && o.Namespace == other.Namespace && o.GroupKind() == other.GroupKind()
}

// Chain is an object and what owns it.
type Chain struct {
	// Objects holds the object that was asked for, always, and then its owners,
	// each one the owner of the one before it.
	Objects []*Object

	// Resolution says whether the chain reaches its end, and if not, why.
	Resolution Resolution
}

// EndKnown reports whether the last object of the chain is the one that
// nothing owns.
func (c Chain) EndKnown() bool {
	return c.Resolution == Complete || c.Resolution == Ambiguous
}

// End returns the object at the top of the chain, which nothing owns, or nil
// when that is not known.
func (c Chain) End() *Object {
	if !c.EndKnown() || len(c.Objects) == 0 {
		return nil
	}
	return c.Objects[len(c.Objects)-1]
}

// Resolution says how far a chain was followed.
type Resolution string

const (
	// Complete chains end at an object that nothing owns.
	Complete Resolution = "complete"
	// Ambiguous chains are complete, but go through the first of several owners
	// of which none is the controller.
	Ambiguous Resolution = "ambiguous"
	// NotFound means that the last object of the chain does not exist, that
	// another object bears its name, or that its kind is not served.
	NotFound Resolution = "not_found"
	// Forbidden means that the last object of the chain may not be read.
	Forbidden Resolution = "forbidden"
	// Timeout means that the last object of the chain was not found in time.
	Timeout Resolution = "timeout"
	// Unavailable means that the API server failed to answer for the last object
	// of the chain, or that the resolver is closed.
	Unavailable Resolution = "unavailable"
	// Cycle means that the owner of the last object stands in the chain already.
	Cycle Resolution = "cycle"
	// Depth means that the last object has an owner beyond Config.MaxDepth.
	Depth Resolution = "depth"
)

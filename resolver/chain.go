// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is one object of a chain. Objects are immutable and shared between
// chains: callers must not write to the maps.
type Object struct {
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped kinds
	Name       string
	UID        types.UID

	// Labels and Annotations hold only the keys that Config keeps. Both are nil
	// when nothing was kept and when the object is known from a reference alone.
	Labels      map[string]string
	Annotations map[string]string
}

// GroupKind returns the object's API group and kind, which together name what
// the object is. A kind alone names nothing: groups share kinds.
func (o *Object) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: groupOf(o.APIVersion), Kind: o.Kind}
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
	// Complete: the chain ends at an object that nothing owns.
	Complete Resolution = "complete"
	// Ambiguous: complete, but through the first of several owners of which
	// none is the controller.
	Ambiguous Resolution = "ambiguous"
	// NotFound: the last object of the chain does not exist, or another object
	// bears its name, or its kind is not served.
	NotFound Resolution = "not_found"
	// Forbidden: the last object of the chain may not be read.
	Forbidden Resolution = "forbidden"
	// Timeout: the last object of the chain was not found in time.
	Timeout Resolution = "timeout"
	// Unavailable: the API server could not say.
	Unavailable Resolution = "unavailable"
	// Cycle: the last object's owner stands in the chain already.
	Cycle Resolution = "cycle"
	// Depth: the last object has an owner beyond Config.MaxDepth.
	Depth Resolution = "depth"
)

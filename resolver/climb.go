// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// climb follows one chain from the requested object to the top.
type climb struct {
	maxDepth  int
	objects   []*Object
	ambiguous bool

	search     search     // for the next object
	resolution Resolution // empty until the climb is done
}

func newClimb(from Reference, maxDepth int) climb {
	return climb{maxDepth: maxDepth, objects: make([]*Object, 0, 4), search: search{ref: from}}
}

func (c *climb) done() bool { return c.resolution != "" }

func (c *climb) chain() Chain { return Chain{Objects: c.objects, Resolution: c.resolution} }

// step takes the result of the search. It starts the search for the next owner unless the climb is
// done.
func (c *climb) step() {
	found := c.search.object
	switch {
	case found == nil:
		c.objects = append(c.objects, c.search.fromReference())
		c.resolution = c.search.failure
	case c.has(found):
		c.resolution = Cycle
	default:
		c.objects = append(c.objects, found)
		c.toOwner(found)
	}
}

// toOwner starts the search for the owner of the last object.
func (c *climb) toOwner(of *Object) {
	if of.owner == none {
		c.resolution = Complete
		if c.ambiguous {
			c.resolution = Ambiguous
		}
		return
	}
	up := of.owner.Value()
	c.ambiguous = c.ambiguous || up.ambiguous
	c.search = search{
		ref:       Reference{APIVersion: up.apiVersion, Kind: up.kind, Name: up.name, UID: up.uid},
		dependent: of,
	}
	switch {
	case c.hasUID(up.uid):
		c.resolution = Cycle
	case len(c.objects) > c.maxDepth:
		c.resolution = Depth
	}
}

// hasUID reports whether an object with the UID is already in the chain.
func (c *climb) hasUID(uid types.UID) bool {
	return uid != "" && slices.ContainsFunc(c.objects, func(o *Object) bool { return o.UID == uid })
}

// has reports whether the object is already in the chain.
func (c *climb) has(object *Object) bool {
	return slices.ContainsFunc(c.objects, object.is)
}

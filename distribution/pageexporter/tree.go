// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// branchesShown bounds the objects of a tree.
const branchesShown = 100

// branch is an object with the objects that it owns.
type branch struct {
	Object  incident.Object
	Count   int64 // occurrences on the object itself
	Warning bool  // one of them is a warning
	Owned   []*branch
}

// treeOf returns the chains of a workload's events as one tree.
func treeOf(events []event) *branch {
	top, objects := &branch{Object: events[0].chain[0]}, 1
	for _, e := range events {
		b := top
		for _, o := range e.chain[1:] {
			if b = b.owned(o, &objects); b == nil {
				break
			}
		}
		if b != nil {
			b.Count, b.Warning = b.Count+e.Count, b.Warning || e.Warning
		}
	}
	return top
}

// owned returns the branch of an object that this one owns; nil if the tree is full.
func (b *branch) owned(o incident.Object, objects *int) *branch {
	i, found := slices.BinarySearchFunc(b.Owned, o, func(other *branch, o incident.Object) int {
		return cmp.Compare(other.Object.String(), o.String())
	})
	if found {
		return b.Owned[i]
	}
	if *objects++; *objects > branchesShown {
		return nil
	}
	b.Owned = slices.Insert(b.Owned, i, &branch{Object: o})
	return b.Owned[i]
}

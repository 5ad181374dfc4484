// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"time"
)

// branch is an object with the objects that it owns.
type branch struct {
	Object     object
	All        int64 // occurrences on the object itself
	Warnings   int64
	Resolution string // k8s.owner.resolution; empty if the chain is complete
	Owned      []*branch
}

// treeOf returns the chains of a workload's objects as one tree. If there are many objects, it
// shows those with warnings, and then those with the latest events.
func treeOf(s selection, f filter, start time.Time) (top *branch, hidden int) {
	members := happened(s.members, f, start)
	if f.Workload == "" {
		hidden = max(0, len(members)-objectsShown)
		members = members[:len(members)-hidden]
	}
	top = &branch{Object: s.top}
	for _, m := range members {
		b := top
		for _, o := range m.chain[1:] {
			b = b.owned(o)
		}
		b.All, b.Warnings = m.all, m.warnings
		if m.resolution != "complete" {
			b.Resolution = m.resolution
		}
	}
	return top, hidden
}

// active is a member with its occurrences that pass the filter.
type active struct {
	*member
	all, warnings int64
}

// happened returns the members with such occurrences: those with warnings first, and then those
// with the latest events.
func happened(members []*member, f filter, start time.Time) (sorted []active) {
	for _, m := range members {
		if all, warnings := total(m.since(start, f)); all > 0 {
			sorted = append(sorted, active{m, all, warnings})
		}
	}
	slices.SortFunc(sorted, func(a, b active) int {
		return cmp.Or(warningsFirst(a.warnings > 0, b.warnings > 0), b.last.Compare(a.last), cmp.Compare(a.path, b.path))
	})
	return sorted
}

// owned returns the branch of an object that this one owns.
func (b *branch) owned(o object) *branch {
	i, found := slices.BinarySearchFunc(b.Owned, o, func(other *branch, o object) int {
		return cmp.Compare(other.Object.String(), o.String())
	})
	if !found {
		b.Owned = slices.Insert(b.Owned, i, &branch{Object: o})
	}
	return b.Owned[i]
}

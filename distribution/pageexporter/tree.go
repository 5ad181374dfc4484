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
// shows those with the latest events.
func treeOf(w *workload, f filter, start time.Time) (top *branch, hidden int) {
	var members []*member
	for _, m := range w.objects {
		if m.timeline.has(start, f) {
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b *member) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.path, b.path))
	})
	if f.Workload == "" {
		hidden = max(0, len(members)-objectsShown)
		members = members[:len(members)-hidden]
	}
	top = &branch{Object: w.top}
	for _, m := range members {
		b := top
		for _, o := range m.chain[1:] {
			b = b.owned(o)
		}
		b.All, b.Warnings = m.timeline.total(start, f)
		if m.resolution != "complete" {
			b.Resolution = m.resolution
		}
	}
	return top, hidden
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

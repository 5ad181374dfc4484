// SPDX-License-Identifier: Apache-2.0

// Package evict bounds memory that namespaces share, so that nobody displaces what others have.
package evict

import (
	"cmp"
	"maps"
	"slices"
)

// Entry is something that takes memory.
type Entry[V any] struct {
	Namespace string
	Bytes     int // about
	Value     V
}

// Largest drops entries until a number of bytes is free: always the first one of the namespace that
// takes most. drop returns how many bytes it has freed.
func Largest[V any](entries []Entry[V], bytes int, drop func(V) int) {
	spaces, sizes := map[string][]V{}, map[string]int{}
	for _, e := range entries {
		spaces[e.Namespace] = append(spaces[e.Namespace], e.Value)
		sizes[e.Namespace] += e.Bytes
	}
	for bytes > 0 && len(spaces) > 0 {
		largest := slices.MaxFunc(slices.Collect(maps.Keys(spaces)), func(a, b string) int {
			return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
		})
		freed := drop(spaces[largest][0])
		bytes, sizes[largest] = bytes-freed, sizes[largest]-freed
		if spaces[largest] = spaces[largest][1:]; len(spaces[largest]) == 0 {
			delete(spaces, largest)
		}
	}
}

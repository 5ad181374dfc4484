// SPDX-License-Identifier: Apache-2.0

package resolver

import "github.com/hashicorp/golang-lru/v2/simplelru"

// newLRU returns a map that holds at most size entries and drops the least recently used ones. It
// does not lock. Callers that need an age store it in the value: golang-lru's expirable cache
// starts a goroutine that never ends, and has a clock of its own.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	entries, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // The size is not positive.
	}
	return entries
}

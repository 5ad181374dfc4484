// SPDX-License-Identifier: Apache-2.0

package resolver

import "github.com/hashicorp/golang-lru/v2/simplelru"

// The number of objects in the cache is bounded, but any user may write tens of KiB of labels and
// annotations to each. So the memory of those with many is bounded, too.
const (
	// minLarge is the memory from which the labels or annotations of an object count as large. Those
	// that workloads usually need take less.
	minLarge = 2 << 10
	// maxLarge limits the memory of the labels and annotations of all large objects together. Only
	// other large objects make room for one, so they do not displace small ones.
	maxLarge = 24 << 20
	// mapEntrySize is the memory of an entry of a map, without its texts.
	mapEntrySize = 40
)

// largeSize returns how much memory the labels or annotations of an object take; 0 if this is little.
func largeSize(texts map[string]string) (size int) {
	for key, value := range texts {
		size += len(key) + len(value) + mapEntrySize
	}
	if size < minLarge {
		return 0
	}
	return size
}

// largeEntries are the entries of the cache whose objects are large, in the order of last use.
type largeEntries struct {
	sizes *simplelru.LRU[*entry, int]
	size  int
}

func newLargeEntries() *largeEntries {
	return &largeEntries{sizes: newLRU[*entry, int](maxLarge/minLarge+1, nil)}
}

// add adds an entry that is not there yet, if it is large.
func (l *largeEntries) add(e *entry) {
	if size := largeSize(e.Labels) + largeSize(e.Annotations); size > 0 {
		l.sizes.Add(e, size)
		l.size += size
	}
}

// excess returns the entry to remove next, or false if all fit.
func (l *largeEntries) excess() (oldest *entry, ok bool) {
	if l.size > maxLarge {
		oldest, _, ok = l.sizes.GetOldest()
	}
	return oldest, ok
}

// use makes the entry the one that was used last, if it is large.
func (l *largeEntries) use(e *entry) { l.sizes.Get(e) }

// remove must be called when an entry is removed.
func (l *largeEntries) remove(e *entry) {
	if size, ok := l.sizes.Peek(e); ok {
		l.sizes.Remove(e)
		l.size -= size
	}
}

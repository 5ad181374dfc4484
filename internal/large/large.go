// SPDX-License-Identifier: Apache-2.0

// Package large bounds the memory of objects with many or long labels and annotations. The number
// of objects is bounded where they are kept, but any user may write tens of KiB to each.
package large

import "github.com/hashicorp/golang-lru/v2/simplelru"

const (
	// least is the memory from which the labels or annotations of an object count as large. Those
	// that workloads usually need take less.
	least = 2 << 10
	// Most limits the memory of the labels and annotations of all large objects together. Only
	// other large objects make room for one, so they do not displace small ones.
	Most = 24 << 20
	// ofEntry is the memory of an entry of a map, without its texts.
	ofEntry = 40
)

// Size returns how much memory the labels or annotations of an object take; 0 if this is little.
func Size(entries map[string]string) (size int) {
	for key, value := range entries {
		size += len(key) + len(value) + ofEntry
	}
	if size < least {
		return 0
	}
	return size
}

// Objects are the large ones among some objects, in the order of last use. It is not safe for
// concurrent use.
type Objects[K comparable] struct {
	sizes *simplelru.LRU[K, int]
	size  int
}

// New returns Objects without any.
func New[K comparable]() *Objects[K] {
	sizes, err := simplelru.NewLRU[K, int](Most/least+1, nil)
	if err != nil {
		panic(err) // The size is positive.
	}
	return &Objects[K]{sizes: sizes}
}

// Add adds an object that is not there yet, if it is large.
func (o *Objects[K]) Add(k K, labels, annotations map[string]string) {
	if size := Size(labels) + Size(annotations); size > 0 {
		o.sizes.Add(k, size)
		o.size += size
	}
}

// Excess returns the object to remove next, or false if all objects fit.
func (o *Objects[K]) Excess() (oldest K, ok bool) {
	if o.size > Most {
		oldest, _, ok = o.sizes.GetOldest()
	}
	return oldest, ok
}

// Use makes the object the one that was used last, if it is large.
func (o *Objects[K]) Use(k K) { o.sizes.Get(k) }

// Remove must be called when an object is removed.
func (o *Objects[K]) Remove(k K) {
	if size, ok := o.sizes.Peek(k); ok {
		o.sizes.Remove(k)
		o.size -= size
	}
}

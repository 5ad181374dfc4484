// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRefusals is the maximum number of collections with refused requests.
const maxRefusals = 4096

// refusals remembers the collections for which the API server refuses a kind of request. So the
// resolver does not repeat the request for every object of such a collection. It may be used
// concurrently.
type refusals struct {
	// limit is the number of consecutive refusals after which the whole collection counts as
	// refused. Permissions usually cover a collection, but may cover single names only.
	limit int
	now   func() time.Duration

	mu      sync.Mutex
	entries *simplelru.LRU[collection, refusal] // guarded by mu
}

// refusal is the state of one collection.
type refusal struct {
	count int
	until time.Duration
}

func newRefusals(limit int, now func() time.Duration) *refusals {
	return &refusals{limit: limit, now: now, entries: newLRU[collection, refusal](maxRefusals)}
}

// has reports whether the API server would refuse a request in the collection.
func (r *refusals) has(in collection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, _ := r.entries.Get(in)
	return last.count >= r.limit && r.now() < last.until
}

// note records the result of a request in the collection.
func (r *refusals) note(in collection, failure Resolution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failure != Forbidden {
		r.entries.Remove(in)
		return
	}
	last, _ := r.entries.Get(in)
	if r.now() >= last.until {
		last.count = 0
	}
	r.entries.Add(in, refusal{count: last.count + 1, until: r.now() + stableFailureTTL})
}

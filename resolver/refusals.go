// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// mostRefusals bounds the places that are remembered.
const mostRefusals = 4096

// refusals remembers the places where the API server refuses a kind of request,
// so that it is not asked the same for every object of them. It may be used
// concurrently.
type refusals struct {
	// limit is how many refusals in a row make a place one. Permissions are
	// mostly given for a place as a whole, but may be given for single names.
	limit int
	now   func() time.Duration

	mu     sync.Mutex
	places *simplelru.LRU[place, refusal] // guarded by mu
}

// refusal is what is remembered of one place.
type refusal struct {
	count int
	until time.Duration
}

func newRefusals(limit int, now func() time.Duration) *refusals {
	return &refusals{limit: limit, now: now, places: newLRU[place, refusal](mostRefusals)}
}

// has reports whether a request in the place would be refused.
func (r *refusals) has(in place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, _ := r.places.Get(in)
	return last.count >= r.limit && r.now() < last.until
}

// note takes the outcome of a request in the place.
func (r *refusals) note(in place, failure Resolution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failure != Forbidden {
		r.places.Remove(in)
		return
	}
	last, _ := r.places.Get(in)
	if r.now() >= last.until {
		last.count = 0
	}
	r.places.Add(in, refusal{count: last.count + 1, until: r.now() + settledFailure})
}

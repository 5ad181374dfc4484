// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"strings"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// settledFailure is how long a failure is remembered that will hardly change
	// at once: an object that is not there, or may not be read.
	settledFailure = time.Minute
	// passingFailure is how long a failure is remembered that may be over soon.
	passingFailure = 5 * time.Second
)

// answer is what is known of one object: the object, or why it is not known.
type answer struct {
	object  *Object
	failure Resolution // empty when there is an object

	// askedFor is the UID of the reference that the request was made for.
	askedFor types.UID

	// unserved: the failure is about the request's path, not about the object,
	// so the kind is no longer served the way it was.
	unserved bool
}

// proves reports whether a reply settles what is known of the object with the
// UID. A request that was made for another may be older than the object, so it
// does not prove that the object isn't there.
func (a answer) proves(uid types.UID) bool {
	switch {
	case a.askedFor == uid:
		return true
	case a.object != nil:
		return uid == "" || a.object.UID == uid
	default:
		return a.failure != NotFound
	}
}

// record is what the cache remembers of one object, or of one failed lookup.
type record struct {
	Object // of a failed lookup only Name and UID: what was asked for
	place  place

	newer, staler *record // neighbours in the order of last use
	older         *record // the next one at the same address

	checked time.Duration // when the question was asked whose answer this is
	used    time.Duration
	failure Resolution // of the last lookup; empty when it found the object
}

// known reports whether the record holds an object rather than a failure alone.
func (r *record) known() bool { return r.Kind != "" }

// answer returns what the record says. An object that is known stays the answer
// when a later lookup failed.
func (r *record) answer() answer {
	if r.known() {
		return answer{object: &r.Object}
	}
	return answer{failure: r.failure}
}

// cache remembers objects and failed lookups, a bounded number of them. It may
// be used concurrently.
type cache struct {
	size int
	ttl  time.Duration
	now  func() time.Duration

	// mu guards everything below and, of every record, all but its Object.
	mu      sync.Mutex
	records map[address]*record // the newest bearer of the name first
	count   int
	order   record // a ring: newer is the least, staler the most recently used
}

func newCache(size int, ttl time.Duration, now func() time.Duration) *cache {
	c := &cache{size: size, ttl: ttl, now: now, records: make(map[address]*record)}
	c.order.newer, c.order.staler = &c.order, &c.order
	return c
}

// find returns what need not be asked: an object or a failure that is known and
// not too old. An empty UID means the newest object at the address.
func (c *cache) find(at address, uid types.UID) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.recordLocked(at, uid)
	if r == nil || c.now()-r.checked >= c.lifetime(r.failure) || c.forgottenLocked(r) {
		return answer{}, false
	}
	c.touchLocked(r)
	return r.answer(), true
}

// knows reports whether the cache holds an object that find may return now or
// after it was asked for again.
func (c *cache) knows(at address, uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.recordLocked(at, uid)
	return r != nil && r.known()
}

// store remembers an object that was found in answer to a question asked at the
// given time, and returns it.
func (c *cache) store(at address, found Object, asked time.Duration) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.recordLocked(at, found.UID)
	if known != nil && known.known() && known.checked > asked {
		// The answer to an older question came late.
		return &known.Object
	}
	c.forgetFailuresLocked(at, found.UID)
	if known != nil && known.known() {
		c.removeLocked(known)
	}
	r := &record{Object: found, place: at.place, checked: asked, used: c.now()}
	c.addLocked(at, r)
	return &r.Object
}

// fail says what is to be made of a failed lookup: an object that was known
// before is served on, unless it is gone and was not used for the cache's TTL.
// With remember, the object is not asked for again for a while.
func (c *cache) fail(at address, uid types.UID, failure Resolution, remember bool) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.recordLocked(at, uid)
	if r != nil && r.known() && failure == NotFound && c.now()-r.used > c.ttl {
		c.removeLocked(r)
		r = nil
	}
	if r == nil && remember {
		r = &record{Object: Object{Name: strings.Clone(at.name), UID: types.UID(strings.Clone(string(uid)))}, place: at.place}
		c.addLocked(at, r)
	}
	if r == nil {
		return answer{failure: failure}
	}
	if remember {
		r.failure, r.checked = failure, c.now()
	}
	c.touchLocked(r)
	if r.known() {
		return r.answer()
	}
	return answer{failure: failure}
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// lifetime is how long the answer of a lookup is served without another.
func (c *cache) lifetime(failure Resolution) time.Duration {
	if failure == "" {
		return c.ttl
	}
	return failureLifetime(failure)
}

// failureLifetime is how long a failure is remembered.
func failureLifetime(failure Resolution) time.Duration {
	switch failure {
	case NotFound, Forbidden:
		return settledFailure
	default:
		return passingFailure
	}
}

// forgottenLocked reports whether the record is of a deleted object that nobody
// used for so long that its chain need not be known any more.
func (c *cache) forgottenLocked(r *record) bool {
	return r.known() && r.failure == NotFound && c.now()-r.used > c.ttl
}

// recordLocked returns the record of the object with the UID, or with an empty
// UID that of the newest object, or else that of the failure to find it.
func (c *cache) recordLocked(at address, uid types.UID) *record {
	var failed *record
	for r := c.records[at]; r != nil; r = r.older {
		switch {
		case r.known() && (uid == "" || r.UID == uid):
			return r
		case !r.known() && r.UID == uid:
			failed = r
		}
	}
	return failed
}

// forgetFailuresLocked removes the failures that finding an object disproves.
func (c *cache) forgetFailuresLocked(at address, uid types.UID) {
	for r := c.records[at]; r != nil; {
		older := r.older
		if !r.known() && (r.UID == uid || r.UID == "") {
			c.removeLocked(r)
		}
		r = older
	}
}

// addLocked adds a record, and makes room for it.
func (c *cache) addLocked(at address, r *record) {
	for c.count >= c.size {
		c.removeLocked(c.order.newer)
	}
	c.linkLocked(at, r)
	c.pushLocked(r)
	c.count++
}

func (c *cache) removeLocked(r *record) {
	c.unlinkLocked(r)
	c.pullLocked(r)
	c.count--
}

// touchLocked marks the record as used now.
func (c *cache) touchLocked(r *record) {
	r.used = c.now()
	c.pullLocked(r)
	c.pushLocked(r)
}

// linkLocked puts the record before the older ones at its address. Failures
// stand at the end: there is at most one for each UID that was asked for.
func (c *cache) linkLocked(at address, r *record) {
	// The key must not pin the caller's copy of the name.
	at.name = r.Name
	first := c.records[at]
	if first == nil || (r.known() && (!first.known() || first.checked <= r.checked)) {
		r.older = first
		c.records[at] = r
		return
	}
	before := first
	for before.older != nil && before.older.known() && before.older.checked > r.checked {
		before = before.older
	}
	r.older, before.older = before.older, r
}

func (c *cache) unlinkLocked(r *record) {
	at := address{place: r.place, name: r.Name}
	first := c.records[at]
	switch {
	case first != r:
		before := first
		for before.older != r {
			before = before.older
		}
		before.older = r.older
	case r.older != nil:
		// The key's string belongs to the record that goes, so it goes as well.
		delete(c.records, at)
		at.name = r.older.Name
		c.records[at] = r.older
	default:
		delete(c.records, at)
	}
	r.older = nil
}

// pushLocked makes the record the most recently used.
func (c *cache) pushLocked(r *record) {
	r.staler = c.order.staler
	r.newer = &c.order
	r.staler.newer, r.newer.staler = r, r
}

// pullLocked takes the record out of the order of use. Its links are cleared, so
// that a chain that holds its object holds nothing else.
func (c *cache) pullLocked(r *record) {
	r.staler.newer, r.newer.staler = r.newer, r.staler
	r.staler, r.newer = nil, nil
}

// placeOf returns where objects of the kind are in the namespace.
func placeOf(k *kind, namespace string) place {
	return place{kind: k.name, namespace: unique.Make(namespace)}
}

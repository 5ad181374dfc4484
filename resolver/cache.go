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
	// stableFailureTTL is how long a failure is cached that is unlikely to end soon: the object
	// does not exist, or the permission to read it is missing.
	stableFailureTTL = time.Minute
	// transientFailureTTL is how long a failure is cached that may end soon.
	transientFailureTTL = 5 * time.Second
)

// answer is what is known of one object: the object, or why it is not known.
type answer struct {
	object  *Object
	failure Resolution // empty if there is an object

	// forUID is the UID of the reference that caused the request.
	forUID types.UID

	// unserved is set if the failure concerns the request's path, not the object: the API server no
	// longer serves the kind there.
	unserved bool
}

// proves reports whether the reply is final for an object with the UID. A request for another UID
// may be older than the object, so it does not prove that the object does not exist.
func (a answer) proves(uid types.UID) bool {
	switch {
	case a.forUID == uid:
		return true
	case a.object != nil:
		return uid == "" || a.object.UID == uid
	default:
		return a.failure != NotFound
	}
}

// entry is one object in the cache, or one failed lookup.
type entry struct {
	Object     // of a failed lookup, only the requested Name and UID
	collection collection

	newer, staler *entry // neighbours in the order of last use
	older         *entry // the next one with the same key

	checkedAt time.Duration // when the request was sent that brought this result
	usedAt    time.Duration
	failure   Resolution // of the last lookup; empty if it found the object
	restored  bool       // found only before a restart
}

// mayAnswer reports whether the entry may answer for the UID after a failure. A restored object is
// the object of a name only if nothing of this name exists any more.
func (e *entry) mayAnswer(uid types.UID, failure Resolution) bool {
	return !e.restored || uid != "" || failure == NotFound
}

// known reports whether the entry holds an object, not only a failure.
func (e *entry) known() bool { return e.Kind != "" }

// answer returns the content of the entry. A known object stays the answer if a later lookup fails.
func (e *entry) answer() answer {
	if e.known() {
		return answer{object: &e.Object}
	}
	return answer{failure: e.failure}
}

// cache holds a bounded number of objects and failed lookups. It may be used concurrently. It has
// its own order of use. With golang-lru, an object would take 435 bytes, and it must not take more
// than 400.
type cache struct {
	size int
	ttl  time.Duration
	now  func() time.Duration

	// mu guards everything below. Of entries, it guards everything except Object.
	mu      sync.Mutex
	entries map[objectKey]*entry // the newest object of the name first
	count   int
	order   entry // a ring: newer is the least, staler the most recently used
}

func newCache(size int, ttl time.Duration, now func() time.Duration) *cache {
	c := &cache{size: size, ttl: ttl, now: now, entries: make(map[objectKey]*entry)}
	c.order.newer, c.order.staler = &c.order, &c.order
	return c
}

// find returns what needs no request: an object or a failure that is known and not too old. An
// empty UID means the newest object of the key.
func (c *cache) find(key objectKey, uid types.UID) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(key, uid)
	if e == nil || c.now()-e.checkedAt >= c.maxAge(e.failure) || c.expiredLocked(e) || !e.mayAnswer(uid, e.failure) {
		return answer{}, false
	}
	c.touchLocked(e)
	return e.answer(), true
}

// has reports whether the cache holds an object that find may return now or after a refresh.
func (c *cache) has(key objectKey, uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(key, uid)
	return e != nil && e.known()
}

// store caches an object that a request found, and returns it. requestedAt is when the request was
// sent.
func (c *cache) store(key objectKey, found Object, requestedAt time.Duration) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entryLocked(key, found.UID)
	if known != nil && known.known() && known.checkedAt > requestedAt {
		// The reply to an older request came late.
		return &known.Object
	}
	c.forgetFailuresLocked(key, found.UID)
	if known != nil && known.known() {
		c.removeLocked(known)
	}
	e := &entry{Object: found, collection: key.collection, checkedAt: requestedAt, usedAt: c.now()}
	c.addLocked(key, e)
	return &e.Object
}

// fail returns the answer after a failed lookup. An object in the cache stays the answer, unless it
// no longer exists and was not used for the cache's TTL. With remember, the failure is cached.
func (c *cache) fail(key objectKey, uid types.UID, failure Resolution, remember bool) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(key, uid)
	if e != nil && e.known() && failure == NotFound && c.now()-e.usedAt > c.ttl {
		c.removeLocked(e)
		e = nil
	}
	if e != nil && !e.mayAnswer(uid, failure) {
		if remember {
			c.removeLocked(e) // The failure takes its place.
		}
		e = nil
	}
	if e == nil && remember {
		e = &entry{Object: Object{Name: strings.Clone(key.name), UID: types.UID(strings.Clone(string(uid)))}, collection: key.collection}
		c.addLocked(key, e)
	}
	if e == nil {
		return answer{failure: failure}
	}
	if remember {
		e.failure, e.checkedAt = failure, c.now()
	}
	c.touchLocked(e)
	if e.known() {
		return e.answer()
	}
	return answer{failure: failure}
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// maxAge returns how long the result of a lookup is valid.
func (c *cache) maxAge(failure Resolution) time.Duration {
	if failure == "" {
		return c.ttl
	}
	return failureTTL(failure)
}

// failureTTL returns how long a failure is cached.
func failureTTL(failure Resolution) time.Duration {
	switch failure {
	case NotFound, Forbidden:
		return stableFailureTTL
	default:
		return transientFailureTTL
	}
}

// expiredLocked reports whether the entry is of a deleted object that was not used for the cache's
// TTL.
func (c *cache) expiredLocked(e *entry) bool {
	return e.known() && e.failure == NotFound && c.now()-e.usedAt > c.ttl
}

// entryLocked returns the entry of the object with the UID; with an empty UID, the entry of the
// newest object. If there is none, it returns the entry of the failure to find it.
func (c *cache) entryLocked(key objectKey, uid types.UID) *entry {
	var failed *entry
	for e := c.entries[key]; e != nil; e = e.older {
		switch {
		case e.known() && (uid == "" || e.UID == uid):
			return e
		case !e.known() && e.UID == uid:
			failed = e
		}
	}
	return failed
}

// forgetFailuresLocked removes the failures that a found object disproves.
func (c *cache) forgetFailuresLocked(key objectKey, uid types.UID) {
	for e := c.entries[key]; e != nil; {
		older := e.older
		if !e.known() && (e.UID == uid || e.UID == "") {
			c.removeLocked(e)
		}
		e = older
	}
}

// addLocked adds an entry and makes room for it.
func (c *cache) addLocked(key objectKey, e *entry) {
	for c.count >= c.size {
		c.removeLocked(c.order.newer)
	}
	c.linkLocked(key, e)
	c.pushLocked(e)
	c.count++
}

func (c *cache) removeLocked(e *entry) {
	c.unlinkLocked(e)
	c.pullLocked(e)
	c.count--
}

// touchLocked marks the entry as used now.
func (c *cache) touchLocked(e *entry) {
	e.usedAt = c.now()
	c.pullLocked(e)
	c.pushLocked(e)
}

// linkLocked puts the entry before the older ones of its key. Failures are at the end: there is at
// most one for each requested UID.
func (c *cache) linkLocked(key objectKey, e *entry) {
	// The key must not keep the caller's copy of the name alive.
	key.name = e.Name
	first := c.entries[key]
	if first == nil || (e.known() && (!first.known() || first.checkedAt <= e.checkedAt)) {
		e.older = first
		c.entries[key] = e
		return
	}
	before := first
	for before.older != nil && before.older.known() && before.older.checkedAt > e.checkedAt {
		before = before.older
	}
	e.older, before.older = before.older, e
}

func (c *cache) unlinkLocked(e *entry) {
	key := objectKey{collection: e.collection, name: e.Name}
	first := c.entries[key]
	switch {
	case first != e:
		before := first
		for before.older != e {
			before = before.older
		}
		before.older = e.older
	case e.older != nil:
		// The key's string belongs to the removed entry, so replace the key too.
		delete(c.entries, key)
		key.name = e.older.Name
		c.entries[key] = e.older
	default:
		delete(c.entries, key)
	}
	e.older = nil
}

// pushLocked makes the entry the most recently used one.
func (c *cache) pushLocked(e *entry) {
	e.staler = c.order.staler
	e.newer = &c.order
	e.staler.newer, e.newer.staler = e, e
}

// pullLocked removes the entry from the order of use. It clears the links, so that a chain with the
// entry's object keeps no other entry alive.
func (c *cache) pullLocked(e *entry) {
	e.staler.newer, e.newer.staler = e.newer, e.staler
	e.staler, e.newer = nil, nil
}

// collectionOf returns the collection of the kind in the namespace.
func collectionOf(k *kind, namespace string) collection {
	return collection{kind: k.name, namespace: unique.Make(namespace)}
}

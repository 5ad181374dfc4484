// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"encoding/hex"
	"hash/maphash"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/large"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// stableFailureTTL is how long a failure is cached that is unlikely to end soon: the object
	// does not exist, or the permission to read it is missing.
	stableFailureTTL = time.Minute
	// transientFailureTTL is how long a failure is cached that may end soon.
	transientFailureTTL = 5 * time.Second
	// soonCreatedTTL is how long it is first cached that a Node or the mirror of a static pod does not
	// exist. It is short because a kubelet reports the first events before it creates them. The time
	// doubles with each failed lookup, up to stableFailureTTL.
	soonCreatedTTL = time.Second
	// maxFailures is how many failures are cached at most. Anybody who may write Events can cause them,
	// with texts of almost 1 KiB. Beyond this number, objects are looked up again.
	maxFailures = 10_000
	// staticUIDLength is the length of a static pod's UID in events: the MD5 hash of its manifest.
	staticUIDLength = 32
)

// collection is where objects are listed: a kind, and a namespace. The namespace is empty for
// cluster-scoped kinds, and for the lists of all namespaces. Handles make it small and fast to
// compare.
type collection struct {
	kind      unique.Handle[schema.GroupKind]
	namespace unique.Handle[string]
}

func collectionOf(k *kinds.Kind, namespace string) collection {
	return collection{kind: k.Name, namespace: unique.Make(namespace)}
}

// objectKey is where one object is read. Several objects can have the same key, one after another.
// Their UIDs distinguish them.
type objectKey struct {
	collection
	name string
}

// uidKey identifies one object for all time. The same object may be served as several kinds.
type uidKey struct {
	kind unique.Handle[schema.GroupKind]
	uid  types.UID
	// mirror is where the mirror of a static pod is, if the UID is that of the static pod. Any user
	// may write this UID, so it means nothing elsewhere.
	mirror objectKey
}

// failureKey identifies what was looked up and not found.
type failureKey struct {
	objectKey
	uid types.UID
}

// answer is what is known of one object: the object, or why it is not known.
type answer struct {
	object  *Object
	failure Resolution // empty if there is an object

	// unserved is set if the failure concerns the request's path, not the object: the API server no
	// longer serves the kind there.
	unserved bool
}

// entry is one object in the cache.
type entry struct {
	Object
	collection collection

	newer, staler *entry // neighbours in the order of last use

	checkedAt time.Duration // when the request was sent that brought this result
	usedAt    time.Duration
	failure   Resolution // of the last lookup; empty if it found the object
	unused    bool       // in a list, and not needed since
}

// hadNoAnswer reports whether the last lookup of the entry has shown nothing about the object. An
// answer that comes later is newer than what the entry has.
func (e *entry) hadNoAnswer() bool { return e.failure != "" && e.failure != NotFound }

func (e *entry) key() objectKey { return objectKey{e.collection, e.Name} }

// uidKeys returns the keys of the object's UID, and of the static pod's that it mirrors.
func (e *entry) uidKeys() [2]uidKey {
	kind := e.collection.kind
	return [2]uidKey{{kind: kind, uid: e.UID}, {kind, e.mirrored, e.key()}}
}

// failed is a failed lookup of an object of which nothing is known.
type failed struct {
	failure Resolution
	until   time.Duration
	ttl     time.Duration
}

// cache holds a bounded number of objects, few of which are large, and of failed lookups. It may be
// used concurrently. It has its own order of use. With golang-lru, an object would take a fifth
// more memory.
type cache struct {
	size int
	ttl  time.Duration
	now  func() time.Duration

	// mu guards everything below. Of an entry, it guards everything except Object.
	mu       sync.Mutex
	newest   index[objectKey] // the objects that had the names last
	byUID    index[uidKey]
	count    int
	order    entry // a ring: newer is the least, staler the most recently used
	large    *large.Objects[*entry]
	failures *simplelru.LRU[failureKey, failed]
	// needed is how many objects were needed that requests had brought. Each list has others, too.
	needed int
}

func newCache(size int, ttl time.Duration, now func() time.Duration) *cache {
	c := &cache{
		size: size, ttl: ttl, now: now,
		newest: newIndex[objectKey](), byUID: newIndex[uidKey](),
		failures: newLRU[failureKey, failed](min(size, maxFailures)), large: large.New[*entry](),
	}
	c.order.newer, c.order.staler = &c.order, &c.order
	return c
}

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

// find returns what needs no request: an object or a failure that is known and not too old. An
// empty UID means the newest object of the key.
func (c *cache) find(key objectKey, uid types.UID) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entryLocked(key, uid); e != nil {
		if c.now()-e.checkedAt >= c.maxAge(e.failure) {
			return answer{}, false
		}
		c.useLocked(e)
		return answer{object: &e.Object}, true
	}
	last, known := c.failures.Get(failureKey{key, uid})
	if !known || c.now() >= last.until {
		return answer{}, false
	}
	return answer{failure: last.failure}, true
}

// has reports whether the cache holds an object that find may return now or after a refresh.
func (c *cache) has(key objectKey, uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entryLocked(key, uid) != nil
}

// stored returns an object of the cache for a reference whose kind cannot be looked up now; nil if
// there is none.
func (c *cache) stored(kind unique.Handle[schema.GroupKind], namespace, name string, uid types.UID) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range []string{namespace, ""} {
		e := c.entryLocked(objectKey{collection{kind, unique.Make(in)}, name}, uid)
		if e != nil {
			c.useLocked(e)
			return &e.Object
		}
	}
	return nil
}

// store caches an object that a request found, and returns it. requestedAt is when the request was
// sent. isListed is set if the request was not for this object alone.
func (c *cache) store(key objectKey, found Object, requestedAt time.Duration, isListed bool) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entryLocked(key, found.UID)
	if known != nil && known.UID != found.UID {
		known = nil // An object without a UID is new: an aggregated API server has computed it.
	}
	if known != nil && known.checkedAt > requestedAt && !known.hadNoAnswer() {
		reached.State("the answer to an older request comes late")
		// The reply to an older request came late.
		return &known.Object
	}
	for _, uid := range []types.UID{found.UID, found.mirrored, ""} {
		c.failures.Remove(failureKey{key, uid})
	}
	if known != nil {
		c.removeLocked(known)
	}
	e := &entry{Object: found, collection: key.collection, checkedAt: requestedAt, usedAt: c.now(), unused: isListed}
	if !isListed {
		c.needed++
	}
	c.addLocked(e)
	return &e.Object
}

// fail returns the answer after a failed lookup. An object in the cache stays the answer, unless it
// no longer exists and was not used for the cache's TTL. With remember, the failure is cached.
func (c *cache) fail(key objectKey, uid types.UID, failure Resolution, remember bool) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(key, uid)
	if e != nil && failure == NotFound && c.now()-e.usedAt > c.ttl {
		c.removeLocked(e)
		e = nil
	}
	if e != nil {
		if remember {
			e.failure, e.checkedAt = failure, c.now()
		}
		c.useLocked(e)
		return answer{object: &e.Object}
	}
	if remember {
		ttl := c.failureTTLLocked(failureKey{key, uid}, failure)
		key.name = strings.Clone(key.name)
		uid = types.UID(strings.Clone(string(uid)))
		c.failures.Add(failureKey{key, uid}, failed{failure, c.now() + ttl, ttl})
	}
	return answer{failure: failure}
}

// failureTTLLocked returns how long a failure is cached of an object of which nothing is known.
func (c *cache) failureTTLLocked(key failureKey, failure Resolution) time.Duration {
	if failure != NotFound || key.kind != coreNode && !isStaticPod(key) {
		return failureTTL(failure)
	}
	last, known := c.failures.Peek(key)
	switch since := c.now() - last.until; {
	case !known || last.failure != NotFound || since > stableFailureTTL:
		return soonCreatedTTL
	case since < 0: // another lookup of the same wave
		return last.ttl
	default:
		return min(2*last.ttl, stableFailureTTL)
	}
}

// isStaticPod reports whether a kubelet's event refers to a static pod: its UID is a hash in
// hexadecimal digits, and no UUID.
func isStaticPod(key failureKey) bool {
	if key.kind != corePod || len(key.uid) != staticUIDLength {
		return false
	}
	_, err := hex.DecodeString(string(key.uid))
	return err == nil
}

// use notes that an object that a list has brought is needed.
func (c *cache) use(key objectKey, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entryLocked(key, uid); e != nil {
		c.useLocked(e)
	}
}

// neededObjects returns how many of the objects that requests have brought were needed.
func (c *cache) neededObjects() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.needed
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

// entryLocked returns the entry of the object with the UID; with an empty UID, the entry of the
// newest object of the name; nil if there is none.
func (c *cache) entryLocked(key objectKey, uid types.UID) *entry {
	e := c.byUID.get(uidKey{kind: key.kind, uid: uid})
	switch {
	case uid == "":
		e = c.newest.get(key)
	case e == nil:
		e = c.byUID.get(uidKey{key.kind, uid, key})
	}
	if e != nil && e.key() == key && e.hasUID(uid) {
		return e
	}
	return nil
}

// addLocked adds an entry and makes room for it.
func (c *cache) addLocked(e *entry) {
	for c.count >= c.size {
		c.removeLocked(c.order.newer)
	}
	if last := c.newest.get(e.key()); last == nil || last.checkedAt <= e.checkedAt {
		c.newest.put(e.key(), e)
	}
	for _, key := range e.uidKeys() {
		if key.uid != "" {
			c.byUID.put(key, e)
		}
	}
	c.pushLocked(e)
	c.count++
	c.large.Add(e, e.Labels, e.Annotations)
	for oldest, ok := c.large.Excess(); ok; oldest, ok = c.large.Excess() {
		c.removeLocked(oldest)
	}
}

func (c *cache) removeLocked(e *entry) {
	c.newest.remove(e.key(), e)
	for _, key := range e.uidKeys() {
		c.byUID.remove(key, e)
	}
	c.pullLocked(e)
	c.count--
	c.large.Remove(e)
}

// useLocked marks the entry as used now.
func (c *cache) useLocked(e *entry) {
	if e.unused {
		e.unused = false
		c.needed++
	}
	e.usedAt = c.now()
	c.pullLocked(e)
	c.pushLocked(e)
	c.large.Use(e)
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

// index finds entries by the hash of a key. It takes half the memory of a map with the key itself,
// which the entry has anyway. If two keys have the same hash, it forgets the first: its object is
// then looked up again. Callers check that an entry has the key.
type index[K comparable] struct {
	seed    maphash.Seed
	entries map[uint64]*entry
}

func newIndex[K comparable]() index[K] {
	return index[K]{seed: maphash.MakeSeed(), entries: make(map[uint64]*entry)}
}

func (i index[K]) get(key K) *entry    { return i.entries[maphash.Comparable(i.seed, key)] }
func (i index[K]) put(key K, e *entry) { i.entries[maphash.Comparable(i.seed, key)] = e }

func (i index[K]) remove(key K, e *entry) {
	if hash := maphash.Comparable(i.seed, key); i.entries[hash] == e {
		delete(i.entries, hash)
	}
}

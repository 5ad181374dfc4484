// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"encoding/hex"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// stableFailureTTL is the time for which a failure is cached that is unlikely to end soon: the
	// object does not exist, or the permission to read it is missing.
	stableFailureTTL = time.Minute
	// transientFailureTTL is the time for which a failure is cached that may end soon.
	transientFailureTTL = 5 * time.Second
	// firstFailureTTL is the time for which a failure is first cached that doubles this time with each
	// lookup, up to stableFailureTTL.
	firstFailureTTL = time.Second
	// maxFailures is the maximum number of cached failures. Anybody who may write Events can cause
	// them, with texts of almost 1 KiB. Beyond this number, objects are looked up again.
	maxFailures = 10_000
	// staticUIDLength is the length of a static pod's UID in events: the MD5 hash of its manifest.
	staticUIDLength = 32
)

// collection identifies a list of objects: a kind, and a namespace. The namespace is empty for
// cluster-scoped kinds, and for the lists of all namespaces. Handles make it small and fast to
// compare.
type collection struct {
	kind      unique.Handle[schema.GroupKind]
	namespace unique.Handle[string]
}

func collectionOf(k *kinds.Kind, namespace string) collection {
	return collection{kind: k.Name, namespace: unique.Make(namespace)}
}

// objectKey identifies the place where one object is read. Several objects can have the same key,
// one after another. Their UIDs distinguish them.
type objectKey struct {
	collection
	name string
}

// target is an object that can be requested; without a name, a list.
type target struct {
	kind *kinds.Kind
	key  objectKey
}

func (t target) isList() bool { return t.key.name == "" }

// lookupKey identifies what was looked up: the object with the UID; with an empty UID, whatever object
// has the name.
type lookupKey struct {
	objectKey
	uid types.UID
}

// answer has one object, or the reason why it is not known.
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
	key objectKey

	readAt time.Duration // when the request was sent that brought the object
	usedAt time.Duration
	last   failed // the last lookup, if it failed since then
}

// failed is a failed lookup. It is zero if there was none.
type failed struct {
	failure Resolution
	ttl     time.Duration
	until   time.Duration // the next use after this looks the object up again
}

// cache holds a bounded number of objects, few of which are large, and of failed lookups. It may be
// used concurrently.
type cache struct {
	ttl time.Duration
	now func() time.Duration

	// mu guards everything below. Of an entry, it guards everything except Object.
	mu       sync.Mutex
	objects  *simplelru.LRU[lookupKey, *entry] // the mirror of a static pod has a second key, with the static pod's UID
	newest   map[objectKey]*entry              // the objects that had the names last
	large    *largeEntries
	failures *simplelru.LRU[lookupKey, failed]
}

func newCache(size int, ttl time.Duration, now func() time.Duration) *cache {
	c := &cache{
		ttl: ttl, now: now, newest: make(map[objectKey]*entry), large: newLargeEntries(),
		failures: newLRU[lookupKey, failed](min(size, maxFailures), nil),
	}
	c.objects = newLRU(size, c.removedLocked)
	return c
}

// newLRU returns a map that holds at most size entries and drops the least recently used ones. It
// does not lock. It calls removed with each entry that it drops; nil: nothing. Callers that need an
// age store it in the value: golang-lru's expirable cache starts a goroutine that never ends, and has
// a clock of its own.
func newLRU[K comparable, V any](size int, removed func(K, V)) *simplelru.LRU[K, V] {
	entries, err := simplelru.NewLRU(size, removed)
	if err != nil {
		panic(err) // The size is not positive.
	}
	return entries
}

// removedLocked is called when objects has dropped an entry.
func (c *cache) removedLocked(_ lookupKey, e *entry) {
	if c.newest[e.key] == e {
		delete(c.newest, e.key)
	}
	c.large.remove(e)
}

// find returns what needs no request: an object or a failure that is known and not too old. An
// empty UID means the newest object of the key.
func (c *cache) find(key objectKey, uid types.UID) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entryLocked(key, uid); e != nil {
		if c.now() >= max(e.readAt+c.ttl, e.last.until) {
			return answer{}, false
		}
		c.useLocked(e)
		return answer{object: &e.Object}, true
	}
	last, known := c.failures.Get(lookupKey{key, uid})
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
// sent.
func (c *cache) store(key objectKey, found Object, requestedAt time.Duration) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uid := range []types.UID{found.UID, found.mirrored, ""} {
		c.failures.Remove(lookupKey{key, uid})
	}
	e := &entry{Object: found, key: key, readAt: requestedAt, usedAt: c.now()}
	last := c.newest[key]
	c.putLocked(lookupKey{key, e.UID}, e)
	if e.mirrored != "" {
		c.putLocked(lookupKey{key, e.mirrored}, e)
	}
	if last == nil || last.UID == e.UID || last.readAt <= e.readAt { // Else a page of an old list comes late.
		c.newest[key] = e
	}
	c.large.add(e)
	for oldest, ok := c.large.excess(); ok; oldest, ok = c.large.excess() {
		c.removeLocked(oldest)
	}
	return &e.Object
}

// fail returns the answer after a failed lookup. An object in the cache stays the answer, unless it
// no longer exists and was not used for the cache's TTL. With remember, the failure is cached.
func (c *cache) fail(key objectKey, uid types.UID, failure Resolution, remember bool) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(key, uid)
	if e != nil && failure == ResolutionNotFound && c.now()-e.usedAt > c.ttl {
		c.removeLocked(e)
		e = nil
	}
	if e != nil {
		if remember {
			e.last = c.failedAgain(e.last, lookupKey{key, uid}, failure)
		}
		c.useLocked(e)
		return answer{object: &e.Object}
	}
	if remember {
		last, _ := c.failures.Peek(lookupKey{key, uid})
		next := c.failedAgain(last, lookupKey{key, uid}, failure)
		key.name = strings.Clone(key.name)
		uid = types.UID(strings.Clone(string(uid)))
		c.failures.Add(lookupKey{key, uid}, next)
	}
	return answer{failure: failure}
}

// failedAgain returns what to cache of a lookup that failed after the last one.
func (c *cache) failedAgain(last failed, key lookupKey, failure Resolution) failed {
	now, ttl := c.now(), failureTTL(failure)
	if doubles(key, failure) {
		switch since := now - last.until; {
		case last.failure != failure || since > stableFailureTTL:
			ttl = firstFailureTTL
		case since < 0: // another lookup of the same wave
			ttl = last.ttl
		default:
			ttl = min(2*last.ttl, stableFailureTTL)
		}
	}
	return failed{failure, ttl, now + ttl}
}

// doubles reports whether each lookup that fails so doubles the time for which the failure is cached.
// A kubelet reports the first events before it creates the Node or the mirror of a static pod. A
// lookup that times out delays all that callers want at the same time.
func doubles(key lookupKey, failure Resolution) bool {
	return failure == ResolutionTimeout || failure == ResolutionNotFound && (key.kind == coreNode || isStaticPod(key))
}

// isStaticPod reports whether a kubelet's event refers to a static pod: its UID is a hash in
// hexadecimal digits, and no UUID.
func isStaticPod(key lookupKey) bool {
	if key.kind != corePod || len(key.uid) != staticUIDLength {
		return false
	}
	_, err := hex.DecodeString(string(key.uid))
	return err == nil
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects.Len()
}

// failureTTL returns how long a failure is cached that does not double this time.
func failureTTL(failure Resolution) time.Duration {
	switch failure {
	case ResolutionNotFound, ResolutionForbidden:
		return stableFailureTTL
	default:
		return transientFailureTTL
	}
}

// entryLocked returns the entry of the object with the UID; with an empty UID, the entry of the
// newest object of the name; nil if there is none.
func (c *cache) entryLocked(key objectKey, uid types.UID) *entry {
	if uid == "" {
		return c.newest[key]
	}
	e, _ := c.objects.Peek(lookupKey{key, uid})
	return e
}

// putLocked adds an entry, or replaces the one that has the key.
func (c *cache) putLocked(key lookupKey, e *entry) {
	c.objects.Remove(key)
	c.objects.Add(key, e)
}

func (c *cache) removeLocked(e *entry) {
	c.objects.Remove(lookupKey{e.key, e.UID})
	if e.mirrored != "" {
		c.objects.Remove(lookupKey{e.key, e.mirrored})
	}
}

// useLocked marks the entry as used now.
func (c *cache) useLocked(e *entry) {
	e.usedAt = c.now()
	c.objects.Get(lookupKey{e.key, e.UID})
	c.large.use(e)
}

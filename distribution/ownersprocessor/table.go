// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// unknownFor is the time for which what could not be looked up is not looked up again.
	unknownFor = time.Minute
	// maxLookups bounds the lookups at a time. Data does not wait for what is beyond them.
	maxLookups = 2000
	// maxLarge bounds the answers with many labels and annotations: anybody may write 8 KiB of them to each object.
	maxLarge = 2000
	// maxUnknown bounds what could not be looked up: anybody who may send data can make up names.
	maxUnknown = 10_000
)

// key is a hash of a subject. It takes a tenth of its memory, and nobody can guess two subjects with the same one.
type key [2]uint64

// table has what is known of subjects. It may be used concurrently.
type table struct {
	ttl   time.Duration
	find  func(context.Context, subject) answer
	seeds [2]maphash.Seed
	begun time.Time

	ctx    context.Context // of lookups
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards the following, and the entries
	entries *simplelru.LRU[key, *entry]
	large   *simplelru.LRU[key, struct{}] // of entries
	unknown *simplelru.LRU[key, struct{}] // of entries
	byUID   map[key]key                   // of those that were found, for resources without a name
	running int                           // lookups
	closed  bool
}

// entry is one subject.
type entry struct {
	known   answer
	until   time.Duration // then the next use looks it up again
	pending *pending      // nil: nothing is in flight
	byUID   key           // zero: it is not in table.byUID
}

// pending is a lookup in flight.
type pending struct {
	since  time.Time
	done   chan struct{} // closed when answer is set
	answer answer
}

func newTable(size int, ttl time.Duration, find func(context.Context, subject) answer) *table {
	t := &table{ttl: ttl, find: find, byUID: map[key]key{}, begun: time.Now(), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.entries = newLRU(size, t.removed)
	t.large = newLRU(maxLarge, func(k key, _ struct{}) { t.entries.Remove(k) })
	t.unknown = newLRU(maxUnknown, t.removedUnknown)
	return t
}

// newLRU returns a map that drops the entries that were not used for the longest time.
func newLRU[K comparable, V any](size int, removed func(K, V)) *simplelru.LRU[K, V] {
	entries, err := simplelru.NewLRU(size, removed)
	if err != nil {
		panic(err) // The size is not positive.
	}
	return entries
}

func (t *table) keyOf(s subject) key {
	return key{maphash.Comparable(t.seeds[0], s), maphash.Comparable(t.seeds[1], s)}
}

func (t *table) now() time.Duration { return time.Since(t.begun) }

// get returns what is known of a subject. If nothing is, it returns the lookup that will tell; nil: there is none.
// An old answer is used until there is a new one.
func (t *table) get(s subject) (answer, *pending) {
	k := t.keyOf(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.name == "" { // A UID is no address at which an object could be read.
		if e, ok := t.entries.Get(t.byUID[k]); ok {
			return e.known, nil
		}
		return answer{outcome: outcomeNotFound}, nil
	}
	e, ok := t.entries.Get(k)
	switch {
	case !ok:
		e = &entry{}
	case e.known.isLarge:
		t.large.Get(k)
	}
	if t.now() >= e.until && e.pending == nil && t.running < maxLookups && !t.closed {
		t.beginLocked(k, e, s)
	}
	isFound := e.known.outcome == outcomeFound
	isAnother := s.uid == "" && !e.known.isPartial && e.pending != nil // Meanwhile, another object can have the name.
	switch {
	case isFound && !isAnother, e.pending == nil && e.known.outcome != outcomeUnknown:
		return e.known, nil
	case e.pending == nil: // There is no room for a lookup, or the table is closed.
		return answer{outcome: outcomeLate}, nil
	default:
		return answer{}, e.pending
	}
}

// beginLocked looks an entry up in the background.
func (t *table) beginLocked(k key, e *entry, s subject) {
	t.running++
	e.pending = &pending{since: time.Now(), done: make(chan struct{})}
	t.entries.Add(k, e)
	t.work.Go(func() { t.end(k, e, s, t.find(t.ctx, s)) })
}

// end notes the answer to a lookup. What was found stays, also after the object is gone.
func (t *table) end(k key, e *entry, s subject, found answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	isFound := found.outcome == outcomeFound
	isWhole := isFound && !found.isPartial
	if isWhole || e.known.outcome != outcomeFound || isFound && e.known.isForbidden {
		e.known = found
	}
	e.until = t.now() + unknownFor
	if isWhole {
		e.until = t.now() + t.ttl
	}
	if held, _ := t.entries.Peek(k); held == e { // It may have been dropped.
		t.fileLocked(k, e, s)
	}
	e.pending.answer = e.known
	close(e.pending.done)
	e.pending = nil
}

// fileLocked notes an entry where it counts, and where it is found by its UID.
func (t *table) fileLocked(k key, e *entry, s subject) {
	if e.known.outcome != outcomeFound {
		t.unknown.Add(k, struct{}{})
		return
	}
	t.unknown.Remove(k)
	if e.known.isLarge {
		t.large.Add(k, struct{}{})
	}
	if s.uid != "" {
		e.byUID = t.keyOf(s.withoutName())
		t.byUID[e.byUID] = k
	}
}

// removed is called under the lock when entries has dropped an entry.
func (t *table) removed(k key, e *entry) {
	t.large.Remove(k)
	if t.byUID[e.byUID] == k {
		delete(t.byUID, e.byUID)
	}
}

// removedUnknown is called under the lock when unknown has dropped a key: its subject was found, or others need its room.
func (t *table) removedUnknown(k key, _ struct{}) {
	if e, ok := t.entries.Peek(k); ok && e.known.outcome != outcomeFound {
		t.entries.Remove(k)
	}
}

// close ends the lookups. What is known stays.
func (t *table) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.work.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// unknownFor is the time for which what could not be looked up is not looked up again.
	unknownFor = time.Minute
	// maxLookups bounds the lookups at a time. Data does not wait for what is beyond them.
	maxLookups = 2000
)

// table has what is known of subjects. It may be used concurrently.
type table struct {
	ttl  time.Duration
	find func(context.Context, subject) answer

	ctx    context.Context // of lookups
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards the following, and the entries
	entries *simplelru.LRU[subject, *entry]
	byUID   map[subject]*entry // those that were found, for resources without a name
	running int                // lookups
	closed  bool
}

// entry is one subject.
type entry struct {
	subject subject
	known   answer
	until   time.Time // then the next use looks it up again
	pending *pending  // nil: nothing is in flight
}

// pending is a lookup in flight.
type pending struct {
	since  time.Time
	done   chan struct{} // closed when answer is set
	answer answer
}

func newTable(size int, ttl time.Duration, find func(context.Context, subject) answer) *table {
	t := &table{ttl: ttl, find: find, byUID: map[subject]*entry{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	entries, err := simplelru.NewLRU(size, t.removed)
	if err != nil {
		panic(err) // Config.Validate has rejected such a size.
	}
	t.entries = entries
	return t
}

// get returns what is known of a subject. If nothing is, it returns the lookup that will tell; nil: there is none.
// An old answer is used until there is a new one.
func (t *table) get(s subject) (answer, *pending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(s)
	if e == nil {
		if s.name == "" { // A UID is no address at which an object could be read.
			return answer{outcome: outcomeNotFound}, nil
		}
		if t.running >= maxLookups {
			return answer{outcome: outcomeLate}, nil
		}
		e = &entry{subject: s.clone()}
		t.entries.Add(e.subject, e)
	}
	if !time.Now().Before(e.until) && e.pending == nil {
		t.beginLocked(e)
	}
	switch {
	case e.known.outcome == outcomeFound || e.pending == nil && e.known.outcome != 0:
		return e.known, nil
	case e.pending == nil: // There is no room for a lookup, or the table is closed.
		return answer{outcome: outcomeLate}, nil
	default:
		return answer{}, e.pending
	}
}

// entryLocked returns the entry of a subject; nil: there is none.
func (t *table) entryLocked(s subject) *entry {
	if s.name == "" {
		e := t.byUID[s]
		if e != nil {
			t.entries.Get(e.subject)
		}
		return e
	}
	e, _ := t.entries.Get(s)
	return e
}

// beginLocked looks an entry up in the background.
func (t *table) beginLocked(e *entry) {
	if t.closed || t.running >= maxLookups {
		return
	}
	t.running++
	e.pending = &pending{since: time.Now(), done: make(chan struct{})}
	t.work.Go(func() { t.end(e, t.find(t.ctx, e.subject)) })
}

// end notes the answer to a lookup. What was found stays, also after the object is gone.
func (t *table) end(e *entry, found answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if found.outcome == outcomeFound || e.known.outcome != outcomeFound {
		e.known = found
	}
	e.until = time.Now().Add(unknownFor)
	if found.outcome == outcomeFound && !found.isPartial {
		e.until = time.Now().Add(t.ttl)
	}
	if held, isHeld := t.entries.Peek(e.subject); isHeld && held == e && found.outcome == outcomeFound && e.subject.uid != "" {
		t.byUID[e.subject.withoutName()] = e
	}
	e.pending.answer = e.known
	close(e.pending.done)
	e.pending = nil
}

// removed is called under the lock when entries has dropped an entry.
func (t *table) removed(s subject, e *entry) {
	if key := s.withoutName(); t.byUID[key] == e {
		delete(t.byUID, key)
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

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// want is an object that a climb waits for.
type want struct {
	kind *kinds.Kind
	key  objectKey
	uid  types.UID // empty: whatever object has the name
	// level is how many objects the climb has found. Those that have progressed furthest come
	// first.
	level int
	// answer gets one answer, unless the climb has left. It has room for it.
	answer chan answer

	// lookup.mu guards the following.

	answered bool // or the climb has left
	// needsProof is set if an answer from the watch cache was not enough.
	needsProof bool
	isEarly    bool // it was there before the list that it waits for was begun
	sent       bool // in a request for this object alone
}

// lookup is what climbs share: the cache, and the requests for what is not in it.
//
// Climbs that wait put their wants into a wave. When no climb is running any more, all of them
// wait, and the wave is requested as a whole. Then one list can serve many climbs.
type lookup struct {
	catalogue  *kinds.Catalogue
	cache      *cache
	trimmer    *trimmer
	client     metadata.Interface
	limiter    *limiter
	observer   Observer
	background *background
	now        func() time.Duration

	timeout    time.Duration // how long a climb waits at most
	namespaces []string      // of the objects that callers resolve; empty: all
	// worth is how many objects may be read to save one request.
	worth       int
	objectsRead atomic.Int64 // all that requests have brought

	mu      sync.Mutex // guards the following, and the marked fields of wants, reads and lists
	running int        // climbs that do not wait
	wave    []*want
	// awaitingKinds is how many climbs wait for the kinds, and kindsRead how often they were read.
	awaitingKinds, kindsRead int

	reads   map[objectKey]*read  // in flight
	lists   map[collection]*list // in flight
	scopes  *simplelru.LRU[collection, *scope]
	watches map[unique.Handle[schema.GroupKind]]*watched
}

func newLookup(b *background, c *clients, rate flowcontrol.RateLimiter, cfg Config) *lookup {
	begun := cfg.Now()
	now := func() time.Duration { return cfg.Now().Sub(begun) }
	l := &lookup{
		cache:      newCache(cfg.CacheSize, cfg.CacheTTL, now),
		trimmer:    &trimmer{keepLabel: cfg.KeepLabel, keepAnnotation: cfg.KeepAnnotation, sets: newStringSets()},
		client:     c.metadata,
		observer:   cfg.Observer,
		background: b,
		now:        now,
		timeout:    cfg.LookupTimeout,
		namespaces: cfg.Namespaces,
		worth:      worthUnlimited,
		reads:      make(map[objectKey]*read),
		lists:      make(map[collection]*list),
		scopes:     newLRU[collection, *scope](maxScopes),
		watches:    make(map[unique.Handle[schema.GroupKind]]*watched),
	}
	if rate != nil {
		l.worth = worthLimited
	}
	l.limiter = newLimiter(b, cfg, rate, now, l.opened)
	l.catalogue = kinds.New(kinds.Config{
		Client: c.http, URL: c.url, Send: l.limiter.sendUnlimited, Run: b.run, Now: now, WasRead: l.noteKindsRead,
		Retry: func(err error) time.Duration { return failureTTL(failureOf(err)) },
	})
	return l
}

// begin counts climbs that begin.
func (l *lookup) begin(climbs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running += climbs
}

// end must be called when a climb ends.
func (l *lookup) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.requestWaveLocked()
}

// awaitKinds waits until the kinds that the API server serves are read, or until ctx ends; then it
// returns why.
func (l *lookup) awaitKinds(ctx context.Context, ref Reference) (err error) {
	read := l.catalogue.Await(ref.APIVersion, ref.Kind)
	if read == nil {
		return nil
	}
	l.mu.Lock()
	reads := l.kindsRead
	l.awaitingKinds++
	l.running--
	l.requestWaveLocked()
	l.mu.Unlock()
	select {
	case <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.mu.Lock()
	if l.kindsRead == reads {
		l.awaitingKinds--
		l.running++
	}
	l.mu.Unlock()
	if errors.Is(err, errLookupTimeout) {
		l.catalogue.Late(err)
	}
	return err
}

// noteKindsRead lets the climbs run that wait for the kinds. All of them count as running before
// the first one wants an object, so that they share a wave.
func (l *lookup) noteKindsRead() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running += l.awaitingKinds
	l.awaitingKinds = 0
	l.kindsRead++
}

// await returns the answer to a want of a climb, or a failure when ctx ends.
func (l *lookup) await(ctx context.Context, w *want) answer {
	if ctx.Err() != nil {
		return l.late(ctx, w, false)
	}
	l.mu.Lock()
	l.wave = append(l.wave, w)
	l.running--
	l.requestWaveLocked()
	l.mu.Unlock()
	select {
	case a := <-w.answer:
		return a
	case <-ctx.Done():
	}
	l.mu.Lock()
	if w.answered {
		l.mu.Unlock()
		return <-w.answer
	}
	w.answered = true
	l.running++
	sent := w.sent
	l.mu.Unlock()
	return l.late(ctx, w, sent)
}

// late returns the answer to a want that was not answered in time: an object in the cache that
// could not be refreshed, or a failure. A request that was not sent proves nothing, nor does a
// caller that leaves early.
func (l *lookup) late(ctx context.Context, w *want, sent bool) answer {
	if l.background.isClosed() {
		return l.cache.fail(w.key, w.uid, Unavailable, false)
	}
	return l.cache.fail(w.key, w.uid, Timeout, sent && errors.Is(context.Cause(ctx), errLookupTimeout))
}

// answerLocked lets the climb run that waits for a want.
func (l *lookup) answerLocked(w *want, a answer) {
	if w.answered {
		return
	}
	w.answered = true
	l.running++
	w.answer <- a
}

// failLocked answers a want with a failure, or with an object of the cache that could not be
// refreshed.
func (l *lookup) failLocked(w *want, failure Resolution, remember bool) {
	if !w.answered {
		l.answerLocked(w, l.cache.fail(w.key, w.uid, failure, remember))
	}
}

// requestWaveLocked requests what the climbs want, once all of them wait.
func (l *lookup) requestWaveLocked() {
	for l.running == 0 && len(l.wave) > 0 {
		wants := l.wave
		l.wave = nil
		unknown := make(map[*kinds.Kind][]*want)
		for _, w := range wants {
			if !w.answered && !l.concludeLocked(w) && !l.joinLocked(w) {
				unknown[w.kind] = append(unknown[w.kind], w)
			}
		}
		for k, wants := range unknown {
			l.requestLocked(k, wants)
		}
	}
}

// concludeLocked answers a want that needs no request: another climb's request has brought the
// object, or a request would fail as those before it.
func (l *lookup) concludeLocked(w *want) bool {
	if found, known := l.cache.find(w.key, w.uid); known {
		l.answerLocked(w, found)
		return true
	}
	if s, ok := l.scopes.Get(w.key.collection); ok && s.refusesReads(l.now()) {
		l.failLocked(w, Forbidden, false)
		return true
	}
	failure := l.limiter.refuses(w.kind.Name, l.repeating(w.kind, w.key))
	if failure == "" {
		return false
	}
	l.failLocked(w, failure, false)
	return true
}

// opened answers all wants of a kind whose requests fail one after the other.
func (l *lookup) opened(kind unique.Handle[schema.GroupKind], failure Resolution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, r := range l.reads {
		if key.kind == kind {
			l.failAllLocked(r.wants, failure)
		}
	}
	for in, of := range l.lists {
		if in.kind == kind {
			for _, waiting := range of.wants {
				l.failAllLocked(waiting, failure)
			}
		}
	}
	l.requestWaveLocked()
}

func (l *lookup) failAllLocked(wants []*want, failure Resolution) {
	for _, w := range wants {
		l.failLocked(w, failure, false)
	}
}

// joinLocked lets a want wait for a request that is in flight. It returns false if there is none
// that may bring the object.
func (l *lookup) joinLocked(w *want) bool {
	if l.joinReadLocked(w) {
		return true
	}
	for _, in := range []collection{w.key.collection, collectionOf(w.kind, "")} {
		if of := l.lists[in]; of != nil && of.mayBring(w) {
			l.waitForListLocked(of, w)
			return true
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// collectFor is the time for which the loader collects objects before it requests them, so that one
// list can bring many of them.
const collectFor = 2 * time.Millisecond

// A list is slow if its pages have not come after this part of the callers' time, or if so many
// objects are left: it takes less time to read 500 objects one by one. Such a list is for those that
// will be needed later. The objects that callers wait for are also read one by one.
const (
	slowShare = 4
	longList  = 4 * pageSize
)

// errLookupTimeout distinguishes the resolver's own deadline from its caller's.
var errLookupTimeout = fmt.Errorf("lookup timeout: %w", context.DeadlineExceeded)

// loader requests the objects that climbs wait for, each object once at a time.
type loader struct {
	catalogue  *kinds.Catalogue
	cache      *cache
	fetcher    *fetcher
	observer   Observer
	background *background
	now        func() time.Duration
	timeout    time.Duration // how long a climb waits at most

	mu        sync.Mutex // guards the following, with the loads, their wants, and the lists
	planner   *planner
	collected []*load              // not requested yet
	loads     map[objectKey]*load  // collected, or in flight
	lists     map[collection]*list // in flight
}

// load is one object that climbs wait for.
type load struct {
	target
	wants   []*want // those that still wait
	sent    int     // requests that were sent for it
	isAlone bool    // it is read by itself, not only in a list
	// needsProof is set if a list from the watch cache did not have the object.
	needsProof bool
}

// list is a list that is in flight.
type list struct {
	kind   *kinds.Kind
	in     collection
	loads  []*load
	isSlow bool // its objects are also read one by one
	// isConsistent is set if the watch cache may not answer: the whole list proves what does not exist.
	// That takes an API server up to 0.1 s, and most objects are older than their events.
	isConsistent bool
}

// want is one climb that waits for an object.
type want struct {
	ctx context.Context
	uid types.UID // empty: whatever object has the name
	// answer gets one answer, unless the climb has left. It has room for it.
	answer chan answer
	// sentBefore counts the requests of the load that were sent before the climb waited. They may be
	// older than the object, so they do not prove that the object does not exist.
	sentBefore int
}

func newLoader(b *background, clients *clients, cache *cache, limiter *limiter, settings Settings, now func() time.Duration) *loader {
	l := &loader{
		cache: cache, observer: settings.Observer, background: b, now: now, timeout: settings.LookupTimeout,
		planner: newPlanner(settings), loads: make(map[objectKey]*load), lists: make(map[collection]*list),
	}
	l.fetcher = newFetcher(b, clients, cache, limiter, settings, now, l.failKind)
	l.catalogue = clients.catalogue(kinds.Settings{
		Send: l.fetcher.do, Run: b.run, Now: now,
		Retry: func(err error) time.Duration { return failureTTL(ResolutionOf(err)) },
	})
	return l
}

// awaitKinds waits until the kinds that the API server serves are read, or until ctx ends; then it
// returns why.
func (l *loader) awaitKinds(ctx context.Context, ref Reference) error {
	read := l.catalogue.Await(ref.APIVersion, ref.Kind)
	if read == nil {
		return nil
	}
	select {
	case <-read:
		return nil
	case <-ctx.Done():
	}
	err := context.Cause(ctx)
	if errors.Is(err, errLookupTimeout) {
		l.catalogue.Late(err)
	}
	return err
}

// load returns an object, or a failure when ctx ends.
func (l *loader) load(ctx context.Context, t target, uid types.UID) answer {
	if failure := l.refuses(t); failure != "" {
		return l.cache.fail(t.key, uid, failure, false)
	}
	w := &want{ctx: ctx, uid: uid, answer: make(chan answer, 1)}
	l.mu.Lock()
	l.addLocked(t, w)
	l.mu.Unlock()
	select {
	case a := <-w.answer:
		return a
	case <-ctx.Done():
		return l.leave(t, w)
	}
}

// refuses returns the failure of lookups that are not worth a request; empty if they are.
func (l *loader) refuses(t target) Resolution {
	l.mu.Lock()
	isForbidden := l.planner.refusesReads(t.key.collection, l.now())
	l.mu.Unlock()
	if isForbidden {
		return ResolutionForbidden
	}
	return l.fetcher.breakers.refuses(t)
}

// leave returns the answer to a want that was not answered in time: an object in the cache that could
// not be refreshed, or a failure. A request that was not sent proves nothing, nor does a caller that
// leaves early.
func (l *loader) leave(t target, w *want) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.loads[t.key]
	if waiting == nil || !slices.Contains(waiting.wants, w) {
		return <-w.answer
	}
	waiting.wants = slices.DeleteFunc(waiting.wants, func(other *want) bool { return other == w })
	if l.background.isClosed() {
		return l.cache.fail(t.key, w.uid, ResolutionUnavailable, false)
	}
	isProven := waiting.sent > 0 && errors.Is(context.Cause(w.ctx), errLookupTimeout)
	return l.cache.fail(t.key, w.uid, ResolutionTimeout, isProven)
}

// addLocked lets a want wait for an object.
func (l *loader) addLocked(t target, w *want) {
	known := l.loads[t.key]
	if known == nil {
		known = &load{target: t}
		l.loads[t.key] = known
		l.collectLocked(known)
	}
	w.sentBefore = known.sent
	known.wants = append(known.wants, w)
}

// collectLocked lets a load be requested with those that come soon.
func (l *loader) collectLocked(waiting *load) {
	if l.collected = append(l.collected, waiting); len(l.collected) == 1 {
		time.AfterFunc(collectFor, l.request)
	}
}

// request requests what was collected, in lists or one by one.
func (l *loader) request() {
	l.mu.Lock()
	defer l.mu.Unlock()
	collected := l.collected
	l.collected = nil
	ofKind := make(map[unique.Handle[schema.GroupKind]][]*load)
	for _, waiting := range collected {
		waiting.answerLocked(func(w *want) (answer, bool) { return l.cache.find(waiting.key, w.uid) })
		if !l.joinListLocked(waiting) {
			ofKind[waiting.key.kind] = append(ofKind[waiting.key.kind], waiting)
		}
	}
	for _, loads := range ofKind {
		l.requestKindLocked(loads[0].kind, loads)
	}
}

func (l *loader) requestKindLocked(k *kinds.Kind, loads []*load) {
	keys := make([]objectKey, len(loads))
	for i, waiting := range loads {
		keys[i] = waiting.key
	}
	needsProof := slices.ContainsFunc(loads, func(waiting *load) bool { return waiting.needsProof })
	for _, planned := range l.planner.plan(k, keys, l.now()) {
		if l.lists[planned.in] == nil {
			begun := &list{kind: k, in: planned.in, isConsistent: needsProof}
			l.lists[planned.in] = begun
			l.background.run(func() { l.readList(begun, planned) })
		}
	}
	for _, waiting := range loads {
		if !l.joinListLocked(waiting) {
			l.readAloneLocked(waiting)
		}
	}
}

// joinListLocked lets an object wait for a list that may bring it. It returns false if there is none,
// or if it is slow.
func (l *loader) joinListLocked(waiting *load) bool {
	for _, in := range []collection{waiting.key.collection, collectionOf(waiting.kind, "")} {
		if running := l.lists[in]; running != nil && !running.isSlow && (running.isConsistent || !waiting.needsProof) {
			running.loads = append(running.loads, waiting)
			return true
		}
	}
	return false
}

// noteSent notes that a request for some objects is about to be sent. It returns false if nobody
// waits for it. Others may have joined a list until then, so it reads the loads under the lock.
func (l *loader) noteSent(loads *[]*load) (isNeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isNeeded = slices.ContainsFunc(*loads, func(waiting *load) bool { return len(waiting.wants) > 0 })
	if isNeeded {
		for _, waiting := range *loads {
			waiting.sent++
		}
	}
	return isNeeded
}

// readAloneLocked reads an object by itself, if it is wanted and not read yet.
func (l *loader) readAloneLocked(single *load) {
	if single.isAlone {
		return
	}
	if len(single.wants) == 0 {
		l.endLocked(single)
		return
	}
	single.isAlone = true
	first := single.wants[0]
	need, uid := need{first.ctx, func() bool { return l.noteSent(&[]*load{single}) }}, first.uid
	if single.needsProof {
		uid = "" // The watch cache need not be asked.
	}
	l.background.run(func() { l.endRead(single, l.fetcher.read(need, single.target, uid)) })
}

// endRead answers the climbs that wait for an object that was read by itself.
func (l *loader) endRead(single *load, result readResult) {
	unserved := l.noteError("get", single.kind, single.key.collection, result.err)
	failure, isSent := ResolutionOf(result.err), !errors.Is(result.err, errNotSent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if isSent {
		l.planner.noteRead(single.target, failure, l.now())
	}
	l.endLocked(single)
	single.answerLocked(func(w *want) (answer, bool) {
		isProven := single.sent > w.sentBefore && (result.err != nil || result.isConsistent)
		switch {
		case result.object != nil && result.object.hasUID(w.uid):
			return answer{object: result.object}, true
		case !isSent || !isProven && (failure == ResolutionNotFound || failure == ""):
			return answer{}, false
		case unserved:
			return answer{failure: ResolutionNotFound, unserved: true}, true
		default: // Without a failure, another object has the name.
			return l.cache.fail(single.key, w.uid, cmp.Or(failure, ResolutionNotFound), true), true
		}
	})
	for _, w := range single.wants {
		l.addLocked(single.target, w)
	}
}

// noteError reports a missing permission to the observer, and a kind that is not served at its path
// to the catalogue. Without the list of the cluster, those of single namespaces do.
func (l *loader) noteError(verb string, k *kinds.Kind, in collection, err error) (unserved bool) {
	isOfCluster := k.Namespaced && in.namespace.Value() == ""
	if l.observer != nil && ResolutionOf(err) == ResolutionForbidden && !isOfCluster {
		l.observer.Forbidden(verb, k.Resource.GroupResource(), in.namespace.Value())
	}
	unserved = isAboutPath(err)
	if unserved {
		l.catalogue.Unserved(k)
	}
	return unserved
}

// anyVersion allows an answer from the watch cache at any version, in pages. "0" means the same, but
// returns a single page.
const anyVersion = "1"

// readList reads a list to its end, unless it is not worth it. Climbs leave it as soon as their
// objects are found.
func (l *loader) readList(read *list, planned listing) {
	slow := time.AfterFunc(l.timeout/slowShare, func() { l.noteSlow(read) })
	defer slow.Stop()
	need, isWanted := l.needOfList(read)
	if !isWanted {
		l.endList(read, false, errNotSent)
		return
	}
	options := metav1.ListOptions{Limit: int64(planned.limit)}
	if !read.isConsistent {
		options.ResourceVersion, options.ResourceVersionMatch = anyVersion, metav1.ResourceVersionMatchNotOlderThan
	}
	for {
		page, requestedAt, err := l.fetcher.page(need, read.kind, read.in, options)
		if err != nil {
			l.endList(read, false, err)
			return
		}
		var goesOn bool
		if planned, goesOn = l.takePage(read, planned, page, requestedAt); !goesOn {
			l.endList(read, page.Continue == "", nil)
			return
		}
		// It was begun for more objects than those that climbs still want.
		need.ctx, need.isThere = l.background.ctx, func() bool { return true }
		options = metav1.ListOptions{Limit: int64(planned.limit), Continue: page.Continue}
	}
}

// needOfList returns who needs the first page of a list: a climb that has not left. It returns false if
// there is none.
func (l *loader) needOfList(read *list) (need, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, waiting := range read.loads {
		if len(waiting.wants) > 0 {
			return need{waiting.wants[0].ctx, func() bool { return l.noteSent(&read.loads) }}, true
		}
	}
	return need{}, false
}

// takePage caches a page and answers the climbs that wait for its objects. It returns how far the
// list was read, and whether the next page is to be read.
func (l *loader) takePage(from *list, planned listing, page *metav1.PartialObjectMetadataList, requestedAt time.Duration) (listing, bool) {
	next := limitAfter(page) // What is stored is trimmed.
	found := make(map[objectKey]*Object, len(page.Items))
	for i := range page.Items {
		in := collectionOf(from.kind, page.Items[i].Namespace)
		object := l.fetcher.store(from.kind, in, &page.Items[i], requestedAt)
		found[objectKey{in, object.Name}] = object
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, object := range found {
		if waiting := l.loads[key]; waiting != nil {
			waiting.answerLocked(func(w *want) (answer, bool) { return answer{object: object}, object.hasUID(w.uid) })
		}
	}
	planned.needed = max(planned.needed, len(from.loads)) // Others have joined it.
	planned, goesOn := l.planner.notePage(planned, page, next, l.now())
	if goesOn && remaining(page) > longList {
		l.noteSlowLocked(from)
	}
	return planned, goesOn
}

func (l *loader) noteSlow(slow *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteSlowLocked(slow)
}

// noteSlowLocked also reads the objects of a slow list one by one.
func (l *loader) noteSlowLocked(slow *list) {
	slow.isSlow = true
	for _, waiting := range slow.loads {
		l.readAloneLocked(waiting)
	}
}

// endList answers the climbs that still wait for a list. A consistent list that was read to its end
// proves what did not exist when it was sent.
func (l *loader) endList(ended *list, isWhole bool, err error) {
	unserved := l.noteError("list", ended.kind, ended.in, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lists, ended.in)
	if !unserved && !errors.Is(err, errNotSent) {
		l.planner.noteList(ended.in, isWhole, ResolutionOf(err), l.now())
	}
	for _, waiting := range ended.loads {
		if waiting.isAlone {
			continue
		}
		waiting.answerLocked(func(w *want) (answer, bool) {
			switch {
			case unserved:
				return answer{failure: ResolutionNotFound, unserved: true}, true
			case isWhole && ended.isConsistent && waiting.sent > w.sentBefore:
				return l.cache.fail(waiting.key, w.uid, ResolutionNotFound, true), true
			default:
				return answer{}, false
			}
		})
		waiting.needsProof = waiting.needsProof || isWhole
		if len(waiting.wants) == 0 {
			l.endLocked(waiting)
		} else {
			l.collectLocked(waiting)
		}
	}
}

// failKind answers all wants of a kind that hangs or fails.
func (l *loader) failKind(kind unique.Handle[schema.GroupKind], failure Resolution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, waiting := range l.loads {
		if key.kind != kind {
			continue
		}
		waiting.answerLocked(func(w *want) (answer, bool) { return l.cache.fail(key, w.uid, failure, false), true })
		l.endLocked(waiting)
	}
}

// endLocked ends a load: later climbs that want the object need another request.
func (l *loader) endLocked(ended *load) {
	if l.loads[ended.key] == ended {
		delete(l.loads, ended.key)
	}
}

// answerLocked answers the wants for which there is an answer.
func (ld *load) answerLocked(answerTo func(*want) (answer, bool)) {
	ld.wants = slices.DeleteFunc(ld.wants, func(w *want) bool {
		a, ok := answerTo(w)
		if ok {
			w.answer <- a
		}
		return ok
	})
}

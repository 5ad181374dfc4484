// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// anyVersion allows an answer from the watch cache at any version, in pages. "0" means the same,
// but returns a single page.
const anyVersion = "1"

// flights has the requests that are in flight, and the climbs that wait for them.
//
// Climbs that wait put their wants into a wave. When no climb is running any more, all of them
// wait, and the wave is requested as a whole, as the planner decides. Then one list can serve many
// climbs. After Close, nothing is requested, and the climbs that wait leave.
type flights struct {
	catalogue  *kinds.Catalogue
	cache      *cache
	fetcher    *fetcher
	watcher    *watcher
	observer   Observer
	background *background
	now        func() time.Duration
	timeout    time.Duration // how long a climb waits at most

	mu      sync.Mutex // guards the following, and the marked fields of wants, reads and lists
	planner *planner
	running int // climbs that do not wait
	wave    []*want
	// awaitingKinds is how many climbs wait for the kinds, and kindsRead how often they were read.
	awaitingKinds, kindsRead int

	reads map[objectKey]*read  // in flight
	lists map[collection]*list // in flight
}

// want is an object that a climb waits for.
type want struct {
	target
	uid types.UID // empty: whatever object has the name
	// level is how many objects the climb has found. Those that have progressed furthest come
	// first.
	level int
	// answer gets one answer, unless the climb has left. It has room for it.
	answer chan answer

	// flights.mu guards the following.

	answered bool // or the climb has left
	// needsProof is set if an answer from the watch cache was not enough.
	needsProof bool
	isEarly    bool // it was there before the list that it waits for was begun
	sent       bool // in a request for this object alone
}

// read is a request for one object, in flight or waiting to be sent. flights.mu guards wants and
// proven.
type read struct {
	target
	wants []*want // that wait for it; some may be answered in another way
	// proven is how many of the wants were there when the last request was sent. For the others,
	// the request may be older than their object, so it does not prove that the object does not
	// exist.
	proven int
}

// list is one paged list of a collection. Climbs leave it as soon as their objects are found. It is
// read to its end all the same, because it was begun for more objects than those.
type list struct {
	kind       *kinds.Kind
	consistent bool // read consistently: the whole list proves what does not exist
	level      int

	// flights.mu guards the following.

	listing
	wants   map[objectKey][]*want
	place   string // of the last object that was read
	stalled bool   // for so long that objects are also read one by one
}

func newFlights(b *background, clients *clients, cache *cache, rate flowcontrol.RateLimiter, cfg Config, now func() time.Duration) *flights {
	var permitted float32
	if rate != nil {
		permitted = rate.QPS()
	}
	f := &flights{
		cache: cache, observer: cfg.Observer, background: b, now: now, timeout: cfg.LookupTimeout,
		planner: newPlanner(cfg, permitted),
		reads:   make(map[objectKey]*read),
		lists:   make(map[collection]*list),
	}
	f.fetcher = newFetcher(b, clients, cache, rate, cfg, now, f.fail)
	f.watcher = &watcher{
		clients: clients, store: f.fetcher.storeChange, background: b, now: now, namespaces: cfg.Namespaces,
		kinds: make(map[unique.Handle[schema.GroupKind]]*watched),
	}
	f.catalogue = clients.catalogue(kinds.Config{
		Send: f.fetcher.sendUnlimited, Run: b.run, Now: now, WasRead: f.noteKindsRead,
		Retry: func(err error) time.Duration { return failureTTL(failureOf(err)) },
	})
	return f
}

// begin counts climbs that begin.
func (f *flights) begin(climbs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += climbs
}

// end must be called when a climb ends.
func (f *flights) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waitLocked()
}

// waitLocked counts a climb that waits or ends. The last one requests the wave.
func (f *flights) waitLocked() {
	f.running--
	f.requestWaveLocked()
}

// kindsOf returns the kinds that the reference may mean, or why there are none. If ok is false,
// awaitKinds must be called first.
func (f *flights) kindsOf(ref Reference) (found []*kinds.Kind, ok bool, err error) {
	return f.catalogue.Find(ref.APIVersion, ref.Kind)
}

// awaitKinds waits until the kinds that the API server serves are read, or until ctx ends; then it
// returns why.
func (f *flights) awaitKinds(ctx context.Context, ref Reference) (err error) {
	read := f.catalogue.Await(ref.APIVersion, ref.Kind)
	if read == nil {
		return nil
	}
	f.mu.Lock()
	reads := f.kindsRead
	f.awaitingKinds++
	f.waitLocked()
	f.mu.Unlock()
	select {
	case <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	if f.kindsRead == reads {
		f.awaitingKinds--
		f.running++
	}
	f.mu.Unlock()
	if errors.Is(err, errLookupTimeout) {
		f.catalogue.Late(err)
	}
	return err
}

// noteKindsRead lets the climbs run that wait for the kinds. All of them count as running before
// the first one wants an object, so that they share a wave.
func (f *flights) noteKindsRead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += f.awaitingKinds
	f.awaitingKinds = 0
	f.kindsRead++
}

// await returns an object that a climb waits for, or a failure when ctx ends. level is how many
// objects the climb has found.
func (f *flights) await(ctx context.Context, t target, uid types.UID, level int) answer {
	w := &want{target: t, uid: uid, level: level, answer: make(chan answer, 1)}
	if ctx.Err() != nil {
		return f.late(ctx, w, false)
	}
	f.mu.Lock()
	f.wave = append(f.wave, w)
	f.waitLocked()
	f.mu.Unlock()
	select {
	case a := <-w.answer:
		return a
	case <-ctx.Done():
	}
	f.mu.Lock()
	if w.answered {
		f.mu.Unlock()
		return <-w.answer
	}
	w.answered = true
	f.running++
	sent := w.sent
	f.mu.Unlock()
	return f.late(ctx, w, sent)
}

// late returns the answer to a want that was not answered in time: an object in the cache that
// could not be refreshed, or a failure. A request that was not sent proves nothing, nor does a
// caller that leaves early.
func (f *flights) late(ctx context.Context, w *want, sent bool) answer {
	if f.background.isClosed() {
		return f.cache.fail(w.key, w.uid, Unavailable, false)
	}
	return f.cache.fail(w.key, w.uid, Timeout, sent && errors.Is(context.Cause(ctx), errLookupTimeout))
}

// answerLocked lets the climb run that waits for a want.
func (f *flights) answerLocked(w *want, a answer) {
	if w.answered {
		return
	}
	w.answered = true
	f.running++
	w.answer <- a
}

// failLocked answers a want with a failure, or with an object of the cache that could not be
// refreshed.
func (f *flights) failLocked(w *want, failure Resolution, remember bool) {
	if !w.answered {
		f.answerLocked(w, f.cache.fail(w.key, w.uid, failure, remember))
	}
}

func (f *flights) failAllLocked(wants []*want, failure Resolution) {
	for _, w := range wants {
		f.failLocked(w, failure, false)
	}
}

// fail answers all wants of a kind whose requests fail one after the other.
func (f *flights) fail(kind unique.Handle[schema.GroupKind], failure Resolution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, r := range f.reads {
		if key.kind == kind {
			f.failAllLocked(r.wants, failure)
		}
	}
	for in, of := range f.lists {
		if in.kind == kind {
			for _, waiting := range of.wants {
				f.failAllLocked(waiting, failure)
			}
		}
	}
	f.requestWaveLocked()
}

// requestWaveLocked requests what the climbs want, once all of them wait.
func (f *flights) requestWaveLocked() {
	for f.running == 0 && len(f.wave) > 0 {
		wants := f.wave
		f.wave = nil
		unknown := make(map[*kinds.Kind]map[objectKey][]*want)
		for _, w := range wants {
			if w.answered || f.concludeLocked(w) || f.joinLocked(w) {
				continue
			}
			if unknown[w.kind] == nil {
				unknown[w.kind] = make(map[objectKey][]*want)
			}
			unknown[w.kind][w.key] = append(unknown[w.kind][w.key], w)
		}
		for k, wants := range unknown {
			f.requestLocked(k, wants)
		}
	}
}

// concludeLocked answers a want that needs no request: another climb's request has brought the
// object, or a request would fail as those before it.
func (f *flights) concludeLocked(w *want) bool {
	if found, known := f.cache.find(w.key, w.uid); known {
		f.answerLocked(w, found)
		return true
	}
	failure := Forbidden
	if !f.planner.refusesReads(w.key.collection, f.now()) {
		failure = f.fetcher.refuses(w.target)
	}
	if failure != "" {
		f.failLocked(w, failure, false)
	}
	return failure != ""
}

// joinLocked lets a want wait for a request that is in flight. It returns false if there is none
// that may bring the object.
func (f *flights) joinLocked(w *want) bool {
	if r := f.reads[w.key]; r != nil {
		r.wants = append(r.wants, w)
		return true
	}
	for _, in := range []collection{w.key.collection, collectionOf(w.kind, "")} {
		if of := f.lists[in]; of != nil && of.mayBring(w) {
			w.isEarly = false
			of.wants[w.key] = append(of.wants[w.key], w)
			f.readSoonerLocked(of)
			return true
		}
	}
	return false
}

// requestLocked requests objects of a kind, in lists or one by one.
func (f *flights) requestLocked(k *kinds.Kind, unknown map[objectKey][]*want) {
	for _, planned := range f.planner.plan(k, slices.Collect(maps.Keys(unknown)), f.momentLocked()) {
		f.beginListLocked(k, planned, unknown)
	}
	for _, wants := range unknown {
		for _, w := range wants {
			f.readLocked(w)
		}
	}
}

func (f *flights) momentLocked() moment {
	return moment{
		now: f.now(), needed: f.cache.neededObjects(),
		isListed: func(in collection) bool { return f.lists[in] != nil },
	}
}

// readLocked requests one object, unless this is in flight.
func (f *flights) readLocked(w *want) {
	if r := f.reads[w.key]; r != nil {
		r.wants = append(r.wants, w)
		return
	}
	r := &read{target: w.target, wants: []*want{w}}
	f.reads[w.key] = r
	fromCache := !w.needsProof && w.uid != "" // Most objects are older than their events.
	isNeeded := func() bool { return f.noteSent(r) }
	f.background.run(func() { f.endRead(r, f.fetcher.read(w.target, w.uid, w.level, fromCache, isNeeded)) })
}

// noteSent notes that the request is about to be sent. It returns false if nobody waits for it.
func (f *flights) noteSent(r *read) (isNeeded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(r.wants, func(w *want) bool { return !w.answered }) {
		return false
	}
	for _, w := range r.wants {
		w.sent = true
	}
	r.proven = len(r.wants)
	return true
}

// endRead answers the climbs that wait for the object.
func (f *flights) endRead(r *read, result readResult) {
	unserved := f.noteError("get", r.kind, r.key.collection, result.err)
	failure, notSent := failureOf(result.err), errors.Is(result.err, errNotSent)
	if failure == "" {
		f.watcher.noteRead(r.kind, result.version)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.reads, r.key)
	if !notSent {
		f.planner.noteRead(r.target, failure, f.now())
	}
	for i, w := range r.wants {
		isProven := i < r.proven && (result.err != nil || result.isConsistent)
		switch {
		case w.answered:
		case result.object != nil && result.object.hasUID(w.uid):
			f.answerLocked(w, answer{object: result.object})
		case notSent || !isProven && (failure == NotFound || failure == ""):
			w.needsProof = true
			f.wave = append(f.wave, w)
		case unserved:
			f.answerLocked(w, answer{failure: NotFound, unserved: true})
		case failure == "":
			f.failLocked(w, NotFound, true) // Another object has the name.
		default:
			f.failLocked(w, failure, true)
		}
	}
	f.requestWaveLocked()
}

// noteError reports a missing permission to the observer, and a kind that is not served at its path
// to the catalogue. Without the list of the cluster, those of single namespaces do.
func (f *flights) noteError(verb string, k *kinds.Kind, in collection, err error) (unserved bool) {
	isOfCluster := k.Namespaced && in.namespace.Value() == ""
	if f.observer != nil && failureOf(err) == Forbidden && !isOfCluster {
		f.observer.Forbidden(verb, k.Resource.GroupResource(), in.namespace.Value())
	}
	unserved = isAboutPath(err)
	if unserved {
		f.catalogue.Unserved(k)
	}
	return unserved
}

// beginListLocked begins a list, and moves the wants to it that it may bring. Usually it is read
// from the API server's watch cache, since most objects are older than that. A consistent list can
// take the API server a while.
func (f *flights) beginListLocked(k *kinds.Kind, planned listing, unknown map[objectKey][]*want) {
	of := &list{kind: k, listing: planned, wants: make(map[objectKey][]*want)}
	for key, wants := range unknown {
		if planned.in != key.collection && planned.in != collectionOf(k, "") {
			continue
		}
		for _, w := range wants {
			w.isEarly = true
			of.consistent = of.consistent || w.needsProof
			of.level = max(of.level, w.level)
		}
		of.wants[key] = wants
		delete(unknown, key)
	}
	f.lists[planned.in] = of
	f.background.run(func() { f.readList(of) })
	f.readSoonerLocked(of)
}

// mayBring reports whether a list that is in flight may still bring the object.
func (of *list) mayBring(w *want) bool {
	return placeOf(w.key) > of.place && (of.consistent || !w.needsProof)
}

// placeOf returns a string that orders objects as lists do: as etcd does.
func placeOf(key objectKey) string { return key.namespace.Value() + "/" + key.name }

// readList reads a list to its end, unless it is not worth it.
func (f *flights) readList(of *list) {
	options := metav1.ListOptions{Limit: int64(of.limit)}
	if !of.consistent {
		options.ResourceVersion = anyVersion
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	for {
		stalled := time.AfterFunc(f.timeout/4, func() { f.noteStalled(of) })
		// A page goes before single objects of the kind: it may bring many of them.
		page, requestedAt, err := f.fetcher.page(of.kind, of.in, of.level+1, options)
		stalled.Stop()
		if refusesVersion(err) && options.ResourceVersion != "" {
			options = metav1.ListOptions{Limit: options.Limit}
			continue
		}
		if err != nil || !f.takePage(of, page, requestedAt) {
			f.endList(of, page, err)
			return
		}
		options = metav1.ListOptions{Limit: int64(of.limit), Continue: page.Continue}
	}
}

// refusesVersion reports whether a server without a watch cache rejected the resource version.
func refusesVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// takePage caches a page and answers the climbs that wait for its objects. It reports whether the
// next page is to be read.
func (f *flights) takePage(of *list, page *metav1.PartialObjectMetadataList, requestedAt time.Duration) (goesOn bool) {
	found, keys := make([]*Object, len(page.Items)), make([]objectKey, len(page.Items))
	for i := range page.Items {
		in := collectionOf(of.kind, page.Items[i].Namespace)
		found[i] = f.fetcher.store(of.kind, in, &page.Items[i], requestedAt, true)
		keys[i] = objectKey{in, found[i].Name}
	}
	f.watcher.noteList(of.kind, page.ResourceVersion)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, object := range found {
		f.answerFoundLocked(of, keys[i], object)
	}
	if last := len(keys) - 1; last >= 0 {
		of.place = placeOf(keys[last])
	}
	of.stalled = false
	of.listing, goesOn = f.planner.notePage(of.listing, page, f.momentLocked())
	if goesOn {
		f.readSoonerLocked(of)
		f.requestWaveLocked()
	}
	return goesOn
}

// answerFoundLocked answers the climbs that wait for an object of the list. In a list from the
// watch cache, an object with another UID may be an earlier one of the name.
func (f *flights) answerFoundLocked(of *list, key objectKey, object *Object) {
	var left []*want
	for _, w := range of.wants[key] {
		if object.hasUID(w.uid) {
			f.cache.use(key, object.UID)
			f.answerLocked(w, answer{object: object})
		} else if !w.answered {
			left = append(left, w)
		}
	}
	if delete(of.wants, key); len(left) > 0 {
		of.wants[key] = left
	}
}

// noteStalled notes that a page does not come.
func (f *flights) noteStalled(of *list) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of.stalled = true
	f.readSoonerLocked(of)
}

// readSoonerLocked also requests the objects of a list one by one if this takes less time.
func (f *flights) readSoonerLocked(of *list) {
	if !of.stalled && !f.planner.isQuickerSingly(of.listing, len(of.wants)) || f.lists[of.in] != of {
		return
	}
	for _, wants := range of.wants {
		for _, w := range wants {
			if !w.answered && f.reads[w.key] == nil {
				f.readLocked(w)
			}
		}
	}
}

// endList answers the climbs that still wait for the list. page is its last page; nil: there is
// none.
func (f *flights) endList(of *list, page *metav1.PartialObjectMetadataList, err error) {
	unserved := f.noteError("list", of.kind, of.in, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.lists, of.in)
	isWhole := err == nil && page.Continue == ""
	if !unserved {
		f.planner.noteList(of.in, isWhole, failureOf(err), f.now())
	}
	for _, wants := range of.wants {
		for _, w := range wants {
			switch {
			case unserved:
				f.answerLocked(w, answer{failure: NotFound, unserved: true})
			case isWhole && of.consistent && w.isEarly:
				f.failLocked(w, NotFound, true)
			default:
				w.needsProof = w.needsProof || isWhole
				f.wave = append(f.wave, w)
			}
		}
	}
	f.requestWaveLocked()
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// listThreshold is the number of unknown objects of one collection, for each page of its list,
	// from which the list is read. Fewer objects are read one by one. If two are unknown within a
	// second, there will be more.
	listThreshold = 2
	// demandWindow is the time in which the unknown objects of different calls count together.
	demandWindow = time.Second
	// missAfterList is how long after a complete list of a collection an object that the list did
	// not have counts as new.
	missAfterList = time.Minute
	// maxDemands is the maximum number of collections with a remembered demand.
	maxDemands = 4096
	// pageSize is how many objects one page of a list has.
	pageSize = 500
)

// listing is one paged list of a collection that looks for certain names.
type listing struct {
	kind       *kind
	collection collection

	done   chan struct{} // closed at the end; then the fields that lister.mu guards are final
	cancel context.CancelFunc

	// lister.mu guards the following.

	waiters    int
	missing    map[string]bool    // names that were not found yet
	joinedLate map[string]bool    // names that were added after the list had begun
	found      map[string]*Object // the objects of the requested names
	complete   bool               // all pages were read
	consistent bool               // complete and read consistently: proves what does not exist
	unserved   bool               // the collection is no longer served
}

// lister reads lists, at most one per collection at a time.
type lister struct {
	reader     *reader
	watcher    *watcher
	background *background
	now        func() time.Duration

	refusals *refusals

	// mu guards the following, and the marked fields of every listing.
	mu       sync.Mutex
	listings map[collection]*listing // in flight
	demands  *simplelru.LRU[collection, demand]
}

// demand is which objects of a collection were requested lately.
type demand struct {
	names    map[string]struct{} // requested by any caller
	since    time.Duration
	pages    int           // of its last list; 0: there was none
	listedAt time.Duration // when a complete list was read; 0: never
}

func newLister(b *background, r *reader, w *watcher) *lister {
	return &lister{
		reader:     r,
		watcher:    w,
		background: b,
		now:        r.now,
		refusals:   newRefusals(1, r.now),
		listings:   make(map[collection]*listing),
		demands:    newLRU[collection, demand](maxDemands),
	}
}

// join adds names to the list of the collection that is in flight. If there is none, it starts one
// if there are enough names, or if more are expected. It returns nil if the names are better read
// one by one. Callers must wait for the listing or leave it, once for each name.
func (l *lister) join(k *kind, in collection, names []string, expectMore bool) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	joined, found := l.listings[in]
	if !found {
		if !l.isWorthwhileLocked(k, in, names, expectMore) || !k.listable || l.refusals.has(in) {
			return nil
		}
		joined = l.beginLocked(k, in)
	}
	for _, name := range names {
		joined.addLocked(name, found)
	}
	return joined
}

// isWorthwhileLocked reports whether enough different names were requested lately for a list to be
// worth its pages.
func (l *lister) isWorthwhileLocked(k *kind, in collection, names []string, expectMore bool) bool {
	different := make(map[string]struct{}, len(names))
	for _, name := range names {
		different[name] = struct{}{}
	}
	d, _ := l.demands.Get(in)
	now := l.now()
	if d.listedAt != 0 && now-d.listedAt < missAfterList {
		l.watcher.missed(k, len(different))
	}
	if now-d.since > demandWindow {
		d.names, d.since = nil, now
	}
	if d.names == nil {
		d.names = different
	} else {
		maps.Copy(d.names, different)
	}
	many := len(d.names) >= listThreshold*max(1, d.pages) || expectMore && d.pages <= 1 && d.listedAt == 0
	if many {
		d.names = nil
	}
	l.demands.Add(in, d)
	return many
}

// addLocked adds a name that a caller waits for.
func (l *listing) addLocked(name string, late bool) {
	l.waiters++
	if l.found[name] == nil {
		l.missing[name] = true
	}
	if late {
		l.joinedLate[name] = true
	}
}

func (l *lister) beginLocked(k *kind, in collection) *listing {
	ctx, cancel := context.WithCancel(l.background.ctx)
	begun := &listing{
		kind: k, collection: in, done: make(chan struct{}), cancel: cancel,
		missing: make(map[string]bool), joinedLate: make(map[string]bool), found: make(map[string]*Object),
	}
	l.listings[in] = begun
	if !l.background.run(func() { l.read(ctx, begun) }) {
		delete(l.listings, in)
		cancel()
		close(begun.done)
	}
	return begun
}

// leave removes one waiting name from the listing.
func (l *lister) leave(left *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left.waiters--
	if left.waiters == 0 {
		left.cancel()
	}
}

// result returns what a finished listing found about the object with the name and the UID; false if
// nothing. If the name joined late, the list may be older than the object, and proves nothing
// against it.
func (l *lister) result(of *listing, name string, uid types.UID) (answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := answer{object: of.found[name], failure: NotFound}
	if found.object != nil {
		found.failure = ""
	}
	if of.unserved {
		return answer{failure: NotFound, unserved: true}, true
	}
	if of.joinedLate[name] {
		return found, found.object != nil && found.proves(uid)
	}
	if found.object != nil && !of.consistent {
		// The API server's watch cache may still hold an earlier object of the name.
		return found, uid == "" || found.object.UID == uid
	}
	found.forUID = uid
	return found, of.consistent
}

// read reads the list from the API server's watch cache. Only a consistent list proves that an
// object does not exist. But a consistent list can take the API server a while, and most objects
// are older than its cache.
func (l *lister) read(ctx context.Context, of *listing) {
	err := l.readPages(ctx, of, metav1.ListOptions{
		Limit:                pageSize,
		ResourceVersion:      anyVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if refusesVersion(err) || err == nil && l.lacksMany(of) {
		err = l.readPages(ctx, of, metav1.ListOptions{Limit: pageSize})
		if err == nil {
			l.end(of, func() { of.consistent = of.complete })
			return
		}
	}
	if err != nil {
		l.reader.limiter.forbidden(err, "list", of.kind, of.collection)
		l.refusals.note(of.collection, failureOf(err))
	}
	l.end(of, func() { of.unserved = isAboutPath(err) })
}

// anyVersion allows an answer from the watch cache at any version, in pages. "0" means the same,
// but returns a single page.
const anyVersion = "1"

// refusesVersion reports whether a server without a watch cache rejected the resource version.
func refusesVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// readPages reads pages until another one is not worth a request.
func (l *lister) readPages(ctx context.Context, of *listing, options metav1.ListOptions) error {
	for read := 1; ; read++ {
		page, requestedAt, err := l.page(ctx, of, options)
		if err != nil {
			return err
		}
		l.storePage(of, page, requestedAt)
		l.noteSize(of, page, read)
		if l.isDone(of, page) {
			return nil
		}
		options = metav1.ListOptions{Limit: pageSize, Continue: page.Continue}
	}
}

// page reads one page.
func (l *lister) page(ctx context.Context, of *listing, options metav1.ListOptions) (page *metav1.PartialObjectMetadataList, requestedAt time.Duration, err error) {
	err = l.reader.limiter.send(ctx, func(ctx context.Context) (err error) {
		requestedAt = l.now()
		page, err = l.reader.resource(of.kind, of.collection).List(ctx, options)
		return err
	})
	return page, requestedAt, err
}

// storePage caches a page. Callers get their objects from the listing, so the cache does not need
// room for the whole page.
func (l *lister) storePage(of *listing, page *metav1.PartialObjectMetadataList, requestedAt time.Duration) {
	objects := make([]*Object, 0, len(page.Items))
	for i := range page.Items {
		objects = append(objects, l.reader.store(of.kind, of.collection, &page.Items[i], requestedAt))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, object := range objects {
		if _, isMissing := of.missing[object.Name]; isMissing {
			of.found[object.Name] = object
			delete(of.missing, object.Name)
		}
	}
}

// isDone reports whether the next page is not worth a request: there is none, all names are found,
// or single reads of the missing names take fewer requests.
func (l *lister) isDone(of *listing, page *metav1.PartialObjectMetadataList) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.complete = page.Continue == ""
	return of.complete || pagesAfter(page) > len(of.missing)
}

// lacksMany reports whether so many names are missing that another list takes fewer requests than
// single reads.
func (l *lister) lacksMany(of *listing) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, _ := l.demands.Get(of.collection)
	return len(of.missing) >= listThreshold*max(1, d.pages)
}

// pagesAfter returns the minimum number of pages after this one.
func pagesAfter(page *metav1.PartialObjectMetadataList) int {
	switch {
	case page.Continue == "":
		return 0
	case page.RemainingItemCount == nil:
		return 1
	default:
		return int((*page.RemainingItemCount + pageSize - 1) / pageSize)
	}
}

// noteSize records how many pages the list of a collection has, and when all of them were read.
func (l *lister) noteSize(of *listing, page *metav1.PartialObjectMetadataList, read int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, _ := l.demands.Get(of.collection)
	d.pages = read + pagesAfter(page)
	if page.Continue == "" {
		d.listedAt = l.now()
		l.watcher.listed(of.kind, page.ResourceVersion)
	}
	l.demands.Add(of.collection, d)
}

// end ends the listing after note has set its fields.
func (l *lister) end(of *listing, note func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	note()
	l.endLocked(of)
}

// endLocked releases the callers.
func (l *lister) endLocked(of *listing) {
	delete(l.listings, of.collection)
	of.cancel()
	close(of.done)
}

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
	// listFrom is from how many unknown objects of one place on, for each page of
	// its list, the list is read instead of them one by one: where two are unknown
	// within a second, others will be.
	listFrom = 2
	// demandWindow is for how long those count together that are asked for by
	// different calls.
	demandWindow = time.Second
	// newcomerFor is how long after a whole list of a place what it did not hold
	// is taken for new.
	newcomerFor = time.Minute
	// mostDemands bounds the places of which is remembered what was asked.
	mostDemands = 4096
	// pageSize is how many objects one request of a list brings.
	pageSize = 500
)

// listing is one paged list of a place, in the hope of certain names.
type listing struct {
	kind  *kind
	place place

	done   chan struct{} // closed at the end; the fields guarded by lister.mu don't change any more
	cancel context.CancelFunc

	// All below is guarded by lister.mu.

	waiters  int
	wanted   map[string]bool    // names not seen yet
	late     map[string]bool    // names that were wanted when the list had begun
	found    map[string]*Object // of the wanted names
	whole    bool               // all pages were read
	proves   bool               // and consistently: what was not found is not there
	unserved bool               // the place is not served any more
}

// lister reads lists, at most one of a place at a time.
type lister struct {
	reader     *reader
	follower   *follower
	background *background
	now        func() time.Duration

	refused *refusals

	// mu guards all below, and what every listing says it guards.
	mu      sync.Mutex
	under   map[place]*listing // under way
	demands *simplelru.LRU[place, demand]
}

// demand is what was asked of a place lately.
type demand struct {
	names map[string]struct{} // by any of the callers
	since time.Duration
	pages int           // of its last list; 0: none was read
	whole time.Duration // when a whole list was read; 0: never
}

func newLister(b *background, r *reader, f *follower) *lister {
	return &lister{
		reader:     r,
		follower:   f,
		background: b,
		now:        r.now,
		refused:    newRefusals(1, r.now),
		under:      make(map[place]*listing),
		demands:    newLRU[place, demand](mostDemands),
	}
}

// join adds names to the list of the place that is under way, or begins one when
// there are enough of them, or when more are to be expected. It returns nil when
// the names are better read one by one. Who joins must either see the listing done
// or leave it, once for each name.
func (l *lister) join(k *kind, in place, names []string, expectMore bool) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	joined, found := l.under[in]
	if !found {
		if !l.areManyLocked(k, in, names, expectMore) || !k.listable || l.refused.has(in) {
			return nil
		}
		joined = l.beginLocked(k, in)
	}
	for _, name := range names {
		joined.wantLocked(name, found)
	}
	return joined
}

// areManyLocked reports whether so many different names were asked for lately
// that a list is worth its pages.
func (l *lister) areManyLocked(k *kind, in place, names []string, expectMore bool) bool {
	different := make(map[string]struct{}, len(names))
	for _, name := range names {
		different[name] = struct{}{}
	}
	d, _ := l.demands.Get(in)
	now := l.now()
	if d.whole != 0 && now-d.whole < newcomerFor {
		l.follower.newcomersOf(k, len(different))
	}
	if now-d.since > demandWindow {
		d.names, d.since = nil, now
	}
	if d.names == nil {
		d.names = different
	} else {
		maps.Copy(d.names, different)
	}
	many := len(d.names) >= listFrom*max(1, d.pages) || expectMore && d.pages <= 1 && d.whole == 0
	if many {
		d.names = nil
	}
	l.demands.Add(in, d)
	return many
}

// wantLocked adds a name that somebody waits for.
func (l *listing) wantLocked(name string, late bool) {
	l.waiters++
	if l.found[name] == nil {
		l.wanted[name] = true
	}
	if late {
		l.late[name] = true
	}
}

func (l *lister) beginLocked(k *kind, in place) *listing {
	wanted, cancel := context.WithCancel(l.background.ctx)
	begun := &listing{
		kind: k, place: in, done: make(chan struct{}), cancel: cancel,
		wanted: make(map[string]bool), late: make(map[string]bool), found: make(map[string]*Object),
	}
	l.under[in] = begun
	if !l.background.run(func() { l.read(wanted, begun) }) {
		delete(l.under, in)
		cancel()
		close(begun.done)
	}
	return begun
}

// leave says that one of the names is not waited for any more.
func (l *lister) leave(left *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left.waiters--
	if left.waiters == 0 {
		left.cancel()
	}
}

// outcome says what a finished listing found out about the object with the name
// and the UID, or false when that is nothing. A list may be older than an object
// that was looked for when the list had begun, so it proves nothing against it.
func (l *lister) outcome(of *listing, name string, uid types.UID) (answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := answer{object: of.found[name], failure: NotFound}
	if found.object != nil {
		found.failure = ""
	}
	if of.unserved {
		return answer{failure: NotFound, unserved: true}, true
	}
	if of.late[name] {
		return found, found.object != nil && found.proves(uid)
	}
	if found.object != nil && !of.proves {
		// The API server's cache may still hold an earlier object of the name.
		return found, uid == "" || found.object.UID == uid
	}
	found.askedFor = uid
	return found, of.proves
}

// read reads the list as the API server's cache has it. Only a list that is read
// consistently proves what is not there, but it may take the API server a while to
// be sure, and what is looked for is mostly older than its cache.
func (l *lister) read(wanted context.Context, of *listing) {
	err := l.readPages(wanted, of, metav1.ListOptions{
		Limit:                pageSize,
		ResourceVersion:      anyVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if refusesVersion(err) || err == nil && l.lacksMany(of) {
		err = l.readPages(wanted, of, metav1.ListOptions{Limit: pageSize})
		if err == nil {
			l.end(of, func() { of.proves = of.whole })
			return
		}
	}
	if err != nil {
		l.reader.gate.forbidden(err, "list", of.kind, of.place)
		l.refused.note(of.place, failureOf(err))
	}
	l.end(of, func() { of.unserved = isAboutPath(err) })
}

// anyVersion lets the cache answer, whatever it holds, and page by page: for "0",
// which says the same, there is but one page.
const anyVersion = "1"

// refusesVersion reports whether a server that knows no cache refused to be asked
// for it.
func refusesVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// readPages reads pages until there is no use in another.
func (l *lister) readPages(wanted context.Context, of *listing, options metav1.ListOptions) error {
	for read := 1; ; read++ {
		page, asked, err := l.page(wanted, of, options)
		if err != nil {
			return err
		}
		l.keep(of, page, asked)
		l.noteSize(of, page, read)
		if l.isUseless(of, page) {
			return nil
		}
		options = metav1.ListOptions{Limit: pageSize, Continue: page.Continue}
	}
}

// page reads one page.
func (l *lister) page(wanted context.Context, of *listing, options metav1.ListOptions) (page *metav1.PartialObjectMetadataList, asked time.Duration, err error) {
	err = l.reader.gate.send(wanted, func(ctx context.Context) (err error) {
		asked = l.now()
		page, err = l.reader.resource(of.kind, of.place).List(ctx, options)
		return err
	})
	return page, asked, err
}

// keep puts a page into the cache. Those who wait for its objects get them from
// the listing, so that the cache need not hold the whole page.
func (l *lister) keep(of *listing, page *metav1.PartialObjectMetadataList, asked time.Duration) {
	objects := make([]*Object, 0, len(page.Items))
	for i := range page.Items {
		objects = append(objects, l.reader.keep(of.kind, of.place, &page.Items[i], asked))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, object := range objects {
		if _, wanted := of.wanted[object.Name]; wanted {
			of.found[object.Name] = object
			delete(of.wanted, object.Name)
		}
	}
}

// isUseless reports whether nothing is to be found after a page: it was the last,
// all is found, or reading what is left one by one takes fewer requests than the
// pages that are left.
func (l *lister) isUseless(of *listing, page *metav1.PartialObjectMetadataList) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.whole = page.Continue == ""
	return of.whole || pagesAfter(page) > len(of.wanted)
}

// lacksMany reports whether so much was not found that reading the list again
// takes fewer requests than reading that one by one.
func (l *lister) lacksMany(of *listing) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, _ := l.demands.Get(of.place)
	return len(of.wanted) >= listFrom*max(1, d.pages)
}

// pagesAfter is how many pages come after one, at least.
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

// noteSize remembers how many pages the list of a place has, and when all of them
// were read.
func (l *lister) noteSize(of *listing, page *metav1.PartialObjectMetadataList, read int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, _ := l.demands.Get(of.place)
	d.pages = read + pagesAfter(page)
	if page.Continue == "" {
		d.whole = l.now()
		l.follower.listed(of.kind, page.ResourceVersion)
	}
	l.demands.Add(of.place, d)
}

// end ends the listing with what conclude notes about it.
func (l *lister) end(of *listing, conclude func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conclude()
	l.endLocked(of)
}

// endLocked lets those go who wait.
func (l *lister) endLocked(of *listing) {
	delete(l.under, of.place)
	of.cancel()
	close(of.done)
}

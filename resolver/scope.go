// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// worthUnlimited is how many objects may be read for each one that callers need.
	worthUnlimited = 5
	// worthLimited is the same if the user limits the rate of requests. Then requests are what the
	// callers wait for.
	worthLimited = 50
	// inAdvance is how many times larger a list may be, as long as all that was read keeps to these
	// limits. Who needs many objects of a collection at a time usually needs others soon.
	inAdvance = 5

	// leastInNamespace and leastInCluster are how many objects of a collection of unknown size must
	// be unknown before its list is tried.
	leastInNamespace = 2
	leastInCluster   = 20
	// pageSize is how many objects a page of a list has at most, and firstPageSize the same for the
	// first page of a list of unknown size.
	pageSize      = 500
	firstPageSize = 100
	// pageBytes is how large a page should be at most, if it is like the one before it. While it is
	// read, it takes several times as much memory.
	pageBytes = 8 << 20
	// maxScopes is the number of collections whose size and demand are remembered.
	maxScopes = 8192
	// refusalsInARow is how many consecutive single reads must be refused before the whole
	// collection counts as refused. Permissions usually cover a collection, but may cover single
	// names only.
	refusalsInARow = 3
)

// planner decides what is requested next: which lists are worth being read, and what is read object
// by object. It knows what earlier requests have shown. It sends nothing, has no clock, and does
// not lock: flights does.
type planner struct {
	namespaces []string // of the objects that callers resolve; empty: all
	slotsOfOne int      // requests of one kind at a time; with a rate limit, as many as it permits while a page is read
	// worth is how many objects may be read to save one request.
	worth int
	ttl   time.Duration // the cache's

	scopes *simplelru.LRU[collection, *scope]
	read   int // objects that requests have brought
}

// pagesASecond is how many pages of a list an API server sends one after the other, about.
const pagesASecond = 10

// newPlanner takes the requests a second that are permitted; 0: any number is.
func newPlanner(cfg Config, permitted float32) *planner {
	p := &planner{
		namespaces: cfg.Namespaces, slotsOfOne: slotsOfKind(cfg.Concurrency), worth: worthUnlimited, ttl: cfg.CacheTTL,
		scopes: newLRU[collection, *scope](maxScopes),
	}
	if permitted > 0 {
		p.worth, p.slotsOfOne = worthLimited, max(1, min(p.slotsOfOne, int(permitted/pagesASecond)))
	}
	return p
}

// scope is what is known of a collection: how large it is, and how many of its objects were needed.
type scope struct {
	// readSingly is how many objects were read one by one since then, for at most the cache's TTL.
	// A list would have brought them.
	readSingly int
	since      time.Duration

	size  int           // objects
	sized time.Duration // when size was learned; 0: never
	limit int           // objects of the next page; 0: not known
	// listed is when a list was read to its end; 0: never. Until the cache's TTL has passed,
	// unknown objects are new ones, which another list would have to be read for.
	listed time.Duration

	listRefused time.Duration // until then, lists are refused or fail
	refusals    int           // consecutive single reads that were refused
	readRefused time.Duration // until then, they count as refused
}

// listing is one list: what it is read for, and how far it was read.
type listing struct {
	in     collection // with an empty namespace, of the whole cluster if the kind is namespaced
	needed int        // objects for which it is read
	limit  int        // objects of the next page

	pages   int // that were read
	objects int // that were read
	left    int // objects that are left to be read, as far as known
}

// moment is the input of a decision that changes all the time.
type moment struct {
	now time.Duration
	// needed is how many of the objects that requests have brought were needed.
	needed int
	// isListed reports whether a list of a collection is in flight.
	isListed func(collection) bool
}

func (p *planner) scope(in collection, now time.Duration) *scope {
	s, known := p.scopes.Get(in)
	if !known {
		s = &scope{since: now}
		p.scopes.Add(in, s)
	}
	return s
}

// plan returns the lists to read for unknown objects of a kind. The largest list that is worth its
// objects is read: of the cluster, or of single namespaces. Everything else is read object by
// object.
func (p *planner) plan(k *kinds.Kind, unknown []objectKey, at moment) (lists []listing) {
	if ofCluster := collectionOf(k, ""); k.Namespaced && len(p.namespaces) == 0 {
		if list, isWorth := p.list(k, ofCluster, len(unknown), at); isWorth {
			return []listing{list}
		}
	}
	unknownIn := make(map[collection]int)
	for _, key := range unknown {
		unknownIn[key.collection]++
	}
	for in, n := range unknownIn {
		if list, isWorth := p.list(k, in, n, at); isWorth {
			lists = append(lists, list)
		}
	}
	return lists
}

// list returns a list of a collection, and whether unknown objects of it are worth the list.
func (p *planner) list(k *kinds.Kind, in collection, unknown int, at moment) (list listing, isWorth bool) {
	s := p.scope(in, at.now)
	needed := p.needed(s, unknown, at.now)
	if !k.Listable || !p.mayList(k) || needed < leastInNamespace || at.now < s.listRefused || at.isListed(in) {
		return listing{}, false
	}
	limit := pageSize
	switch {
	case s.sized != 0 && at.now-s.sized < p.ttl:
		if !p.isWorth(needed, s.size, s.size, at) {
			return listing{}, false
		}
	case in == collectionOf(k, "") && k.Namespaced && needed < leastInCluster:
		return listing{}, false
	default:
		// A short first page shows how large the collection is.
		limit = min(firstPageSize, p.worth*needed)
	}
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	return listing{in: in, needed: needed, limit: limit, left: s.size}, true
}

// mayList reports whether the kind may be listed at all. With some namespaces only, the permissions
// are usually those of Roles, and a Role can permit to read its own Namespace, but not to list all.
func (p *planner) mayList(k *kinds.Kind) bool {
	return len(p.namespaces) == 0 || k.Name != coreNamespace
}

// needed returns for how many objects a list of the collection would be read: unknown ones, and
// those that were read one by one. After it was listed, the latter are new ones, which the list
// would not have saved.
func (p *planner) needed(s *scope, unknown int, now time.Duration) int {
	if s.listed != 0 && now-s.listed < p.ttl || now-s.since >= p.ttl {
		return unknown
	}
	return unknown + s.readSingly
}

// isWorth reports whether needed objects are worth a list of this size, of which some objects are
// left to be read.
func (p *planner) isWorth(needed, size, left int, at moment) bool {
	if size <= p.worth*needed {
		return true
	}
	return size <= inAdvance*p.worth*needed && p.read+left <= p.worth*(at.needed+needed)
}

// isQuickerSingly reports whether it takes less time to read the objects that callers still want
// one by one than to read the list to its end. A long list is for those that will be needed later.
func (p *planner) isQuickerSingly(list listing, wanted int) bool {
	pages := (list.left + pageSize - 1) / pageSize
	turns := (wanted + p.slotsOfOne - 1) / p.slotsOfOne
	return turns < pages
}

// refusesReads reports whether single reads of the collection are refused.
func (p *planner) refusesReads(in collection, now time.Duration) bool {
	s, known := p.scopes.Get(in)
	return known && s.refusals >= refusalsInARow && now < s.readRefused
}

// noteRead notes the result of a single read.
func (p *planner) noteRead(t target, failure Resolution, now time.Duration) {
	own := p.scope(t.key.collection, now)
	if failure != Forbidden || now >= own.readRefused {
		own.refusals = 0
	}
	switch failure {
	case Forbidden:
		own.refusals++
		own.readRefused = now + stableFailureTTL
	case "":
		p.read++
		p.noteFound(own, now)
		if t.kind.Namespaced {
			p.noteFound(p.scope(collectionOf(t.kind, ""), now), now)
		}
	}
}

// noteFound counts an object that was read by itself.
func (p *planner) noteFound(s *scope, now time.Duration) {
	if now-s.since >= p.ttl {
		s.readSingly, s.since = 0, now
	}
	s.readSingly++
}

// notePage notes a page. It returns how far the list was read, and whether the next page is to be
// read.
func (p *planner) notePage(list listing, page *metav1.PartialObjectMetadataList, at moment) (read listing, goesOn bool) {
	isFirst := list.limit < pageSize && list.pages == 0
	list.pages++
	list.objects += len(page.Items)
	list.left = remaining(page)
	list.limit = limitAfter(page)
	s := p.scope(list.in, at.now)
	s.size, s.sized, s.limit = list.objects+list.left, max(at.now, 1), list.limit
	p.read += len(page.Items)
	isDecided := !isFirst && page.RemainingItemCount != nil
	return list, page.Continue != "" && (isDecided || p.isWorth(list.needed, s.size, list.left, at))
}

// limitAfter returns how many objects the page after this one should have.
func limitAfter(page *metav1.PartialObjectMetadataList) int {
	size := 0
	for i := range page.Items {
		size += page.Items[i].Size()
	}
	if size == 0 {
		return pageSize
	}
	return max(1, min(pageSize, pageBytes*len(page.Items)/size))
}

// remaining returns the minimum number of objects after the page.
func remaining(page *metav1.PartialObjectMetadataList) int {
	switch {
	case page.Continue == "":
		return 0
	case page.RemainingItemCount == nil:
		return 1
	default:
		return int(*page.RemainingItemCount)
	}
}

// noteList notes how a list has ended. isWhole is set if it was read to its end.
func (p *planner) noteList(in collection, isWhole bool, failure Resolution, now time.Duration) {
	s := p.scope(in, now)
	switch {
	case isWhole:
		s.listed = max(now, 1)
	case failure == Forbidden:
		s.listRefused = now + stableFailureTTL
	case failure != "":
		s.listRefused = now + transientFailureTTL
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// minOfNamespace and minOfCluster are how many objects of a collection must be needed before its
	// list is tried.
	minOfNamespace = 2
	minOfCluster   = 20
	// objectsPerRead is the maximum number of objects that a list may have for each one that is
	// needed. For an API server, a request costs as much as about ten objects of a list. Callers
	// that need many objects of a collection at a time usually need others soon.
	objectsPerRead = 20

	// pageSize is the maximum number of objects in a page of a list, and firstPageSize that in the
	// first page of a list of unknown size.
	pageSize      = 500
	firstPageSize = 100
	// pageBytes is the maximum size of a page, if it is like the one before it. While a page is
	// read, it takes several times as much memory.
	pageBytes = 8 << 20
	// maxScopes is the number of collections of which the planner remembers something.
	maxScopes = 8192
	// refusalsInARow is the number of consecutive single reads that must be refused before the
	// whole collection counts as refused. Permissions usually cover a collection, but may cover
	// single names only.
	refusalsInARow = 3
)

// planner decides which lists are worth being read. Everything else is read object by object. It
// sends nothing, has no clock, and does not lock: loader does.
type planner struct {
	ofNamespaces bool // no list is of the whole cluster
	ttl          time.Duration
	scopes       *simplelru.LRU[collection, *scope]
}

func newPlanner(settings Settings) *planner {
	return &planner{ofNamespaces: settings.ListNamespacesOnly, ttl: settings.CacheTTL, scopes: newLRU[collection, *scope](maxScopes, nil)}
}

// scope has what is known of a collection. Knowledge that is older than the cache's TTL no longer
// counts.
type scope struct {
	size     int           // objects
	sizedAt  time.Duration // when size was learned; 0: never
	pageSize int           // of the next page, so that it is not too large; 0: not known
	// readAlone counts the objects that were read one by one since then. A list would have brought
	// them.
	readAlone int
	since     time.Duration
	// listedAt is the time at which a list was read to its end; 0: never. Unknown objects are
	// newer, and another list would have to be read for them.
	listedAt time.Duration

	notListedUntil time.Duration // lists are refused, or fail
	refusals       int           // consecutive single reads that were refused
	refusedUntil   time.Duration // then the collection may count as refused
}

// listing is one list that is worth being read.
type listing struct {
	in     collection // with an empty namespace, of the whole cluster if the kind is namespaced
	needed int        // objects for which it is read
	limit  int        // objects of the next page
	read   int        // objects that were read
}

func (p *planner) scope(in collection, now time.Duration) *scope {
	s, known := p.scopes.Get(in)
	if !known {
		s = &scope{since: now}
		p.scopes.Add(in, s)
	}
	return s
}

// plan returns the lists to read for unknown objects of a kind: one of the cluster, or those of
// single namespaces.
func (p *planner) plan(k *kinds.Kind, unknown []objectKey, now time.Duration) (lists []listing) {
	if !k.Listable || p.ofNamespaces && k.Name == coreNamespace { // A Role permits no list of Namespaces.
		return nil
	}
	if k.Namespaced && !p.ofNamespaces {
		if list, isWorth := p.list(collectionOf(k, ""), len(unknown), minOfCluster, now); isWorth {
			return []listing{list}
		}
	}
	unknownIn := make(map[collection]int)
	for _, key := range unknown {
		unknownIn[key.collection]++
	}
	for in, n := range unknownIn {
		if list, isWorth := p.list(in, n, minOfNamespace, now); isWorth {
			lists = append(lists, list)
		}
	}
	return lists
}

// list returns the list of a collection, and whether it is worth being read for unknown objects. A
// short first page shows how large the collection is.
func (p *planner) list(in collection, unknown, least int, now time.Duration) (list listing, isWorth bool) {
	s := p.scope(in, now)
	needed := unknown
	if now-s.since < p.ttl && !p.isRecent(s.listedAt, now) {
		needed += s.readAlone
	}
	isSized := p.isRecent(s.sizedAt, now)
	if needed < least || now < s.notListedUntil || isSized && s.size > objectsPerRead*needed {
		return listing{}, false
	}
	limit := pageSize
	if !isSized {
		limit = min(firstPageSize, objectsPerRead*needed)
	}
	if s.pageSize > 0 {
		limit = min(limit, s.pageSize)
	}
	return listing{in: in, needed: needed, limit: limit}, true
}

// isRecent reports whether something was at most the cache's TTL ago; 0 means that it never was.
func (p *planner) isRecent(at, now time.Duration) bool { return at != 0 && now-at < p.ttl }

// notePage notes a page, after which the next one should have so many objects. It returns how far the
// list was read, and whether the next page is to be read.
func (p *planner) notePage(list listing, page *metav1.PartialObjectMetadataList, next int, now time.Duration) (read listing, goesOn bool) {
	list.read += len(page.Items)
	list.limit = next
	s := p.scope(list.in, now)
	s.size, s.sizedAt, s.pageSize = list.read+remaining(page), max(now, 1), list.limit
	if page.Continue != "" && len(page.Items) == 0 { // A broken server may go on for ever.
		s.notListedUntil = now + stableFailureTTL
		return list, false
	}
	return list, page.Continue != "" && s.size <= objectsPerRead*list.needed
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
		s.listedAt = max(now, 1)
	case failure != "":
		s.notListedUntil = now + stableFailureTTL
	}
}

// noteRead notes the result of a single read.
func (p *planner) noteRead(t target, failure Resolution, now time.Duration) {
	s := p.scope(t.key.collection, now)
	if failure != ResolutionForbidden || now >= s.refusedUntil {
		s.refusals = 0
	}
	switch failure {
	case ResolutionForbidden:
		s.refusals++
		s.refusedUntil = now + stableFailureTTL
	case "":
		p.noteFound(s, now)
		if t.kind.Namespaced {
			p.noteFound(p.scope(collectionOf(t.kind, ""), now), now)
		}
	}
}

// noteFound counts an object that was read by itself.
func (p *planner) noteFound(s *scope, now time.Duration) {
	if now-s.since >= p.ttl {
		s.readAlone, s.since = 0, now
	}
	s.readAlone++
}

// refusesReads reports whether single reads of the collection are refused.
func (p *planner) refusesReads(in collection, now time.Duration) bool {
	s, known := p.scopes.Get(in)
	return known && s.refusals >= refusalsInARow && now < s.refusedUntil
}

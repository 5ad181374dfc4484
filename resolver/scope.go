// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"time"

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

// scope is what is known of a collection: how large it is, and how many of its objects were needed.
// lookup.mu guards it.
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

func (l *lookup) scopeLocked(in collection) *scope {
	s, known := l.scopes.Get(in)
	if !known {
		s = &scope{since: l.now()}
		l.scopes.Add(in, s)
	}
	return s
}

func (s *scope) refusesReads(now time.Duration) bool {
	return s.refusals >= refusalsInARow && now < s.readRefused
}

// noteFound counts an object that was read by itself.
func (s *scope) noteFound(now, ttl time.Duration) {
	if now-s.since >= ttl {
		s.readSingly, s.since = 0, now
	}
	s.readSingly++
}

// noteRead notes the result of a single read.
func (s *scope) noteRead(failure Resolution, now time.Duration) {
	if failure != Forbidden || now >= s.readRefused {
		s.refusals = 0
	}
	if failure == Forbidden {
		s.refusals++
		s.readRefused = now + stableFailureTTL
	}
}

// requestLocked requests objects of a kind. The largest list that is worth its objects is read: of
// the cluster, or of single namespaces. Everything else is read object by object.
func (l *lookup) requestLocked(k *kinds.Kind, wants []*want) {
	if k.Namespaced && len(l.namespaces) == 0 && l.listLocked(k, collectionOf(k, ""), wants) {
		return
	}
	for in, wants := range byCollection(wants) {
		if !l.listLocked(k, in, wants) {
			for _, w := range wants {
				l.readLocked(w)
			}
		}
	}
}

func byCollection(wants []*want) map[collection][]*want {
	by := make(map[collection][]*want)
	for _, w := range wants {
		by[w.key.collection] = append(by[w.key.collection], w)
	}
	return by
}

// listLocked begins a list of the collection if this is worth it.
func (l *lookup) listLocked(k *kinds.Kind, in collection, wants []*want) bool {
	needed, now := l.neededLocked(in, wants), l.now()
	s := l.scopeLocked(in)
	if !k.Listable || !l.mayList(k) || needed < leastInNamespace || now < s.listRefused || l.lists[in] != nil {
		return false
	}
	limit := pageSize
	switch {
	case s.isSized(now, l.cache.ttl):
		if !l.isWorth(needed, s.size, s.size) {
			return false
		}
	case in == collectionOf(k, "") && k.Namespaced && needed < leastInCluster:
		return false
	default:
		// A short first page shows how large the collection is.
		limit = min(firstPageSize, l.worth*needed)
	}
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	l.beginListLocked(k, in, wants, limit, needed)
	return true
}

// mayList reports whether the kind may be listed at all. With some namespaces only, the permissions
// are usually those of Roles, and a Role can permit to read its own Namespace, but not to list all.
func (l *lookup) mayList(k *kinds.Kind) bool {
	return len(l.namespaces) == 0 || k.Name != coreNamespace
}

// neededLocked returns for how many objects a list of the collection would be read: those of the
// wants, and those that were read one by one. After it was listed, the latter are new ones, which
// the list would not have saved.
func (l *lookup) neededLocked(in collection, wants []*want) int {
	names := make(map[objectKey]bool, len(wants))
	for _, w := range wants {
		names[w.key] = true
	}
	s, now, ttl := l.scopeLocked(in), l.now(), l.cache.ttl
	if s.listed != 0 && now-s.listed < ttl || now-s.since >= ttl {
		return len(names)
	}
	return len(names) + s.readSingly
}

func (s *scope) isSized(now, ttl time.Duration) bool { return s.sized != 0 && now-s.sized < ttl }

// isWorth reports whether needed objects are worth a list of this size, of which some objects are
// left to be read.
func (l *lookup) isWorth(needed, size, left int) bool {
	if size <= l.worth*needed {
		return true
	}
	all := int(l.objectsRead.Load()) + left
	return size <= inAdvance*l.worth*needed && all <= l.worth*(l.cache.neededObjects()+needed)
}

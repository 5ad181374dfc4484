// SPDX-License-Identifier: Apache-2.0

package resolver

import "cmp"

// lookup is what searches use: the cache and the ways to fetch.
type lookup struct {
	kinds  *kinds
	cache  *cache
	reader *reader
	lister *lister
	onHit  func() // called for each object that needed no request
}

// fromCache takes the search as far as it goes without a request. It reports whether the search is
// done. A search with a pending request stays where it is. The answer may be in the cache by now,
// but the search would then take the pending reply for the reply to its next question.
func (l *lookup) fromCache(s *search) bool {
	if s.pending != nil {
		return false
	}
	if !s.ref.nameable() {
		s.failure = NotFound
		return true
	}
	for s.object == nil {
		switch {
		case !s.kindsKnown:
			if !l.identify(s) {
				return false
			}
		case s.current < len(s.kinds):
			if !l.tryCandidate(s) {
				return false
			}
		case !s.widen():
			if s.failure == "" {
				s.failure = NotFound
			}
			return true
		}
	}
	return true
}

// identify finds the kinds that the reference may mean. It returns false if this needs a request.
func (l *lookup) identify(s *search) bool {
	answer, known := l.kinds.find(s.kindQuery())
	if s.kindReply != nil {
		answer, known = *s.kindReply, true
	}
	if !known {
		return false
	}
	s.kindReply, s.requested = nil, false
	s.kindsKnown = true
	s.kinds, s.kindFailure, s.current = answer.kinds, answer.failure, 0
	switch len(s.kinds) {
	case 0:
		// If other groups do not have the kind, this says nothing about the object that could not
		// be read.
		if s.failure == "" || s.failure == NotFound {
			s.failure = answer.failure
		}
	case 1:
		s.guess = cmp.Or(s.guess, s.kinds[0])
	}
	if len(s.kinds) > 1 && s.ref.UID != "" {
		l.startAtKnown(s)
	}
	return true
}

// startAtKnown starts with the candidate that is in the cache. Otherwise the search would request
// the other candidates again whenever their cached failures expire.
func (l *lookup) startAtKnown(s *search) {
	for i, k := range s.kinds {
		if key, possible := s.key(k); possible && l.cache.has(key, s.uid(k)) {
			s.current = i
			return
		}
	}
}

// tryCandidate accepts or rejects the candidate. It returns false if this needs a request.
func (l *lookup) tryCandidate(s *search) bool {
	if s.blocked() {
		s.current = len(s.kinds)
		return true
	}
	k := s.candidate()
	key, possible := s.key(k)
	if !possible {
		s.reject(NotFound)
		return true
	}
	found, known := l.cached(s, k, key)
	switch {
	case !known:
		return false
	case found.unserved:
		// Discover again how the kind is served.
		s.kindsKnown, s.unserved = false, k
	case found.object != nil:
		s.object = found.object.servedAs(k.apiVersion)
	default:
		s.reject(found.failure)
	}
	return true
}

// cached returns what is known of the candidate: the reply to a request, or what is in the cache.
func (l *lookup) cached(s *search, k *kind, key objectKey) (answer, bool) {
	uid := s.uid(k)
	switch {
	case s.kindFailure != "":
		// The kind is only known from before, so a request for the object is not possible.
		return l.cache.fail(key, uid, s.kindFailure, false), true
	case s.unserved != nil && s.unserved.hasSamePath(k):
		return l.cache.fail(key, uid, NotFound, true), true
	case s.reply != nil:
		return l.conclude(s, k, key), true
	}
	found, known := l.cache.find(key, uid)
	switch {
	case known:
		// What a slow request has found in the meantime is no hit.
		if !s.requested {
			l.onHit()
		}
		return found, true
	case l.reader.refusals.has(key.collection):
		return l.cache.fail(key, uid, Forbidden, false), true
	default:
		return answer{}, false
	}
}

// conclude returns what the reply means for the object of the search.
func (l *lookup) conclude(s *search, k *kind, key objectKey) answer {
	reply, requested := *s.reply, s.requested
	s.reply, s.requested, s.listed, s.retried = nil, false, false, false
	uid := s.uid(k)
	switch {
	case reply.unserved && s.unserved == nil:
		l.kinds.invalidate(k)
		return reply
	case reply.object != nil && (uid == "" || reply.object.UID == uid):
		return reply
	case reply.object != nil:
		// Another object has the name.
		return l.cache.fail(key, uid, NotFound, requested)
	default:
		return l.cache.fail(key, uid, reply.failure, requested)
	}
}

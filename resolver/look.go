// SPDX-License-Identifier: Apache-2.0

package resolver

import "cmp"

// lookup is what searches consult: what is remembered, and who can be asked.
type lookup struct {
	kinds  *kinds
	cache  *cache
	reader *reader
	lister *lister
	hits   func() // called for each object that no request was needed for
}

// look takes the search as far as it goes without a request, and reports whether
// it has come to its end. One that waits for a reply stays where it is: what it
// asked may be known by now, but going on would take that reply for one to the
// next question.
func (l *lookup) look(s *search) bool {
	if s.ticket != nil {
		return false
	}
	if !s.want.nameable() {
		s.failure = NotFound
		return true
	}
	for s.object == nil {
		switch {
		case !s.identified:
			if !l.identify(s) {
				return false
			}
		case s.try < len(s.kinds):
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

// identify finds out which kinds the reference may mean, or returns false when
// that must be asked.
func (l *lookup) identify(s *search) bool {
	answer, known := l.kinds.find(s.question())
	if s.kindReply != nil {
		answer, known = *s.kindReply, true
	}
	if !known {
		return false
	}
	s.kindReply, s.asked = nil, false
	s.identified = true
	s.kinds, s.kindFailure, s.try = answer.kinds, answer.failure, 0
	switch len(s.kinds) {
	case 0:
		// That other groups do not have the kind says nothing about the object that could not be read.
		if s.failure == "" || s.failure == NotFound {
			s.failure = answer.failure
		}
	case 1:
		s.guess = cmp.Or(s.guess, s.kinds[0])
	}
	if len(s.kinds) > 1 && s.want.UID != "" {
		l.startAtKnown(s)
	}
	return true
}

// startAtKnown begins with the candidate that is known to be the one, which
// spares asking for the others again each time that their failure is forgotten.
func (l *lookup) startAtKnown(s *search) {
	for i, k := range s.kinds {
		if at, possible := s.address(k); possible && l.cache.knows(at, s.uid(k)) {
			s.try = i
			return
		}
	}
}

// tryCandidate takes, passes over or gives up the candidate, or returns false
// when it must be asked for.
func (l *lookup) tryCandidate(s *search) bool {
	if s.blocked() {
		s.try = len(s.kinds)
		return true
	}
	k := s.candidate()
	at, possible := s.address(k)
	if !possible {
		s.reject(NotFound)
		return true
	}
	found, known := l.recall(s, k, at)
	switch {
	case !known:
		return false
	case found.unserved:
		// How the kind is served has to be asked again.
		s.identified, s.unserved = false, k
	case found.object != nil:
		s.object = found.object.servedAs(k.apiVersion)
	default:
		s.reject(found.failure)
	}
	return true
}

// recall returns what is known of the candidate, by what was asked or else by
// what is remembered.
func (l *lookup) recall(s *search, k *kind, at address) (answer, bool) {
	uid := s.uid(k)
	switch {
	case s.kindFailure != "":
		// The kind is known from before alone. It can't be asked for.
		return l.cache.fail(at, uid, s.kindFailure, false), true
	case s.unserved != nil && s.unserved.readsLike(k):
		return l.cache.fail(at, uid, NotFound, true), true
	case s.reply != nil:
		return l.settle(s, k, at), true
	}
	found, known := l.cache.find(at, uid)
	switch {
	case known:
		// What a slow request has brought meanwhile is no hit.
		if !s.asked {
			l.hits()
		}
		return found, true
	case l.reader.refused.has(at.place):
		return l.cache.fail(at, uid, Forbidden, false), true
	default:
		return answer{}, false
	}
}

// settle makes of the reply what it means for the object that is looked for.
func (l *lookup) settle(s *search, k *kind, at address) answer {
	reply, asked := *s.reply, s.asked
	s.reply, s.asked, s.listed, s.repeated = nil, false, false, false
	uid := s.uid(k)
	switch {
	case reply.unserved && s.unserved == nil:
		l.kinds.invalidate(k)
		return reply
	case reply.object != nil && (uid == "" || reply.object.UID == uid):
		return reply
	case reply.object != nil:
		// Another object bears the name.
		return l.cache.fail(at, uid, NotFound, asked)
	default:
		return l.cache.fail(at, uid, reply.failure, asked)
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"time"
)

// roundTimeout is how long finished searches wait for the others, so that one list can fetch many
// owners. A healthy API server answers much faster. The timeout keeps requests that hang from using
// up the time of all searches.
const roundTimeout = 100 * time.Millisecond

// manyCollections is the number of collections with unknown objects from which all of them are
// listed. This happens at a start and in an event storm.
const manyCollections = 4

// fetch requests what the searches lack. It waits until all searches have their replies, or until a
// timeout. Searches without a reply keep their pending request.
func (l *lookup) fetch(ctx context.Context, searches []*search) {
	l.request(searches)
	timeout := time.NewTimer(roundTimeout)
	defer timeout.Stop()
	for _, s := range searches {
		select {
		case <-s.pending.done:
			s.collect()
		case <-ctx.Done():
			collectDone(searches)
			return
		case <-timeout.C:
			collectDone(searches)
			return
		}
	}
}

// request starts a request for each search that has none pending.
func (l *lookup) request(searches []*search) {
	unknown := make(map[collection][]*search)
	for _, s := range searches {
		switch {
		case s.pending != nil:
		case !s.kindsKnown:
			l.requestKind(s)
		default:
			k := s.candidate()
			key, _ := s.key(k)
			if s.listed || l.reader.gets.isInFlight(key) {
				l.requestOne(s, k, key)
				continue
			}
			unknown[key.collection] = append(unknown[key.collection], s)
		}
	}
	for in, searches := range unknown {
		l.requestCollection(in, searches, len(unknown) >= manyCollections)
	}
}

func (l *lookup) requestKind(s *search) {
	call := l.kinds.fetch(s.kindQuery())
	s.requested = true
	s.pending = &pending{
		done: call.done,
		take: func() {
			if call.ok {
				s.kindReply = &call.value
			}
		},
		leave: func() { l.kinds.flight.leave(call) },
	}
}

func (l *lookup) requestOne(s *search, k *kind, key objectKey) {
	uid := s.uid(k)
	call := l.reader.get(k, key, uid, s.dependent != nil)
	s.requested = true
	s.pending = &pending{
		done: call.done,
		take: func() {
			switch {
			case !call.ok:
			case !call.value.proves(uid) && !s.retried:
				// The next request begins after this search did.
				s.retried = true
			default:
				s.reply = &call.value
			}
		},
		leave: func() { l.reader.gets.leave(call) },
	}
}

// requestCollection requests objects of one collection. It uses a list if there are many objects,
// or many collections. Otherwise it reads them one by one.
func (l *lookup) requestCollection(in collection, searches []*search, amongMany bool) {
	k := searches[0].candidate()
	listing := l.lister.join(k, in, namesOf(searches), amongMany)
	for _, s := range searches {
		if listing == nil {
			l.requestOne(s, s.candidate(), objectKey{in, s.ref.Name})
			continue
		}
		s.requested, s.listed = true, true
		s.pending = l.pendingList(s, listing)
	}
}

func (l *lookup) pendingList(s *search, from *listing) *pending {
	return &pending{
		done: from.done,
		take: func() {
			if reply, ok := l.lister.result(from, s.ref.Name, s.uid(s.candidate())); ok {
				s.reply = &reply
			}
		},
		leave: func() { l.lister.leave(from) },
	}
}

// namesOf returns the names of the objects that the searches look for.
func namesOf(searches []*search) []string {
	names := make([]string, len(searches))
	for i, s := range searches {
		names[i] = s.ref.Name
	}
	return names
}

// collect takes the reply of the search's request, which is done.
func (s *search) collect() {
	s.pending.take()
	s.pending = nil
}

func collectDone(searches []*search) {
	for _, s := range searches {
		if s.pending == nil {
			continue
		}
		select {
		case <-s.pending.done:
			s.collect()
		default:
		}
	}
}

// fail gives the search a failure as its reply. With remember, the failure is cached if a request
// was sent.
func (l *lookup) fail(s *search, failure Resolution, remember bool) {
	if s.pending != nil {
		s.pending.leave()
		s.pending = nil
	}
	s.requested = s.requested && remember
	if !s.kindsKnown {
		reply := l.kinds.fail(s.kindQuery(), failure, s.requested)
		s.kindReply = &reply
		return
	}
	s.reply = &answer{failure: failure}
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"time"
)

// roundPatience is how long searches that have their answers wait for others, to
// ask for many owners in one list. A healthy API server answers well within it.
// It keeps one that hangs for some objects from using up the time of all.
const roundPatience = 100 * time.Millisecond

// manyPlaces is from how many places on, in which something is unknown at once, the
// lists of all of them are read: so it is at a start, and in a storm.
const manyPlaces = 4

// ask asks for what the searches lack and waits until all have got it, or for a
// while. Searches whose tickets are still open keep them.
func (l *lookup) ask(ctx context.Context, searches []*search) {
	l.request(searches)
	patience := time.NewTimer(roundPatience)
	defer patience.Stop()
	for _, s := range searches {
		select {
		case <-s.ticket.done:
			s.collect()
		case <-ctx.Done():
			collectDone(searches)
			return
		case <-patience.C:
			collectDone(searches)
			return
		}
	}
}

// request gives a ticket to each search that has none.
func (l *lookup) request(searches []*search) {
	unknown := make(map[place][]*search)
	for _, s := range searches {
		switch {
		case s.ticket != nil:
		case !s.identified:
			l.requestKind(s)
		default:
			k := s.candidate()
			at, _ := s.address(k)
			if s.listed || l.reader.singles.isUnderWay(at) {
				l.requestOne(s, k, at)
				continue
			}
			unknown[at.place] = append(unknown[at.place], s)
		}
	}
	for in, searches := range unknown {
		l.requestPlace(in, searches, len(unknown) >= manyPlaces)
	}
}

func (l *lookup) requestKind(s *search) {
	call := l.kinds.ask(s.question())
	s.asked = true
	s.ticket = &ticket{
		done: call.done,
		take: func() {
			if call.ok {
				s.kindReply = &call.value
			}
		},
		leave: func() { l.kinds.questions.leave(call) },
	}
}

func (l *lookup) requestOne(s *search, k *kind, at address) {
	uid := s.uid(k)
	call := l.reader.get(k, at, uid, s.dependent != nil)
	s.asked = true
	s.ticket = &ticket{
		done: call.done,
		take: func() {
			switch {
			case !call.ok:
			case !call.value.proves(uid) && !s.repeated:
				// The next request begins after this search did.
				s.repeated = true
			default:
				s.reply = &call.value
			}
		},
		leave: func() { l.reader.singles.leave(call) },
	}
}

// requestPlace asks for objects of one place: in a list if there are many, or one
// of many places, else one by one.
func (l *lookup) requestPlace(in place, searches []*search, amongMany bool) {
	k := searches[0].candidate()
	listing := l.lister.join(k, in, namesOf(searches), amongMany)
	for _, s := range searches {
		if listing == nil {
			l.requestOne(s, s.candidate(), address{in, s.want.Name})
			continue
		}
		s.asked, s.listed = true, true
		s.ticket = l.listTicket(s, listing)
	}
}

func (l *lookup) listTicket(s *search, from *listing) *ticket {
	return &ticket{
		done: from.done,
		take: func() {
			if reply, ok := l.lister.outcome(from, s.want.Name, s.uid(s.candidate())); ok {
				s.reply = &reply
			}
		},
		leave: func() { l.lister.leave(from) },
	}
}

// namesOf returns the names that are looked for.
func namesOf(searches []*search) []string {
	names := make([]string, len(searches))
	for i, s := range searches {
		names[i] = s.want.Name
	}
	return names
}

// collect takes the reply of the search's ticket, which is done.
func (s *search) collect() {
	s.ticket.take()
	s.ticket = nil
}

func collectDone(searches []*search) {
	for _, s := range searches {
		if s.ticket == nil {
			continue
		}
		select {
		case <-s.ticket.done:
			s.collect()
		default:
		}
	}
}

// refuse answers the search with a failure in place of what it waits for.
// With remember, the failure is remembered if something was asked for.
func (l *lookup) refuse(s *search, failure Resolution, remember bool) {
	if s.ticket != nil {
		s.ticket.leave()
		s.ticket = nil
	}
	s.asked = s.asked && remember
	if !s.identified {
		reply := l.kinds.fail(s.question(), failure, s.asked)
		s.kindReply = &reply
		return
	}
	s.reply = &answer{failure: failure}
}

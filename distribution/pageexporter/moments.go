// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// maxMoments bounds what the store keeps of the times of an event. The client library of Kubernetes
// lets an object's event occur 25 times, and then once each 5 minutes.
const maxMoments = 40

// moment is a slot of time in which an event occurred.
type moment struct {
	at time.Time // of its last occurrence in the slot
	n  int64
}

// moments are those of one event, by their time.
type moments []moment

// with returns the moments with one more. If there are too many, the oldest counts as a part of the
// next one.
func (all moments) with(m moment) moments {
	i, found := slices.BinarySearchFunc(all, m, func(a, b moment) int {
		return a.at.Truncate(slotLength).Compare(b.at.Truncate(slotLength))
	})
	if found {
		all[i] = moment{later(all[i].at, m.at), all[i].n + m.n}
		return all
	}
	all = slices.Insert(all, i, m)
	if len(all) > maxMoments {
		all[1].n += all[0].n
		all = slices.Delete(all, 0, 1)
	}
	return all
}

// since returns the moments at or after a time.
func (all moments) since(start time.Time) moments {
	return slices.DeleteFunc(all, func(m moment) bool { return m.at.Before(start) })
}

// lastIn returns when the event last occurred in the filter's time, which begins with start, and
// whether it did.
func (e *eventState) lastIn(start time.Time, f filter) (at time.Time, occurred bool) {
	for _, m := range slices.Backward(e.moments) {
		if !f.isOver(m.at) {
			return m.at, !m.at.Before(start)
		}
	}
	return time.Time{}, false
}

// statesOf are the events of one object.
type statesOf []*eventState

// since returns the counts that pass the filter, from start on, one event after the other.
func (events statesOf) since(start time.Time, f filter) iter.Seq2[time.Time, count] {
	return func(yield func(time.Time, count) bool) {
		for _, e := range events {
			if !f.admits(e.of) {
				continue
			}
			for _, m := range e.moments {
				if !m.at.Before(start) && !f.isOver(m.at) && !yield(m.at, count{e.traits, m.n}) {
					return
				}
			}
		}
	}
}

// isSaid reports whether a message has the text that the filter looks for.
func (f filter) isSaid(message string) bool {
	return f.Text == "" || strings.Contains(strings.ToLower(message), f.Text)
}

// membersWhereSaid returns a workload's objects with the occurrences of the events whose message has
// the text. The timelines of the workload do not have messages.
func (f filter) membersWhereSaid(w *workload) (members []*member) {
	byPath := map[string]*member{}
	for _, e := range w.events {
		if !f.isSaid(e.message) || !f.isNamed(e.chain...) {
			continue
		}
		path := pathOf(e.chain)
		m := byPath[path]
		if m == nil {
			m = &member{chain: e.chain, path: path}
			byPath[path], members = m, append(members, m)
		}
		m.last, m.resolution = later(m.last, e.at), e.resolution
		m.said = append(m.said, e)
	}
	return members
}

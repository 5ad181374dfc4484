// SPDX-License-Identifier: Apache-2.0

// Package ledger is what the receiver knows of events: of each one its count, the open windows of
// dedup_interval, and how far each stream has come. It decides which occurrences are new, and is what
// a checkpoint has. It has no clock and does no I/O.
package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// Settings of a ledger.
type Settings struct {
	Coverage      Coverage
	FromBeginning bool          // whether events that exist at the first start are new
	DedupInterval time.Duration // 0: nothing is held back
}

// Ledger knows the counts of events. It is not safe for concurrent use. Its methods are called in
// the order of the loop, with one batch undelivered at a time: Changed and Versions return what was
// delivered because callers call them only when no batch is.
type Ledger struct {
	settings Settings
	*counts
	windows *windows
	from    Versions // where an earlier leader got to, without counts; nil: nothing is known
}

// New makes a ledger that knows nothing.
func New(settings Settings) *Ledger {
	return &Ledger{settings: settings, counts: newCounts(newStreams(settings.Coverage)), windows: newWindows(settings.DedupInterval)}
}

// Versions are the resource versions up to which all is delivered, by stream. A stream is named after
// its namespace; "" is the whole cluster's.
type Versions map[string]uint64

// start returns the version from which a stream may start: the higher of its own version and that of
// the whole cluster's stream; 0: there is neither.
func (v Versions) start(stream string) uint64 { return max(v[stream], v[""]) }

// StartFrom starts at versions up to which another process has delivered everything. The counts as of
// then are not known: streams list exactly at these versions.
func (l *Ledger) StartFrom(versions Versions) { l.from = versions }

// Resume returns where a stream resumes. If exactly is true, it lists at exactly this version, since
// the counts are not known. If the version is empty, it lists now.
func (l *Ledger) Resume(stream string) (version string, exactly bool) {
	if from := l.from.start(stream); from > 0 {
		return strconv.FormatUint(from, 10), true
	}
	return l.resume(stream), false
}

// EndList ends a list of a stream: events of the stream that it did not have are deleted.
func (l *Ledger) EndList(stream string, now time.Time) {
	l.counts.EndList(stream, now)
	listed := l.get(stream)
	if l.isCurrent(listed) {
		return
	}
	listed.Listed, listed.Selector = true, l.settings.Coverage.FieldSelector
	if l.endFormer() {
		l.EndPast(now)
	}
}

// Seen is a state of an event, as a stream passed it on.
type Seen struct {
	Stream   string
	Event    *corev1.Event
	At       time.Time // when the receiver read it
	IsListed bool      // by a list, which may show several changes at once
}

// Observe accounts for a state of an event, and returns how many of its occurrences are new.
func (l *Ledger) Observe(s Seen) int64 { return l.observeSeen(s, l.see(s.Stream, s.Event)) }

func (l *Ledger) observeSeen(s Seen, state seen) int64 {
	if l.brings(s, state) {
		return l.observe(state)
	}
	return l.remember(state)
}

// brings reports whether occurrences of an event may be new. If the coverage before included the event,
// all are new that are not remembered. Any other event of a list existed before the receiver covered
// it.
func (l *Ledger) brings(s Seen, state seen) bool {
	return !s.IsListed || l.covers(s.Event) || l.isNew(s.Event) || l.isAlive(state)
}

// Admit accounts for a state of an event, and returns the observation to record now. ok is false if
// there is none: nothing in it is new, or a window is open. A window keeps the state, without accounting
// for it. Callers must have taken what is Due before.
func (l *Ledger) Admit(s Seen, now time.Time) (o observation.Observation, ok bool) {
	state := l.see(s.Stream, s.Event)
	key, open := l.windows.open(s.Event, now)
	if open != nil && l.brings(s, state) && l.news(state) > 0 {
		first := event.ResourceVersion(s.Event)
		if s.IsListed { // A list may show several changes at once.
			first = l.Reached(s.Stream) + 1
		}
		l.windows.keep(open, s, state, first)
		return o, false
	}
	occurrences := l.observeSeen(s, state)
	if occurrences == 0 {
		return o, false
	}
	l.windows.begin(key, now)
	return observation.Observation{Event: s.Event, Occurrences: occurrences, SeenAt: s.At}, true
}

// Remember notes that an event existed before the receiver covered it.
func (l *Ledger) Remember(stream string, ev *corev1.Event) { l.remember(l.see(stream, ev)) }

// Delete notes that an event is gone. If a window keeps a state of it, it keeps the deletion, too.
func (l *Ledger) Delete(stream string, ev *corev1.Event, now time.Time) {
	last := l.see(stream, ev)
	if l.settings.DedupInterval == 0 || !l.windows.delete(ev, last, now) {
		l.remove(last, now)
	}
}

// isNew reports whether an event that no coverage included counts with all its occurrences.
func (l *Ledger) isNew(ev *corev1.Event) bool {
	if version := l.from.start(ev.Namespace); version > 0 {
		return event.ResourceVersion(ev) > version
	}
	return l.settings.FromBeginning && !l.watched(ev.Namespace)
}

// WentBack notes that the resource versions of a stream have gone back: etcd was restored from a
// backup. It forgets them, and no counts. The stream lists next. WentBack returns what windows kept of
// the stream: without its version, a crash would lose it.
func (l *Ledger) WentBack(stream string) (records []observation.Observation) {
	s := l.get(stream)
	for open := s.oldest(); open != nil; open = s.oldest() {
		records = l.release(records, open)
	}
	l.ForgetVersions(stream)
	s.ResourceVersion = ""
	l.from = nil
	return records
}

// Advance notes how far a stream has come, once what came before it is delivered.
func (l *Ledger) Advance(stream, version string) { l.get(stream).ResourceVersion = version }

// Reached returns how far a stream has come, or the last leader, if the stream was not listed yet; 0: it
// is not known.
func (l *Ledger) Reached(stream string) uint64 {
	return cmp.Or(l.reached(stream), l.from.start(stream))
}

// Due ends windows whose time has come, and returns up to n records of them. Each record opens the
// next window.
func (l *Ledger) Due(now time.Time, n int) (records []observation.Observation) {
	for range mostEnded {
		ended := l.windows.due(now)
		if ended == nil || len(records) == n {
			break
		}
		l.windows.close(ended)
		before := len(records)
		if records = l.release(records, ended); len(records) > before {
			l.windows.begin(ended.key, now)
		}
	}
	return records
}

// Flush ends windows and returns what they kept, up to n records; none is left once it returns fewer.
func (l *Ledger) Flush(n int) (records []observation.Observation) {
	for len(l.windows.order) > 0 && len(records) < n {
		ended := l.windows.order[0]
		l.windows.close(ended)
		records = l.release(records, ended)
	}
	return records
}

// release accounts for what a window kept, and appends its record, if something in it is new.
func (l *Ledger) release(records []observation.Observation, open *window) []observation.Observation {
	kept := l.windows.release(open)
	if kept == nil {
		return records
	}
	record := observation.Observation{Event: kept.newest}
	for _, state := range kept.states {
		if record.Occurrences == 0 {
			record.SeenAt = state.at
		}
		record.Occurrences += l.observe(state.seen)
		if state.deletion != nil {
			l.remove(*state.deletion, state.deletedAt)
		}
	}
	if record.Occurrences == 0 {
		return records
	}
	return append(records, record)
}

// NextEnd returns the end of the next window. ok is false if none is open.
func (l *Ledger) NextEnd() (end time.Time, ok bool) { return l.windows.nextEnd() }

// Versions returns, for each stream that runs, the version up to which its events are delivered. What
// a window keeps, holds it back. A stream that has not been listed is where the last leader got to. Until
// all have been listed, the streams of the last leader stay: one that runs now may take the place of
// several.
func (l *Ledger) Versions() Versions {
	versions, areAllListed := Versions{}, true
	for _, stream := range l.settings.Coverage.Namespaces {
		reached := l.get(stream).toNote().ResourceVersion
		version := cmp.Or(event.Version(reached), l.from.start(stream))
		if version > 0 {
			versions[stream] = version
		}
		areAllListed = areAllListed && l.reached(stream) > 0
	}
	if !areAllListed {
		for stream, from := range l.from {
			versions[stream] = max(versions[stream], from)
		}
	}
	return versions
}

// The first byte of an entry's key is its kind. The rest is the event's identity, or the stream.
const (
	countKind  = 'e'
	streamKind = 'p'
)

// Track notes from now on which entries change, for Changed.
func (l *Ledger) Track() { l.changed = map[identity]*stream{} }

// Changed returns the entries that have changed since it was last called, in the form that Restore
// takes. A nil value means that the entry is gone.
func (l *Ledger) Changed() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, s := range l.byID {
			if next := s.toNote(); next != s.noted {
				s.noted = next
				if !yield(string(streamKind)+s.namespace, next.encode()) {
					return
				}
			}
		}
		for k, s := range l.changed {
			if !yield(string(countKind)+string(k[:]), l.value(k, s)) {
				return
			}
		}
		l.Track()
	}
}

// All returns all entries as they are now, in the form that Restore takes. It copies them: the iteration
// may come later, and in another goroutine.
func (l *Ledger) All() iter.Seq2[string, []byte] {
	type copied struct {
		identity
		value [entrySize]byte
	}
	positions, events := map[string][]byte{}, make([]copied, 0, l.Len())
	for _, s := range l.byID {
		if next := s.toNote(); next.Listed {
			positions[string(streamKind)+s.namespace] = next.encode()
		}
		for k, e := range s.events {
			events = append(events, copied{k, l.encode(k, e, s)})
		}
	}
	return func(yield func(string, []byte) bool) {
		for key, value := range positions {
			if !yield(key, value) {
				return
			}
		}
		for _, e := range events {
			if !yield(string(countKind)+string(e.identity[:]), e.value[:]) {
				return
			}
		}
	}
}

// Restore puts an entry back, or takes it away if the value is nil. Callers call Settle after the last
// one. It returns an error if the entry is none of Changed's.
func (l *Ledger) Restore(key string, value []byte) error {
	switch {
	case key != "" && key[0] == countKind:
		return l.counts.Restore(key[1:], value)
	case key != "" && key[0] == streamKind:
		return l.restore(key[1:], value)
	default:
		return fmt.Errorf("there is no kind of entry %.1q", key)
	}
}

// Settle makes a ledger ready whose entries were restored.
func (l *Ledger) Settle(now time.Time) {
	l.counts.Settle()
	if l.endFormer() {
		l.EndPast(now)
	}
}

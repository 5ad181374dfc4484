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

// Config configures a ledger.
type Config struct {
	Coverage      Coverage
	FromBeginning bool          // whether events that exist at the first start are new
	DedupInterval time.Duration // 0: nothing is held back
}

// Ledger knows the counts of events. It is not safe for concurrent use. Its methods are called in
// the order of the loop, with one batch undelivered at a time: Changed and Versions return what was
// delivered because callers call them only when no batch is.
type Ledger struct {
	config Config
	*counts
	streams *streams
	windows *windows
	from    Versions // where an earlier leader got to, without counts; nil: nothing is known
}

// New makes a ledger that knows nothing.
func New(config Config) *Ledger {
	streams := newStreams(config.Coverage)
	return &Ledger{config: config, counts: newCounts(streams), streams: streams, windows: newWindows(config.DedupInterval)}
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
	return l.streams.resume(stream), false
}

// EndList ends a list of a stream: events of the stream that it did not have are deleted.
func (l *Ledger) EndList(stream string, now time.Time) {
	l.counts.EndList(stream, now)
	if l.streams.endList(stream) {
		l.EndPast(now)
	}
}

// Listed returns how many of the streams that run have been listed, by this process or an earlier one.
func (l *Ledger) Listed() (n int) {
	for _, namespace := range l.config.Coverage.Namespaces {
		if s := l.streams.byNamespace[namespace]; s != nil && s.Listed && s.Covers {
			n++
		}
	}
	return n
}

// List accounts for an event of a list and returns how many of its occurrences are new. If the
// coverage before included the event, all are new that are not remembered. Any other event existed
// before the receiver covered it.
func (l *Ledger) List(stream string, ev *corev1.Event) int64 {
	if l.streams.covers(ev) || l.isNew(ev) {
		return l.Observe(stream, ev)
	}
	return l.Remember(stream, ev)
}

// isNew reports whether an event that no coverage included counts with all its occurrences.
func (l *Ledger) isNew(ev *corev1.Event) bool {
	if version := l.from.start(ev.Namespace); version > 0 {
		return event.ResourceVersion(ev) > version
	}
	return l.config.FromBeginning && !l.streams.watched(ev.Namespace)
}

// WentBack notes that the resource versions of a stream have gone back: etcd was restored from a
// backup. It forgets them, and no counts. The stream lists next. WentBack returns what windows held of
// the stream: without its version, a crash would lose it.
func (l *Ledger) WentBack(stream string) (records []observation.Observation) {
	l.windows.releaseEarly(stream, func(open *window) { records = append(records, l.release(open)) })
	l.ForgetVersions(stream)
	l.streams.get(stream).ResourceVersion = ""
	l.from = nil
	return records
}

// Advance notes how far a stream has come, once what came before it is delivered.
func (l *Ledger) Advance(stream, version string) { l.streams.get(stream).ResourceVersion = version }

// Reached returns how far a stream has come, or the last leader, if the stream was not listed yet; 0: it
// is not known.
func (l *Ledger) Reached(stream string) uint64 {
	return cmp.Or(l.streams.reached(stream), l.from.start(stream))
}

// Admit reports whether an observation is to be recorded now. Otherwise, its window holds it. Callers
// must have taken what is Due before, and must call it directly after the method that returned the
// observation's occurrences.
func (l *Ledger) Admit(stream string, o observation.Observation, now time.Time) bool {
	k, open := l.windows.open(o.Event, now)
	if open == nil {
		l.windows.begin(k, now)
		return true
	}
	l.windows.hold(open, stream, o)
	if held, isNew := l.holdBack(o.Event, k); isNew {
		open.events = append(open.events, held)
	}
	return false
}

// Due returns up to n records of windows whose time has come.
func (l *Ledger) Due(now time.Time, n int) (records []observation.Observation) {
	l.windows.due(now, n, func(open *window) { records = append(records, l.release(open)) })
	return records
}

// Flush ends windows and returns what they held, up to n records; none is left once it returns fewer.
func (l *Ledger) Flush(n int) (records []observation.Observation) {
	l.windows.flush(n, func(open *window) { records = append(records, l.release(open)) })
	return records
}

func (l *Ledger) release(open *window) observation.Observation {
	record, events := l.windows.release(open)
	for _, k := range events {
		l.counts.release(k, open.key)
	}
	return record
}

// NextEnd returns the end of the next window. ok is false if none is open.
func (l *Ledger) NextEnd() (end time.Time, ok bool) { return l.windows.nextEnd() }

// Versions returns, for each stream that runs, the version up to which its events are delivered. What
// a window holds, holds it back. A stream that has not been listed is where the last leader got to. Until
// all have been listed, the streams of the last leader stay: one that runs now may take the place of
// several.
func (l *Ledger) Versions() Versions {
	versions, oldest, areAllListed := Versions{}, l.windows.oldest(), true
	for _, stream := range l.config.Coverage.Namespaces {
		isListed := l.streams.reached(stream) > 0
		areAllListed = areAllListed && isListed
		version := l.Reached(stream)
		if first := oldest[stream]; first > 0 && isListed {
			version = min(version, first-1)
		}
		if version > 0 {
			versions[stream] = version
		}
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
func (l *Ledger) Track() { l.changed = map[identity]bool{} }

// Changed returns the entries that have changed since it was last called, in the form that Restore
// takes. A nil value means that the entry is gone.
func (l *Ledger) Changed() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		oldest := l.windows.oldest()
		for namespace, s := range l.streams.byNamespace {
			if next := s.heldTo(oldest[namespace]); next != s.noted {
				s.noted = next
				if !yield(string(streamKind)+namespace, next.encode()) {
					return
				}
			}
		}
		for k := range l.changed {
			if !yield(string(countKind)+string(k[:]), l.value(k)) {
				return
			}
		}
		l.changed = map[identity]bool{}
	}
}

// All returns all entries as they are now, in the form that Restore takes. It copies them: the iteration
// may come later, and in another goroutine. Later values of a key take precedence.
func (l *Ledger) All() iter.Seq2[string, []byte] {
	oldest := l.windows.oldest()
	streams := make([]streamEntry, 0, len(l.streams.byNamespace))
	for namespace, s := range l.streams.byNamespace {
		streams = append(streams, s.heldTo(oldest[namespace]))
	}
	counts, held := l.copied()
	return func(yield func(string, []byte) bool) {
		for _, s := range streams {
			if !yield(string(streamKind)+s.Namespace, s.encode()) {
				return
			}
		}
		for _, c := range counts {
			if !yield(string(countKind)+string(c.identity[:]), c.encode(c.deletedAt)) {
				return
			}
		}
		for k, before := range held {
			if !yield(string(countKind)+string(k[:]), before) {
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
		return l.streams.restore(key[1:], value)
	default:
		return fmt.Errorf("there is no kind of entry %.1q", key)
	}
}

// Settle makes a ledger ready whose entries were restored.
func (l *Ledger) Settle(now time.Time) {
	l.counts.Settle()
	if l.streams.settle() {
		l.EndPast(now)
	}
}

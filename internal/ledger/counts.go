// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

const (
	// RememberDeleted is the time for which the count of a deleted event stays known. A recorder
	// that finds its event gone creates it again with the same name and the cumulative count, which
	// only the remembered count tells from new occurrences.
	RememberDeleted = 24 * time.Hour

	// MaxDeleted bounds the deleted events that are remembered; beyond it the oldest is forgotten
	// first.
	MaxDeleted = 100_000

	// outlived is the time by which the first occurrence of an unknown event must precede its
	// creation for the event to count as a re-creation: its cumulative count belongs to
	// observations before our memory.
	outlived = time.Hour
)

// identity is that of an event, (namespace, name), in a fixed size. It is cut from a cryptographic
// hash because names are chosen by anyone who may create events, and none of them may choose one
// that shares another's entry.
type identity [12]byte

// entry has the remembered state of one event. Each live event costs one, so it holds a digest and
// small fields.
type entry struct {
	uid             number // digest of the UID that carried the count last
	resourceVersion number // highest seen
	count           int32  // occurrences so far
	stream          uint16 // the number of the stream that it came from
	pass            uint16 // the stream's listing pass in which it was last seen, or gone
}

// number is 64 bits in the alignment of 32, which lets an entry with its key fill the memory that
// Go's map takes for them.
type number [2]uint32

func numberOf(n uint64) number { return number{uint32(n >> 32), uint32(n)} }

func (n number) uint64() uint64 { return uint64(n[0])<<32 | uint64(n[1]) }

// gone is the pass of an event that was deleted.
const gone = 0

func (e entry) isGone() bool { return e.pass == gone }

// forgotten is the resource version of an entry whose own belongs to a history that the cluster has
// lost. Any other version is newer.
const forgotten = math.MaxUint64

func (e entry) isForgotten() bool { return e.resourceVersion.uint64() == forgotten }

// isNewerThan reports whether the state is newer than one that was observed before it. A version
// that is not a number is 0: the order in which the states came then decides.
func (e entry) isNewerThan(other entry) bool {
	version := e.resourceVersion.uint64()
	return version == 0 || other.isForgotten() || version > other.resourceVersion.uint64()
}

// newest returns the version to remember after seen was observed in place of known.
func newest(seen, known entry) number {
	if seen.isNewerThan(known) {
		return seen.resourceVersion
	}
	return known.resourceVersion
}

// counts remember what was seen of every event, and return how many occurrences an observation adds.
//
// A repeat, a duplicated watch message, a relist after 410 Gone and an event that its recorder
// re-created after the TTL are one question here: what does this state of the event say beyond the
// state that is remembered? The answer comes from the event's identity (namespace and name), UID,
// count and resource version, never from a timestamp of a producer, whose clock may differ from
// everybody else's.
type counts struct {
	// changed are the events whose entry has changed since it was last noted; nil: nobody asks.
	changed map[identity]bool
	// heldBack has what is to be noted of the events that open windows hold: their entry as it was
	// before each window held them, oldest first. So the ledger that is noted never knows more than the
	// exporters have.
	heldBack map[identity][]held
	// before is the state that Observe found, for holdBack.
	before struct {
		entry
		isKnown   bool
		deletedAt uint32
	}

	entries map[identity]entry
	streams *streams
	// deleted has when each deleted event was deleted, in seconds since 1970, the oldest first.
	deleted *simplelru.LRU[identity, uint32]
}

// held is the entry of an event as it was before a window held the event; nil: there was none.
type held struct {
	by     windowKey
	before []byte
}

func newCounts(streams *streams) *counts {
	deleted, _ := simplelru.NewLRU[identity, uint32](math.MaxInt, nil) // It fails only for no size. Forget bounds it.
	return &counts{heldBack: map[identity][]held{}, entries: map[identity]entry{}, streams: streams, deleted: deleted}
}

// Observe accounts for the state of an event and returns the number of occurrences that are new in
// it; 0 means that nothing happened which was not accounted for before (a duplicate, a relabelled
// or rewritten event).
func (l *counts) Observe(namespace string, ev *corev1.Event) int64 {
	k, seen := identify(ev)
	s := l.streams.get(namespace)
	seen.stream, seen.pass = s.Number, s.pass

	known, ok := l.entries[k]
	l.before.entry, l.before.isKnown, l.before.deletedAt = known, ok, l.deletedAt(k)
	if !ok {
		l.set(k, known, seen)
		return firstSight(ev, int64(seen.count))
	}
	if known.uid != seen.uid && !seen.isNewerThan(known) {
		return 0 // An earlier object of that name, passed on again.
	}
	occurrences := increment(known, seen)
	l.set(k, known, l.merge(k, known, seen))
	return occurrences
}

// Remember notes that an event exists without its occurrences being new: it was there before the
// receiver covered it. An event that is remembered as live is observed instead, so that a listing
// that has to begin again loses nothing.
func (l *counts) Remember(namespace string, ev *corev1.Event) int64 {
	k, _ := identify(ev)
	if known := l.entries[k]; !known.isGone() { // If nothing is remembered, it is gone, too.
		return l.Observe(namespace, ev)
	}
	l.Observe(namespace, ev)
	return 0
}

// Delete notes that an event is gone, which is normally its TTL and never an occurrence. Its count
// stays known for RememberDeleted.
func (l *counts) Delete(namespace string, ev *corev1.Event, now time.Time) {
	k, last := identify(ev)
	last.stream = l.streams.get(namespace).Number

	known, ok := l.entries[k]
	if ok {
		if known.isGone() || known.uid != last.uid && !last.isNewerThan(known) {
			return // The same deletion again, or that of an earlier object of the name.
		}
		last.count = max(last.count, known.count)
		last.resourceVersion = newest(last, known)
	}
	l.bury(k, known, last, now)
}

// ForgetVersions forgets the resource versions of a stream's events, and no counts: the cluster's
// versions have gone back. The count that is observed next is the new baseline, also if it is lower.
// Nobody else tells of the events of streams that do not run.
func (l *counts) ForgetVersions(namespace string) {
	for k, e := range l.entries {
		if s := l.streams.byNumber[e.stream]; s == nil || !s.runs || s.Namespace == namespace {
			versionless := e
			versionless.resourceVersion = numberOf(forgotten)
			l.set(k, e, versionless)
		}
	}
}

// BeginList starts a listing pass over a stream: what is observed from here until EndList exists.
func (l *counts) BeginList(namespace string) {
	s := l.streams.get(namespace)
	s.pass = max(firstPass, s.pass+1) // After the last pass comes the first: what lives was seen in the newest.
	s.seen = 0
}

// EndList ends a listing pass: every event of the stream that was not observed since BeginList was
// deleted while nobody watched. It looks for them only if there are any: with a stream for each of
// many namespaces, each listing would look at the events of all.
func (l *counts) EndList(namespace string, now time.Time) {
	s := l.streams.get(namespace)
	for k, e := range l.entries {
		if s.live == s.seen {
			return
		}
		if e.stream == s.Number && e.pass != s.pass && !e.isGone() {
			l.bury(k, e, e, now)
		}
	}
}

// mostForgotten is the maximum number of events that are dropped at once. A listing may find that
// nearly all events were deleted. It is more than a batch deletes.
const mostForgotten = 2000

// Forget drops the deleted events whose time is over, and the oldest of those beyond MaxDeleted, up
// to mostForgotten of them. It reports whether there may be more.
func (l *counts) Forget(now time.Time) (more bool) {
	oldest := unixSeconds(now.Add(-RememberDeleted))
	for range mostForgotten {
		k, at, ok := l.deleted.GetOldest()
		if !ok || at > oldest && l.deleted.Len() <= MaxDeleted {
			return false
		}
		l.drop(k)
		l.deleted.Remove(k)
	}
	return l.deleted.Len() > 0
}

// Len is the number of events that are remembered, live and deleted.
func (l *counts) Len() int { return len(l.entries) }

// Live is the number of events that exist.
func (l *counts) Live() int { return len(l.entries) - l.deleted.Len() }

// merge returns the entry after an observation. For one object, it keeps the highest count, so that
// an edited count that goes down and up again does not become occurrences. Another object with the
// same name starts from its own count.
func (l *counts) merge(k identity, known, seen entry) entry {
	if known.isGone() {
		// A late duplicate of it, too: its deletion comes again after it.
		l.deleted.Remove(k)
	}
	if known.uid == seen.uid && !known.isForgotten() {
		seen.count = max(seen.count, known.count)
	}
	seen.resourceVersion = newest(seen, known)
	return seen
}

func (l *counts) bury(k identity, known, e entry, now time.Time) {
	e.pass = gone
	l.set(k, known, e)
	l.deleted.Add(k, unixSeconds(now))
}

// deletedAt returns when an event was deleted; 0: it is not deleted.
func (l *counts) deletedAt(k identity) uint32 {
	at, _ := l.deleted.Peek(k)
	return at
}

// increment is the number of occurrences between what is remembered of an event and a newer state
// of it.
func increment(known, seen entry) int64 {
	if seen.count > known.count {
		// More of the same event, or one that a recorder re-created with the count that it kept in
		// memory.
		return int64(seen.count) - int64(known.count)
	}
	if seen.uid != known.uid {
		return int64(seen.count) // A new event under an old name.
	}
	return 0
}

// firstSight is the number of new occurrences in an event of which nothing is remembered: all of
// them, unless it began so long before this object was created that its recorder must have created
// it again.
func firstSight(ev *corev1.Event, count int64) int64 {
	first, created := ev.FirstTimestamp.Time, ev.CreationTimestamp.Time
	if !event.Representable(first) {
		first = ev.EventTime.Time // The new recorder sets nothing else.
	}
	if event.Representable(first) && created.Sub(first) > outlived {
		return 1
	}
	return count
}

func identify(ev *corev1.Event) (identity, entry) {
	sum := event.Digest(event.Name(ev))
	return identity(sum[:len(identity{})]), entry{
		uid:             numberOf(digest(string(ev.UID))),
		resourceVersion: numberOf(event.ResourceVersion(ev)),
		count:           int32(event.Count(ev)),
	}
}

func digest(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// unixSeconds is never 0, which marks a live event.
func unixSeconds(t time.Time) uint32 {
	return uint32(min(max(1, t.Unix()), math.MaxUint32))
}

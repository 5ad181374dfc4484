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
	pass            uint16 // the stream's listing pass in which it was last seen, or gone
}

// seen is a state of an event of a namespace, as a stream passed it on.
type seen struct {
	identity
	entry
	from      *stream
	namespace string
	// isRecreated reports whether the event began so long before this object was created that its
	// recorder must have created it again.
	isRecreated bool
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

// isEarlierObject reports whether this is an earlier object of the name of the other one, passed on again.
func (e entry) isEarlierObject(known entry) bool {
	return e.uid != known.uid && !e.isNewerThan(known)
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
	*streams
	// changed has the events whose entry has changed since it was last noted, and the stream that
	// brought them; nil: nobody asks.
	changed map[identity]*stream
	// deleted has when each deleted event was deleted, the oldest first.
	deleted *simplelru.LRU[identity, deletion]
	// restored has what was restored, until Settle.
	restored map[identity]restored
}

// deletion is when an event was deleted, in seconds since 1970, and the ID of its stream.
type deletion struct {
	at     uint32
	stream uint64
}

func newCounts(streams *streams) *counts {
	deleted, _ := simplelru.NewLRU[identity, deletion](math.MaxInt, nil) // It fails only for no size. Forget bounds it.
	return &counts{streams: streams, deleted: deleted}
}

// observe accounts for a state of an event and returns the number of occurrences that are new in
// it; 0 means that nothing happened which was not accounted for before (a duplicate, a relabelled
// or rewritten event).
func (l *counts) observe(now seen) int64 {
	former, known := l.find(now)
	now.pass = now.from.pass
	switch {
	case former == nil:
		l.set(now, nil, known)
	case !now.isEarlierObject(known):
		l.set(l.merge(known, now), former, known)
	}
	return now.since(former != nil, known)
}

// news returns what observe would return, and accounts for nothing.
func (l *counts) news(now seen) int64 {
	former, known := l.find(now)
	return now.since(former != nil, known)
}

// isAlive reports whether an event is remembered, and not as deleted.
func (l *counts) isAlive(now seen) bool {
	_, known := l.find(now)
	return !known.isGone() // If nothing is remembered, it is gone, too.
}

// remember notes that an event exists without its occurrences being new: it was there before the
// receiver covered it. An event that is remembered as live is observed instead, so that a listing
// that has to begin again loses nothing.
func (l *counts) remember(now seen) int64 {
	isAlive := l.isAlive(now)
	if occurrences := l.observe(now); isAlive {
		return occurrences
	}
	return 0
}

// remove notes that an event is gone, which is normally its TTL and never an occurrence. Its count
// stays known for RememberDeleted.
func (l *counts) remove(last seen, at time.Time) {
	former, known := l.find(last)
	if former != nil {
		if known.isGone() || last.isEarlierObject(known) {
			return // The same deletion again, or that of an earlier object of the name.
		}
		last.count = max(last.count, known.count)
		last.resourceVersion = newest(last.entry, known)
	}
	l.bury(last, former, known, at)
}

// ForgetVersions forgets the resource versions of a stream's events, and no counts: the cluster's
// versions have gone back. The count that is observed next is the new baseline, also if it is lower.
// Nobody else tells of the events of streams that do not run.
func (l *counts) ForgetVersions(namespace string) {
	own := l.get(namespace)
	for _, s := range l.byID {
		if s != own && s.runs {
			continue
		}
		for k, e := range s.events {
			versionless := seen{identity: k, entry: e, from: s}
			versionless.resourceVersion = numberOf(forgotten)
			l.set(versionless, s, e)
		}
	}
}

// BeginList starts a listing pass over a stream: what is observed from here until EndList exists.
func (l *counts) BeginList(namespace string) {
	s := l.get(namespace)
	s.pass = max(firstPass, s.pass+1) // After the last pass comes the first: what lives was seen in the newest.
}

// EndList ends a listing pass: every event of the stream that was not observed since BeginList was
// deleted while nobody watched.
func (l *counts) EndList(namespace string, now time.Time) {
	s := l.get(namespace)
	for k, e := range s.events {
		if e.pass != s.pass && !e.isGone() {
			l.bury(seen{identity: k, entry: e, from: s}, s, e, now)
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
		k, deleted, ok := l.deleted.GetOldest()
		if !ok || deleted.at > oldest && l.deleted.Len() <= MaxDeleted {
			return false
		}
		s := l.byID[deleted.stream]
		delete(s.events, k)
		l.note(k, s)
		l.deleted.Remove(k)
	}
	return l.deleted.Len() > 0
}

// Len is the number of events that are remembered, live and deleted.
func (l *counts) Len() (n int) {
	for _, s := range l.byID {
		n += len(s.events)
	}
	return n
}

// Live is the number of events that exist.
func (l *counts) Live() int { return l.Len() - l.deleted.Len() }

// merge returns a state with the entry after it was observed. For one object, it keeps the highest
// count, so that an edited count that goes down and up again does not become occurrences. Another object
// with the same name starts from its own count.
func (l *counts) merge(known entry, now seen) seen {
	if known.isGone() {
		// A late duplicate of it, too: its deletion comes again after it.
		l.deleted.Remove(now.identity)
	}
	if known.uid == now.uid && !known.isForgotten() {
		now.count = max(now.count, known.count)
	}
	now.resourceVersion = newest(now.entry, known)
	return now
}

func (l *counts) bury(last seen, former *stream, known entry, at time.Time) {
	last.pass = gone
	l.set(last, former, known)
	l.deleted.Add(last.identity, deletion{unixSeconds(at), last.from.id})
}

// since returns the number of occurrences between what is remembered of an event and a newer state of
// it. If nothing is, they are all new, unless its recorder created it again.
func (now seen) since(isKnown bool, known entry) int64 {
	switch {
	case !isKnown && now.isRecreated:
		return 1
	case !isKnown:
		return int64(now.count)
	case now.isEarlierObject(known):
		return 0
	case now.count > known.count:
		// More of the same event, or one that a recorder re-created with the count that it kept in
		// memory.
		return int64(now.count) - int64(known.count)
	case now.uid != known.uid:
		return int64(now.count) // A new event under an old name.
	}
	return 0
}

// see returns a state of an event that the stream of a namespace passed on.
func (l *counts) see(stream string, ev *corev1.Event) seen {
	sum := event.Digest(event.Name(ev))
	return seen{
		from: l.get(stream), namespace: ev.Namespace,
		identity: identity(sum[:len(identity{})]),
		entry: entry{
			uid:             numberOf(digest(string(ev.UID))),
			resourceVersion: numberOf(event.ResourceVersion(ev)),
			count:           int32(event.Count(ev)),
		},
		isRecreated: isRecreated(ev),
	}
}

// isRecreated reports whether an event began so long before this object was created that its recorder
// must have created it again.
func isRecreated(ev *corev1.Event) bool {
	first, created := ev.FirstTimestamp.Time, ev.CreationTimestamp.Time
	if !event.Representable(first) {
		first = ev.EventTime.Time // The new recorder sets nothing else.
	}
	return event.Representable(first) && created.Sub(first) > outlived
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

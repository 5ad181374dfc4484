// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// entrySize is the size of an entry's value.
const entrySize = 8 + 8 + 4 + 4 + 4

// firstPass is the pass of a stream before its first listing.
const firstPass = 1

// set and drop are the only ways in which an entry changes, so that none is missed in a snapshot.
// known is the entry so far; the zero entry if there was none. A new pass alone is no change: after
// a restart all entries are of the first.
func (l *counts) set(k identity, known, e entry) {
	if known.stream != e.stream || known.pass != e.pass {
		l.count(known, -1)
		l.count(e, 1)
	}
	l.entries[k] = e
	if known.isGone() == e.isGone() {
		known.pass = e.pass
	}
	if known != e {
		l.note(k)
	}
}

// count adds to the numbers of the entry's stream, if it is alive.
func (l *counts) count(e entry, n int) {
	s := l.streams.byNumber[e.stream]
	if s == nil || e.isGone() {
		return // The entry of the stream was corrupt, or the event does not exist.
	}
	s.live += n
	if e.pass == s.pass {
		s.seen += n
	}
}

func (l *counts) drop(k identity) {
	l.note(k)
	delete(l.entries, k)
}

// note notes that an entry is to be noted.
func (l *counts) note(k identity) {
	if l.changed != nil {
		l.changed[k] = true
	}
}

// holdBack keeps what is noted of an event as it was before the last Observe, which was of this event,
// until release. It reports whether the window did not hold the event yet.
func (l *counts) holdBack(ev *corev1.Event, by windowKey) (k identity, isNew bool) {
	k, _ = identify(ev)
	if l.isHeld(k, by) {
		return k, false
	}
	h := held{by: by}
	if l.before.isKnown {
		h.before = l.before.encode(l.before.deletedAt)
	}
	l.heldBack[k] = append(l.heldBack[k], h)
	return k, true
}

func (l *counts) isHeld(k identity, by windowKey) bool {
	return slices.ContainsFunc(l.heldBack[k], func(h held) bool { return h.by == by })
}

// release lets the entry of an event be noted as it is, as far as this window held it back.
func (l *counts) release(k identity, by windowKey) {
	if rest := slices.DeleteFunc(l.heldBack[k], func(h held) bool { return h.by == by }); len(rest) > 0 {
		l.heldBack[k] = rest
	} else {
		delete(l.heldBack, k)
	}
	l.note(k)
}

// value is an entry in the form that Restore takes; nil means that there is none.
func (l *counts) value(k identity) []byte {
	if windows := l.heldBack[k]; len(windows) > 0 {
		return windows[0].before
	}
	e, ok := l.entries[k]
	if !ok {
		return nil
	}
	return e.encode(l.deletedAt(k))
}

// copiedEntry is an entry that All has copied: its encoding would take longer.
type copiedEntry struct {
	identity
	entry
	deletedAt uint32
}

// copied returns copies of all entries, and what is noted instead of those that windows hold back.
func (l *counts) copied() (all []copiedEntry, held map[identity][]byte) {
	all, held = make([]copiedEntry, 0, len(l.entries)), map[identity][]byte{}
	for k, e := range l.entries {
		c := copiedEntry{identity: k, entry: e}
		if e.isGone() {
			c.deletedAt = l.deletedAt(k)
		}
		all = append(all, c)
	}
	for k, windows := range l.heldBack {
		held[k] = windows[0].before
	}
	return all, held
}

func (e entry) encode(deletedAt uint32) []byte {
	b := make([]byte, 0, entrySize)
	b = binary.BigEndian.AppendUint64(b, e.uid.uint64())
	b = binary.BigEndian.AppendUint64(b, e.resourceVersion.uint64())
	b = binary.BigEndian.AppendUint32(b, uint32(e.count))
	b = binary.BigEndian.AppendUint32(b, uint32(e.stream))
	return binary.BigEndian.AppendUint32(b, deletedAt)
}

// Restore puts an entry back, or takes it away if the value is nil. Settle has to be called after
// the last of them. It returns an error if the value is none of Value's.
func (l *counts) Restore(key string, value []byte) error {
	if len(key) != len(identity{}) {
		return fmt.Errorf("the key of an entry of the ledger has %d bytes", len(key))
	}
	k := identity([]byte(key))
	l.deleted.Remove(k)
	if value == nil {
		delete(l.entries, k)
		return nil
	}
	if len(value) != entrySize {
		return fmt.Errorf("an entry of the ledger has %d bytes instead of %d", len(value), entrySize)
	}
	e := entry{
		uid:             numberOf(binary.BigEndian.Uint64(value)),
		resourceVersion: numberOf(binary.BigEndian.Uint64(value[8:])),
		count:           int32(binary.BigEndian.Uint32(value[16:])),
		stream:          uint16(binary.BigEndian.Uint32(value[20:])),
		pass:            firstPass,
	}
	if at := binary.BigEndian.Uint32(value[24:]); at != 0 {
		e.pass = gone
		l.deleted.Add(k, at)
	}
	l.entries[k] = e
	return nil
}

// Settle makes restored counts ready.
func (l *counts) Settle() {
	for _, e := range l.entries {
		l.count(e, 1)
	}
	byTime := func(a, b identity) int { return cmp.Compare(l.deletedAt(a), l.deletedAt(b)) }
	for _, k := range slices.SortedFunc(slices.Values(l.deleted.Keys()), byTime) {
		l.deleted.Get(k) // It becomes the newest one.
	}
}

// EndPast notes that the streams that run have listed all that they cover. Another event that came
// from a stream that no longer runs counts as deleted then, since nothing will tell when it is. Not
// before: of deleted events, only MaxDeleted are remembered, and a listing may still have them.
func (l *counts) EndPast(now time.Time) {
	for k, e := range l.entries {
		if s := l.streams.byNumber[e.stream]; !e.isGone() && (s == nil || !s.runs) {
			l.bury(k, e, e, now)
		}
	}
}

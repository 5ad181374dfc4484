// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// entrySize is the size of an entry's value.
const entrySize = 8 + 8 + 4 + 8 + 4

// firstPass is the pass of a stream before its first listing.
const firstPass = 1

// set sets the entry of an event. former is the stream that brought the event before; nil: nothing was
// known of it. known is the entry so far. A new pass alone is not noted: after a restart all entries are
// of the first.
func (l *counts) set(now seen, former *stream, known entry) {
	if former != nil && former != now.from {
		delete(former.events, now.identity)
	}
	now.from.events[now.identity] = now.entry
	if known.isGone() == now.isGone() {
		known.pass = now.pass
	}
	if former != now.from || known != now.entry {
		l.note(now.identity, now.from)
	}
}

// note notes that an entry is to be noted.
func (l *counts) note(k identity, s *stream) {
	if l.changed != nil {
		l.changed[k] = s
	}
}

// value is an entry in the form that Restore takes; nil means that there is none.
func (l *counts) value(k identity, s *stream) []byte {
	e, ok := s.events[k]
	if !ok {
		return nil
	}
	value := l.encode(k, e, s)
	return value[:]
}

func (l *counts) encode(k identity, e entry, s *stream) (value [entrySize]byte) {
	binary.BigEndian.PutUint64(value[:], e.uid.uint64())
	binary.BigEndian.PutUint64(value[8:], e.resourceVersion.uint64())
	binary.BigEndian.PutUint32(value[16:], uint32(e.count))
	binary.BigEndian.PutUint64(value[20:], s.id)
	if e.isGone() {
		deleted, _ := l.deleted.Peek(k)
		binary.BigEndian.PutUint32(value[28:], deleted.at)
	}
	return value
}

// restored is an entry before Settle gives it to its stream.
type restored struct {
	entry
	deletion
}

// Restore puts an entry back, or takes it away if the value is nil. Settle has to be called after
// the last of them. It returns an error if the value is none of Changed's.
func (l *counts) Restore(key string, value []byte) error {
	if len(key) != len(identity{}) {
		return fmt.Errorf("the key of an entry of the ledger has %d bytes", len(key))
	}
	k := identity([]byte(key))
	if value == nil {
		delete(l.restored, k)
		return nil
	}
	if len(value) != entrySize {
		return fmt.Errorf("an entry of the ledger has %d bytes instead of %d", len(value), entrySize)
	}
	if l.restored == nil {
		l.restored = map[identity]restored{}
	}
	l.restored[k] = restored{
		entry: entry{
			uid:             numberOf(binary.BigEndian.Uint64(value)),
			resourceVersion: numberOf(binary.BigEndian.Uint64(value[8:])),
			count:           int32(binary.BigEndian.Uint32(value[16:])),
			pass:            firstPass,
		},
		deletion: deletion{stream: binary.BigEndian.Uint64(value[20:]), at: binary.BigEndian.Uint32(value[28:])},
	}
	return nil
}

// Settle makes restored counts ready.
func (l *counts) Settle() {
	var deleted []identity
	for k, r := range l.restored {
		if r.at != 0 {
			r.pass = gone
			deleted = append(deleted, k)
		}
		l.withID(r.stream).events[k] = r.entry
	}
	slices.SortFunc(deleted, func(a, b identity) int { return cmp.Compare(l.restored[a].at, l.restored[b].at) })
	for _, k := range deleted {
		l.deleted.Add(k, l.restored[k].deletion)
	}
	l.restored = nil
}

// EndPast notes that the streams that run have listed all that they cover. Another event that came
// from a stream that no longer runs counts as deleted then, since nothing will tell when it is. Not
// before: of deleted events, only MaxDeleted are remembered, and a listing may still have them.
func (l *counts) EndPast(now time.Time) {
	for _, s := range l.byID {
		if s.runs {
			continue
		}
		for k, e := range s.events {
			if !e.isGone() {
				l.bury(seen{identity: k, entry: e, from: s}, s, e, now)
			}
		}
	}
}

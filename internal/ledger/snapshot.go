// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// entrySize is the size of an entry's value.
const entrySize = 8 + 8 + 4 + 4 + 4

// firstPass is the pass of a scope before its first listing.
const firstPass = 1

// set and drop are the only ways in which an entry changes, so that none is missed in a snapshot. A new pass alone is no
// change: after a restart all entries are of the first.
func (l *Ledger) set(k Key, e entry) {
	if l.changed != nil {
		known := l.entries[k]
		known.pass = e.pass
		if known != e {
			l.changed[k] = struct{}{}
		}
	}
	l.entries[k] = e
}

func (l *Ledger) drop(k Key) {
	if l.changed != nil {
		l.changed[k] = struct{}{}
	}
	delete(l.entries, k)
}

// Track makes the ledger note from now on which entries change.
func (l *Ledger) Track() {
	l.changed = map[Key]struct{}{}
}

// Changed is how many entries have changed since the last TakeChanged.
func (l *Ledger) Changed() int { return len(l.changed) }

// TakeChanged returns the entries that have changed since it was last called.
func (l *Ledger) TakeChanged() []Key {
	keys := make([]Key, 0, len(l.changed))
	for k := range l.changed {
		keys = append(keys, k)
	}
	l.changed = map[Key]struct{}{}
	return keys
}

// PutBack notes entries as changed that TakeChanged returned and that could not be saved.
func (l *Ledger) PutBack(keys []Key) {
	for _, k := range keys {
		l.changed[k] = struct{}{}
	}
}

// Value is an entry in the form that Restore takes; nil means that there is none.
func (l *Ledger) Value(k Key) []byte {
	e, ok := l.entries[k]
	if !ok {
		return nil
	}
	b := make([]byte, 0, entrySize)
	b = binary.BigEndian.AppendUint64(b, e.uid)
	b = binary.BigEndian.AppendUint64(b, e.resourceVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(e.count))
	b = binary.BigEndian.AppendUint32(b, e.scope)
	return binary.BigEndian.AppendUint32(b, e.deletedAt)
}

// Restore puts an entry back, or takes it away if the value is nil. Settle has to be called after the last of them. The
// error says that the value is none of Value's.
func (l *Ledger) Restore(k Key, value []byte) error {
	if value == nil {
		delete(l.entries, k)
		return nil
	}
	if len(value) != entrySize {
		return fmt.Errorf("an entry of the ledger has %d bytes instead of %d", len(value), entrySize)
	}
	l.entries[k] = entry{
		uid:             binary.BigEndian.Uint64(value),
		resourceVersion: binary.BigEndian.Uint64(value[8:]),
		count:           int32(binary.BigEndian.Uint32(value[16:])),
		scope:           binary.BigEndian.Uint32(value[20:]),
		deletedAt:       binary.BigEndian.Uint32(value[24:]),
		pass:            firstPass,
	}
	return nil
}

// Scopes are the streams that entries came from, with the numbers that stand for them in the entries.
func (l *Ledger) Scopes() map[string]uint32 {
	scopes := make(map[string]uint32, len(l.scopes))
	for namespace, s := range l.scopes {
		scopes[namespace] = s.id
	}
	return scopes
}

// Settle makes a restored ledger ready: scopes are what Scopes returned when it was saved, and streams are those that run
// now. What came from a stream that no longer runs counts as deleted, since nothing will tell when it is.
func (l *Ledger) Settle(scopes map[string]uint32, streams []string, now time.Time) {
	running := map[uint32]bool{}
	for namespace, id := range scopes {
		if slices.Contains(streams, namespace) {
			l.scopes[namespace] = &scope{id: id, pass: firstPass}
			running[id] = true
		}
	}
	var gone []deletion
	for k, e := range l.entries {
		if e.deletedAt == 0 && !running[e.scope] {
			e.deletedAt = unixSeconds(now)
			l.set(k, e)
		}
		if e.deletedAt != 0 {
			gone = append(gone, deletion{k, e.deletedAt})
		}
	}
	slices.SortFunc(gone, func(a, b deletion) int { return int(a.at) - int(b.at) })
	for _, d := range gone {
		l.deleted.push(d.key, d.at)
	}
}

// unusedID is a number that no scope has.
func (l *Ledger) unusedID() uint32 {
	id := uint32(0)
	for _, s := range l.scopes {
		id = max(id, s.id+1)
	}
	return id
}

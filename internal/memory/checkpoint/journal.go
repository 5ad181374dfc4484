// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/klauspost/compress/s2"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// A snapshot begins when the journal has minJournal bytes, and as many as the last snapshot.
	minJournal = 96 << 10
	// snapshotPace is how much of a snapshot a write has, as a multiple of its part of the journal.
	// A snapshot that is soon complete keeps the journal short that Load reads.
	snapshotPace = 8
	// writeBytes is how many bytes a write may have before it has less of a snapshot: as much as it
	// has of the journal, so that the snapshot is complete before the journal is much longer.
	writeBytes = 10 << 20
	// deletesPerWrite is how many keys a write may delete, in addition to one for each that it
	// sets.
	deletesPerWrite = 256
	// termsOfSession is the distance of the first terms of two sessions.
	termsOfSession = 1 << 16
	// formerHeads is how many heads of former terms are kept. A late write may name one of these
	// terms as the present one, and each head leads to the next.
	formerHeads = 16
)

// Source has the entries of which a checkpoint is taken. It must not change during a call of Save.
type Source interface {
	// Value returns the present value of an entry; nil means that there is none.
	Value(Key) []byte
	// Keys returns the keys of all entries. It is read over many saves, between which entries come
	// and go: it must return each key that exists all the time, and may return others. A range over
	// a map does.
	Keys() iter.Seq[Key]
}

// Content is what one save saves.
type Content struct {
	State   json.RawMessage // of any size below a few KiB, since each write has it
	Changed []Key           // since the last Content
	Source  Source
	// Outbox has the requests that are about to be delivered. They replace the last ones.
	Outbox [][]byte
	// KeepOutbox leaves the outbox that was loaded as it is, and counts one more start with it.
	KeepOutbox bool
}

// journal makes the writes of one session. It does no I/O. Callers make a write only after the last
// one was acknowledged.
type journal struct {
	// session is part of the keys that are written once. It is random: two sessions may have loaded
	// the same checkpoint, and a write of the first one may arrive late.
	session      uint64
	acknowledged head
	// named is the term that the storage names as the present one; 0: none. Only the first write of
	// a term names it, so that a late write of a deposed leader does not name its own.
	named uint64
	// renames is whether the next write names its term again: a late write has named another one.
	renames bool
	// setAside is the term of a checkpoint that the next write sets aside; nil: none.
	setAside *uint64

	// keys returns the keys of the snapshot that is being written; nil: none is.
	keys func() (Key, bool)
	stop func()
}

func newJournal(term uint64) journal {
	return journal{session: uint64(rand.Uint32()), acknowledged: newHead(term)}
}

// write is what one save writes. It is not changed once it is made, so that it can be repeated.
type write struct {
	operations []*storage.Operation
	head       head
	left       []span // the head's garbage that it does not delete
	names      bool   // whether it begins a term
}

// write makes the next write.
func (j *journal) write(c Content) *write {
	w := &writer{session: j.session, next: j.acknowledged}
	// Only what the acknowledged head does not name may be deleted.
	garbage := w.next.Garbage
	w.next.Garbage = nil
	w.next.State = c.State

	w.writeOutbox(c)
	written := w.appendJournal(c.Changed, c.Source)
	j.writeSnapshot(w, c.Source, written)
	if j.named != w.next.Term && j.named != 0 && j.setAside == nil {
		w.next.endTerm(j.named)
	}
	fresh := w.next.Garbage
	w.next.Garbage = slices.Concat(fresh, garbage)
	names := j.named != w.next.Term
	j.writeHead(w)
	left := w.delete(garbage, deletesPerWrite+len(w.operations))
	return &write{operations: w.operations, head: w.next, left: slices.Concat(fresh, left), names: names}
}

// writeHead makes all that comes before it the present checkpoint.
func (j *journal) writeHead(w *writer) {
	w.set(headKey(w.next.Term), w.next.encode())
	if j.setAside != nil {
		w.set(setAsideKey, encodeTerm(*j.setAside))
	}
	if j.named != w.next.Term || j.renames {
		w.set(termKey, encodeTerm(w.next.Term))
	}
}

func (w *writer) set(key string, value []byte) {
	w.operations = append(w.operations, storage.SetOperation(key, value))
	w.bytes += len(value)
}

// endTerm notes that a term has ended. The oldest head is then not needed any more.
func (h *head) endTerm(term uint64) {
	h.Former = append(h.Former, term)
	if len(h.Former) > formerHeads {
		reached.State("the head of a former term is deleted")
		h.Garbage = append(h.Garbage, span{headKind, h.Former[0], 0, 1})
		h.Former = h.Former[1:]
	}
}

// acknowledge notes that a write has arrived; found is whether only what it sets was found, and not
// that it has deleted anything. If it was written more than once, it may arrive again later, so its
// term ends.
func (j *journal) acknowledge(w *write, repeated, found bool) {
	j.acknowledged, j.named, j.setAside = w.head, w.head.Term, nil
	if !found {
		j.acknowledged.Garbage = w.left
	}
	if repeated {
		j.acknowledged.Term++
	}
}

// writer collects the operations of one write.
type writer struct {
	session    uint64
	next       head
	operations []*storage.Operation
	bytes      int // that they set
}

// put writes a value under a new key and adds the key to spans.
func (w *writer) put(spans *[]span, kind byte, value []byte) {
	number := w.next.Next[string(kind)]
	w.next.Next[string(kind)]++
	*spans = extend(*spans, kind, w.session, number)
	w.set(span{Kind: kind, Session: w.session}.key(number), value)
}

// writeOutbox writes the requests, compressed: the records of a request are alike. A storage that maps
// its file keeps what was written in memory.
func (w *writer) writeOutbox(c Content) {
	if c.KeepOutbox {
		w.next.Starts++
		return
	}
	w.next.Garbage = append(w.next.Garbage, w.next.Outbox...)
	w.next.Outbox, w.next.Starts = nil, 0
	for _, request := range c.Outbox {
		w.put(&w.next.Outbox, outboxKind, seal(s2.Encode(nil, request)))
	}
}

// appendJournal writes the changed entries and returns their size.
func (w *writer) appendJournal(changed []Key, from Source) (size int) {
	spans := &w.next.Journal
	if w.next.isBuilding() {
		spans = &w.next.Since
	}
	c := chunks{emit: func(sealed []byte) {
		w.put(spans, journalKind, sealed)
		size += len(sealed)
	}}
	for _, key := range changed {
		c.add(key, from.Value(key))
	}
	c.flush()
	if w.next.isBuilding() {
		w.next.SinceBytes += size
	} else {
		w.next.JournalBytes += size
	}
	return size
}

func (h *head) isBuilding() bool { return len(h.Building) > 0 }

// writeSnapshot writes a part of a snapshot in proportion to the write's part of the journal, so
// that the cost of snapshots is that of the changes.
func (j *journal) writeSnapshot(w *writer, from Source, size int) {
	if j.keys == nil {
		if w.next.JournalBytes < max(minJournal, w.next.SnapshotBytes) {
			return
		}
		j.keys, j.stop = iter.Pull(from.Keys())
	}
	// Restarts abandon snapshots. The longer the journal has become, the sooner one is complete.
	most := snapshotPace * size * (1 + w.next.JournalBytes/max(minJournal, w.next.SnapshotBytes))
	written, open := 0, true
	c := chunks{emit: func(sealed []byte) {
		w.put(&w.next.Building, snapshotKind, sealed)
		written += len(sealed)
	}}
	most = max(min(most, max(writeBytes-w.bytes, size)), chunkBytes)
	for open && written < most {
		var key Key
		if key, open = j.keys(); open {
			if value := from.Value(key); value != nil {
				c.add(key, value)
			}
		}
	}
	c.flush()
	w.next.BuildingBytes += written
	if !open {
		j.endSnapshot()
		w.next.completeSnapshot()
	}
}

// endSnapshot ends the reading of keys.
func (j *journal) endSnapshot() {
	if j.stop != nil {
		j.stop()
	}
	j.keys, j.stop = nil, nil
}

// completeSnapshot replaces the last snapshot, and the journal before the new one, by the new one.
func (h *head) completeSnapshot() {
	h.Garbage = append(append(h.Garbage, h.Snapshot...), h.Journal...)
	h.Snapshot, h.SnapshotBytes = h.Building, h.BuildingBytes
	h.Journal, h.JournalBytes = h.Since, h.SinceBytes
	h.Building, h.BuildingBytes, h.Since, h.SinceBytes = nil, 0, nil, 0
}

// abandonSnapshot takes back what a process that ended has written of a snapshot.
func (h *head) abandonSnapshot() {
	if h.isBuilding() {
		reached.State("a process ended within a snapshot")
	}
	h.Garbage = append(h.Garbage, h.Building...)
	h.Journal = append(h.Journal, h.Since...)
	h.JournalBytes += h.SinceBytes
	h.Building, h.BuildingBytes, h.Since, h.SinceBytes = nil, 0, nil, 0
}

// delete deletes keys, up to a number, and returns the others.
func (w *writer) delete(garbage []span, most int) (left []span) {
	for i, s := range garbage {
		for ; s.From < s.To; s.From++ {
			if most == 0 {
				reached.State("a write leaves keys to be deleted later")
				return append([]span{s}, garbage[i+1:]...)
			}
			w.operations = append(w.operations, storage.DeleteOperation(s.key(s.From)))
			most--
		}
	}
	return nil
}

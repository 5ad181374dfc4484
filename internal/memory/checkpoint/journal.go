// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"iter"
	"math"
	"slices"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// minJournal is how many bytes the journal may have before a snapshot begins. A journal below
	// the size of the last snapshot begins none either.
	minJournal = 64 << 10
	// deletesPerWrite bounds the keys that one write deletes, in addition to those of the outbox.
	deletesPerWrite = 64
	// termsOfLeader is the distance of the first terms of two leaders.
	termsOfLeader = 1 << 16
	// formerHeads is how many heads of former terms are kept. A late write may name one of these terms
	// as the present one, and each head leads to the next.
	formerHeads = 16
)

// Source has the entries of which a checkpoint is taken. It must not change during a call of Save.
type Source interface {
	// Value returns the present value of an entry; nil means that there is none.
	Value(Key) []byte
	// Keys returns the keys of all entries. It may be read over many saves: it returns each key that
	// exists all the time exactly once, and others at most once.
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
	acknowledged head
	// named is the term that the storage names as the present one; 0: none. Only the first write of a
	// term names it, so that a late write of a deposed leader does not name its own.
	named uint64
	// deleted is how many keys of the acknowledged head's garbage the acknowledged write deleted.
	deleted int
	// setAside is the term of a checkpoint that the next write sets aside; nil: none.
	setAside *uint64

	// keys returns the keys of the snapshot that is being written; nil: none is.
	keys func() (Key, bool)
	stop func()
}

// write is what one save writes. It is not changed once it is made, so that it can be repeated.
type write struct {
	operations []*storage.Operation
	head       head
	encoded    []byte
	names      bool // whether it names its term as the present one
	deleted    int  // keys of the garbage of the head before that the write deletes
}

// write makes the next write.
func (j *journal) write(c Content) *write {
	w := &writer{next: j.acknowledged.clone()}
	w.next.dropGarbage(j.deleted)
	garbage, delivered := w.next.clone().Garbage, w.next.Delivered
	w.next.State = c.State

	w.writeOutbox(c)
	written := w.appendJournal(c.Changed, c.Source)
	j.writeSnapshot(w, c.Source, written)
	names := j.named != w.next.Term
	if names && j.named != 0 && j.setAside == nil {
		w.endTerm(j.named)
	}
	made := &write{encoded: w.next.encode(), names: names}
	j.writeHead(w, made)
	w.delete(delivered, math.MaxInt)
	made.deleted = w.delete(garbage, deletesPerWrite+len(w.operations))
	made.operations, made.head = w.operations, w.next
	return made
}

// writeHead makes all that comes before it the present checkpoint.
func (j *journal) writeHead(w *writer, made *write) {
	w.set(headKey(w.next.Term), made.encoded)
	if j.setAside != nil {
		w.set(setAsideKey, encodeTerm(*j.setAside))
	}
	if made.names {
		w.set(termKey, encodeTerm(w.next.Term))
	}
}

// endTerm notes that a term has ended, and deletes the oldest head that is not needed.
func (w *writer) endTerm(term uint64) {
	w.next.Former = append(w.next.Former, term)
	if len(w.next.Former) > formerHeads {
		w.operations = append(w.operations, storage.DeleteOperation(headKey(w.next.Former[0])))
		w.next.Former = w.next.Former[1:]
	}
}

func (w *writer) set(key string, value []byte) {
	w.operations = append(w.operations, storage.SetOperation(key, value))
}

// acknowledge notes that a write has arrived. If it was written more than once, it may arrive again
// later, so its term ends.
func (j *journal) acknowledge(w *write, repeated bool) {
	j.acknowledged, j.deleted, j.named, j.setAside = w.head, w.deleted, w.head.Term, nil
	if repeated {
		j.acknowledged.Term++
	}
}

// writer collects the operations of one write.
type writer struct {
	next       head
	operations []*storage.Operation
}

// put writes a value under a new key and adds the key to spans.
func (w *writer) put(spans *[]span, kind byte, value []byte) {
	number := w.next.Next[string(kind)]
	w.next.Next[string(kind)]++
	*spans = extend(*spans, kind, w.next.Term, number)
	w.set(span{Kind: kind, Term: w.next.Term}.key(number), value)
}

func (w *writer) writeOutbox(c Content) {
	if c.KeepOutbox {
		w.next.Delivered = nil
		w.next.Starts++
		return
	}
	w.next.Delivered, w.next.Outbox, w.next.Starts = w.next.Outbox, nil, 0
	for _, request := range c.Outbox {
		w.put(&w.next.Outbox, outboxKind, seal(request))
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

// writeSnapshot writes as much of a snapshot as the write has of the journal, so that the cost of
// snapshots is that of the changes.
func (j *journal) writeSnapshot(w *writer, from Source, size int) {
	if j.keys == nil {
		if w.next.JournalBytes < max(minJournal, w.next.SnapshotBytes) {
			return
		}
		j.keys, j.stop = iter.Pull(from.Keys())
	}
	written, open := 0, true
	c := chunks{emit: func(sealed []byte) {
		w.put(&w.next.Building, snapshotKind, sealed)
		written += len(sealed)
	}}
	for open && written < max(size, chunkBytes) {
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
	h.Garbage = append(h.Garbage, h.Building...)
	h.Journal = append(h.Journal, h.Since...)
	h.JournalBytes += h.SinceBytes
	h.Building, h.BuildingBytes, h.Since, h.SinceBytes = nil, 0, nil, 0
}

// delete deletes keys that the acknowledged head does not name, up to a number, and returns how many.
func (w *writer) delete(garbage []span, most int) (deleted int) {
	for _, s := range garbage {
		for number := s.From; number < s.To && deleted < most; number++ {
			w.operations = append(w.operations, storage.DeleteOperation(s.key(number)))
			deleted++
		}
	}
	return deleted
}

// dropGarbage forgets the first n keys, which are deleted.
func (h *head) dropGarbage(n int) {
	for n > 0 && len(h.Garbage) > 0 {
		s := &h.Garbage[0]
		count := min(n, int(s.To-s.From))
		s.From += uint64(count)
		n -= count
		if s.From == s.To {
			h.Garbage = slices.Delete(h.Garbage, 0, 1)
		}
	}
}

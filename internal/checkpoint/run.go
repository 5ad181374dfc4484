// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"iter"
	"slices"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// run is a set of entries that was written at once, with the values of that time: of an entry that several runs hold, the
// value in the run with the highest id is the newest.
type run struct {
	id      uint64
	entries uint32
	values  uint32 // that hold them
}

// sizes is how many classes of size there are; each class is fanIn times as large as the one before.
const sizes = 12

func (r run) size() (class int) {
	for limit := uint64(64); uint64(r.entries) > limit && class < sizes-1; limit *= fanIn {
		class++
	}
	return class
}

func (r run) key(chunk int) string { return fmt.Sprintf("run/%d/%d", r.id, chunk) }

func (r run) chunks() iter.Seq[int] {
	return func(yield func(int) bool) {
		for chunk := range int(r.values) {
			if !yield(chunk) {
				return
			}
		}
	}
}

// head names the runs, and holds the caller's state.
type head struct {
	nextID uint64
	runs   []run // by id
	state  []byte
}

func (h *head) clone() head {
	return head{nextID: h.nextID, runs: slices.Clone(h.runs)}
}

func (h *head) entries() (total int) {
	for _, r := range h.runs {
		total += int(r.entries)
	}
	return total
}

func (h *head) ofSize(class int) (found []run) {
	for _, r := range h.runs {
		if r.size() == class {
			found = append(found, r)
		}
	}
	return found
}

func (h *head) remove(r run) {
	h.runs = slices.DeleteFunc(h.runs, func(other run) bool { return other.id == r.id })
}

// transaction collects what one Save writes and deletes.
type transaction struct {
	added   map[uint64][]*storage.Operation
	keys    map[uint64][]Key
	removed []run
}

// add writes a run with the present values of the keys. With dropGone, entries that are gone are left out.
func (t *transaction) add(h *head, keys []Key, from Source, dropGone bool) {
	if t.added == nil {
		t.added, t.keys = map[uint64][]*storage.Operation{}, map[uint64][]Key{}
	}
	if dropGone {
		keys = slices.DeleteFunc(keys, func(key Key) bool { return from.Value(key) == nil })
	}
	if len(keys) == 0 {
		return
	}
	r := run{id: h.nextID, entries: uint32(len(keys))}
	for chunk := range encodeChunks(keys, from) {
		t.added[r.id] = append(t.added[r.id], storage.SetOperation(r.key(int(r.values)), chunk))
		r.values++
	}
	h.nextID++
	h.runs = append(h.runs, r)
	t.keys[r.id] = keys
}

// remove deletes a run; one that this transaction was to write is not written.
func (t *transaction) remove(r run) {
	if _, ok := t.added[r.id]; ok {
		delete(t.added, r.id)
		delete(t.keys, r.id)
		return
	}
	t.removed = append(t.removed, r)
}

func (t *transaction) operations() (operations []*storage.Operation) {
	for _, writes := range t.added {
		operations = append(operations, writes...)
	}
	for _, r := range t.removed {
		for chunk := range r.chunks() {
			operations = append(operations, storage.DeleteOperation(r.key(chunk)))
		}
	}
	return operations
}

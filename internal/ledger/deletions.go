// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// fewDeleted is how many places of the queue may be unused, however few events are deleted.
const fewDeleted = 1000

// deletions is when events were deleted, and the order of that, oldest first. An event that came
// back leaves its place in the queue behind.
type deletions struct {
	at    map[identity]uint32 // seconds since 1970
	queue []deletion
	head  int
}

type deletion struct {
	key identity
	at  uint32
}

func newDeletions() deletions { return deletions{at: map[identity]uint32{}} }

func (d *deletions) push(k identity, at uint32) {
	d.at[k] = at
	if d.len() > 2*d.valid()+fewDeleted { // Forget may be far from where the unused ones are.
		d.rebuild()
		return
	}
	d.queue = append(d.queue, deletion{k, at})
}

// rebuild makes the queue from what is deleted.
func (d *deletions) rebuild() {
	d.queue, d.head = make([]deletion, 0, d.valid()), 0
	for k, at := range d.at {
		d.queue = append(d.queue, deletion{k, at})
	}
	slices.SortFunc(d.queue, func(a, b deletion) int { return int(a.at) - int(b.at) })
}

// holds reports whether an entry of the queue is of an event that is still deleted since then.
func (d *deletions) holds(place deletion) bool {
	return d.at[place.key] == place.at // Which is never 0.
}

func (d *deletions) revive(k identity) { delete(d.at, k) }

// valid is how many events are deleted.
func (d *deletions) valid() int { return len(d.at) }

func (d *deletions) front() deletion { return d.queue[d.head] }

func (d *deletions) len() int { return len(d.queue) - d.head }

// pop drops the oldest place, and the room of the dropped ones once they are the greater part.
func (d *deletions) pop() {
	d.head++
	if d.head > len(d.queue)/2 {
		d.queue = append([]deletion(nil), d.queue[d.head:]...)
		d.head = 0
	}
}

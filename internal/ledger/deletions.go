// SPDX-License-Identifier: Apache-2.0

package ledger

// deletions is the order in which events were deleted, oldest first. An event that came back leaves its old place in the
// queue; valid counts the places that still stand for a deleted event.
type deletions struct {
	queue []deletion
	head  int
	valid int
}

type deletion struct {
	key Key
	at  uint32 // seconds since 1970
}

func (d *deletions) push(k Key, at uint32) {
	d.queue = append(d.queue, deletion{k, at})
	d.valid++
}

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

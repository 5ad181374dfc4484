// SPDX-License-Identifier: Apache-2.0

package dedup

import "container/heap"

// versions are windows of one stream's events that hold something, as a heap: the one whose first
// observation has the lowest resource version comes first. After each batch, the leader publishes
// the version up to which all is delivered, which must not take longer the more is held.
type versions []*window

func (v versions) Len() int           { return len(v) }
func (v versions) Less(i, j int) bool { return v[i].first < v[j].first }

func (v versions) Swap(i, j int) {
	v[i], v[j] = v[j], v[i]
	v[i].place, v[j].place = i, j
}

// Push implements heap.Interface.
func (v *versions) Push(added any) {
	open := added.(*window)
	open.place = len(*v)
	*v = append(*v, open)
}

// Pop implements heap.Interface.
func (v *versions) Pop() any {
	last := len(*v) - 1
	open := (*v)[last]
	(*v)[last] = nil
	*v = (*v)[:last]
	return open
}

// noteFirst notes the version of the first observation that a window holds.
func (w *Windows) noteFirst(open *window) {
	if open.first == 0 {
		return // It is not a number.
	}
	stream := w.streamOf(open.event.Namespace)
	of, ok := w.oldest[stream]
	if !ok {
		of = &versions{}
		w.oldest[stream] = of
	}
	heap.Push(of, open)
}

// forgetFirst forgets the version of the first observation that a window holds.
func (w *Windows) forgetFirst(open *window) {
	if open.first == 0 {
		return
	}
	stream := w.streamOf(open.event.Namespace)
	of := w.oldest[stream]
	heap.Remove(of, open.place)
	if of.Len() == 0 {
		delete(w.oldest, stream)
	}
	open.first = 0
}

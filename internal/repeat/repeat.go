// SPDX-License-Identifier: Apache-2.0

// Package repeat holds back the repeats of an event, so that there is at most one log record for each event and
// interval. The occurrences of what is held back are summed into the next record.
package repeat

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// Windows holds a window for each event that had a record within the interval. It is not safe for concurrent use.
type Windows struct {
	interval time.Duration
	byEvent  map[types.NamespacedName]*window
	order    []*window // by end; all windows are equally long, so also by begin

	held    map[Key]*window  // those that hold something
	changed map[Key]struct{} // since TakeChanged; nil: nobody asks
}

type window struct {
	event types.NamespacedName
	end   time.Time
	held  *observation.Observation // nil: nothing came since the record that opened the window
}

// New makes windows of the given length. With 0, nothing is held back.
func New(interval time.Duration) *Windows {
	return &Windows{interval: interval, byEvent: map[types.NamespacedName]*window{}, held: map[Key]*window{}}
}

// Admit returns what is to be recorded now: of each event the first observation outside a window, and what earlier
// windows held when they ended. The rest is held.
func (w *Windows) Admit(observations []observation.Observation, now time.Time) []observation.Observation {
	admitted := w.due(now)
	if w.interval == 0 {
		if len(admitted) == 0 {
			return observations
		}
		return append(admitted, observations...)
	}
	for i := range observations {
		o := &observations[i]
		event := types.NamespacedName{Namespace: o.Event.Namespace, Name: o.Event.Name}
		if open, ok := w.byEvent[event]; ok {
			open.hold(o)
			w.noteHeld(open)
			continue
		}
		w.open(event, now)
		admitted = append(admitted, *o)
	}
	return admitted
}

// due ends the windows whose time has come. One that held something gives a record, which opens the next.
func (w *Windows) due(now time.Time) (records []observation.Observation) {
	for len(w.order) > 0 && !w.order[0].end.After(now) {
		ended := w.order[0]
		w.order = w.order[1:]
		delete(w.byEvent, ended.event)
		if ended.held != nil {
			records = append(records, *ended.held)
			w.noteReleased(ended)
			w.open(ended.event, now)
		}
	}
	return records
}

func (w *Windows) open(event types.NamespacedName, now time.Time) {
	opened := &window{event: event, end: now.Add(w.interval)}
	w.byEvent[event] = opened
	w.order = append(w.order, opened)
}

// hold sums: the newest state of the event, seen when the first of the held ones was.
func (w *window) hold(o *observation.Observation) {
	merged := *o
	if w.held != nil {
		merged.Occurrences += w.held.Occurrences
		merged.SeenAt = w.held.SeenAt
	}
	w.held = &merged
}

// Flush returns everything that is held and ends all windows.
func (w *Windows) Flush() (records []observation.Observation) {
	for _, open := range w.order {
		if open.held != nil {
			records = append(records, *open.held)
			w.noteReleased(open)
		}
	}
	w.order = nil
	clear(w.byEvent)
	return records
}

// NextEnd is when the next window ends; ok is false when none is open.
func (w *Windows) NextEnd() (end time.Time, ok bool) {
	if len(w.order) == 0 {
		return time.Time{}, false
	}
	return w.order[0].end, true
}

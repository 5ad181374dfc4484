// SPDX-License-Identifier: Apache-2.0

// Package repeat holds back the repeats of an event, so that there is at most one log record for each event and
// interval. The occurrences of what is held back are summed into the next record.
package repeat

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/changes"
	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// Windows holds a window for each event that had a record within the interval. It is not safe for concurrent use.
type Windows struct {
	interval time.Duration
	byEvent  map[types.NamespacedName]*window
	order    []*window // by end; all windows are equally long, so also by begin

	offers  Offers                            // nil: nothing was offered before a crash
	arrived map[types.NamespacedName]struct{} // of those, what is being admitted

	held    map[Key]*window // those that hold something
	changed changes.Set[Key]
}

type window struct {
	event types.NamespacedName
	end   time.Time
	held  *observation.Observation // nil: nothing came since the record that opened the window
	joins bool                     // whether what is held belongs into a record that was offered before a crash
}

// Offers tells what a process that was killed had offered as records, so that it is recorded again as it was then.
type Offers interface {
	// Redeem says whether exactly this state of an event was offered, and forgets it.
	Redeem(state *corev1.Event) bool
	// Awaits says whether a later state of the event was offered and is still to be seen.
	Awaits(event types.NamespacedName) bool
}

// New makes windows of the given length. With 0, nothing is held back.
func New(interval time.Duration) *Windows {
	return &Windows{
		interval: interval,
		byEvent:  map[types.NamespacedName]*window{},
		arrived:  map[types.NamespacedName]struct{}{},
		held:     map[Key]*window{},
	}
}

// Admit returns what is to be recorded now: of each event the first observation outside a window, what earlier windows
// held when they ended, and what was offered as a record before a crash, with what was held then. The rest is held.
func (w *Windows) Admit(observations []observation.Observation, now time.Time) []observation.Observation {
	w.noteArrived(observations)
	admitted := w.due(now)
	if w.interval == 0 {
		if len(admitted) == 0 {
			return observations
		}
		return append(admitted, observations...)
	}
	for i := range observations {
		o := &observations[i]
		name := event.Name(o.Event)
		if open, ok := w.byEvent[name]; ok {
			open.hold(o)
			w.noteHeld(open)
			if o.Again {
				admitted = append(admitted, w.release(open))
			}
			continue
		}
		w.open(name, now)
		admitted = append(admitted, *o)
	}
	return admitted
}

// due ends the windows whose time has come. One that held something gives a record, which opens the next.
func (w *Windows) due(now time.Time) (records []observation.Observation) {
	var ended, kept []*window
	for len(w.order) > 0 && !w.order[0].end.After(now) {
		if w.awaits(w.order[0]) {
			kept = append(kept, w.order[0])
		} else {
			ended = append(ended, w.order[0])
		}
		w.order = w.order[1:]
	}
	w.order = append(kept, w.order...)
	for _, window := range ended {
		delete(w.byEvent, window.event)
		if window.held != nil {
			records = append(records, w.release(window))
			w.open(window.event, now)
		}
	}
	return records
}

// awaits says whether what a window holds belongs into a record that is still to come.
func (w *Windows) awaits(open *window) bool {
	if !open.joins {
		return false
	}
	_, arrived := w.arrived[open.event]
	return arrived || w.offers.Awaits(open.event)
}

// noteArrived keeps the windows open that belong to what is admitted now.
func (w *Windows) noteArrived(observations []observation.Observation) {
	clear(w.arrived)
	for i := range observations {
		if observations[i].Again {
			w.arrived[event.Name(observations[i].Event)] = struct{}{}
		}
	}
}

// release takes from a window what it holds.
func (w *Windows) release(open *window) observation.Observation {
	held := *open.held
	open.held, open.joins = nil, false
	w.noteReleased(open)
	return held
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
		if open.held != nil && !w.awaits(open) {
			records = append(records, w.release(open))
		}
	}
	w.order = nil
	clear(w.byEvent)
	return records
}

// NextEnd is when the next window ends; ok is false when none is open.
func (w *Windows) NextEnd() (end time.Time, ok bool) {
	for _, open := range w.order {
		if !w.awaits(open) {
			return open.end, true
		}
	}
	return time.Time{}, false
}

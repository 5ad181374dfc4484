// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"crypto/sha256"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// Key names a window that holds something.
type Key [16]byte

// record is such a window in the form that is saved. The owner chain is not: it is looked up again.
type record struct {
	Event       *corev1.Event `json:"event"`
	Occurrences int64         `json:"occurrences"`
	SeenAt      time.Time     `json:"seenAt"`
	End         time.Time     `json:"end"`
	First       uint64        `json:"first,omitempty"`
}

func keyOf(name types.NamespacedName) Key {
	sum := sha256.Sum256([]byte(name.String()))
	return Key(sum[:16])
}

func (w *Windows) noteHeld(open *window) {
	k := keyOf(open.event)
	w.held[k] = open
	w.changed.Note(k)
}

func (w *Windows) noteReleased(ended *window) {
	k := keyOf(ended.event)
	delete(w.held, k)
	w.changed.Note(k)
}

// Track makes the windows note from now on what they hold and release.
func (w *Windows) Track() { w.changed.Track() }

// Changed is how many windows have changed what they hold since the last TakeChanged.
func (w *Windows) Changed() int { return w.changed.Len() }

// TakeChanged returns the windows that have changed what they hold since it was last called.
func (w *Windows) TakeChanged() []Key { return w.changed.Take() }

// Len is how many windows hold something.
func (w *Windows) Len() int { return len(w.held) }

// Value is what a window holds in the form that Restore takes; nil means nothing.
func (w *Windows) Value(k Key) []byte {
	open, ok := w.held[k]
	if !ok {
		return nil
	}
	written, _ := json.Marshal(record{open.held.Event, open.held.Occurrences, open.held.SeenAt, open.end, open.first})
	return written
}

// Restore puts a window back, or takes it away if the value is nil. Settle has to be called after
// the last of them. It returns an error if the value is none of Value's.
func (w *Windows) Restore(k Key, value []byte) error {
	delete(w.held, k)
	if value == nil {
		return nil
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	w.held[k] = &window{
		event: event.Name(r.Event),
		end:   r.End,
		first: r.First,
		held:  &observation.Observation{Event: r.Event, Occurrences: r.Occurrences, SeenAt: r.SeenAt},
	}
	return nil
}

// Settle puts restored windows in order. What they hold has no owners yet. If the interval has
// become shorter, the windows end accordingly. Their ends do not move if the clock is set later.
func (w *Windows) Settle(now time.Time) {
	for _, open := range w.held {
		open.end = now.Add(min(open.end.Sub(now), w.interval))
		w.byEvent[open.event] = open
		w.order = append(w.order, open)
		w.noteFirst(open)
	}
	slices.SortFunc(w.order, func(a, b *window) int { return a.end.Compare(b.end) })
}

// Keys returns the keys of the windows that hold something. Windows may change while it is read.
func (w *Windows) Keys() iter.Seq[Key] { return maps.Keys(w.held) }

// Resolve hands what is held to resolve, which adds the owners, and returns it.
func (w *Windows) Resolve(resolve func([]observation.Observation)) []observation.Observation {
	held := make([]observation.Observation, 0, len(w.held))
	for _, open := range w.order {
		if open.held != nil {
			held = append(held, *open.held)
		}
	}
	resolve(held)
	next := 0
	for _, open := range w.order {
		if open.held != nil {
			open.held = &held[next]
			next++
		}
	}
	return held
}

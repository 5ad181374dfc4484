// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// Key names a window that holds something.
type Key = dirty.Key

// The fields of a saved window, which is a protobuf message. The owner chain is not among them: it
// is looked up again. JSON cannot hold each time that an Event may have, and protobuf can.
const (
	eventField       = 1 // in the form of Kubernetes' API
	occurrencesField = 2
	seenAtField      = 3 // in nanoseconds since 1970
	endField         = 4 // likewise
	firstField       = 5
)

func keyOf(name types.NamespacedName) Key {
	sum := event.Digest(name)
	return Key(sum[:len(Key{})])
}

// key returns the key of a window that holds something. Several records of an event may be
// deferred: each is a state of its own.
func (open *window) key() Key {
	if !open.deferred {
		return keyOf(open.event)
	}
	state := strconv.FormatInt(event.Count(open.held.Event), 10) + "/" + open.held.Event.ResourceVersion
	return keyOf(types.NamespacedName{Namespace: open.event.String(), Name: state})
}

func (w *Windows) noteHeld(open *window) {
	k := open.key()
	if _, known := w.held[k]; known {
		w.Note(k)
	} else {
		w.NoteNew(k)
	}
	w.held[k] = open
	w.bytes += weightOf(open.held)
}

func (w *Windows) noteReleased(ended *window) {
	delete(w.held, ended.key())
	w.bytes -= weightOf(ended.held)
	w.NoteGone(ended.key())
}

// Value is what a window holds in the form that Restore takes; nil means nothing.
func (w *Windows) Value(k Key) []byte {
	open, ok := w.held[k]
	if !ok {
		return nil
	}
	encoded, err := open.held.Event.Marshal()
	if err != nil {
		panic(err) // It has only strings, numbers and times, of which protobuf can hold each.
	}
	written := protowire.AppendTag(nil, eventField, protowire.BytesType)
	written = protowire.AppendBytes(written, encoded)
	for i, value := range [...]uint64{
		uint64(open.held.Occurrences), uint64(open.held.SeenAt.UnixNano()), uint64(open.end.UnixNano()), open.first,
	} {
		written = protowire.AppendTag(written, occurrencesField+protowire.Number(i), protowire.VarintType)
		written = protowire.AppendVarint(written, value)
	}
	return written
}

// Restore puts a window back, or takes it away if the value is nil. Settle has to be called after
// the last of them. It returns an error if the value is none of Value's.
func (w *Windows) Restore(k Key, value []byte) error {
	delete(w.held, k)
	if value == nil {
		return nil
	}
	restored, err := decode(value)
	if err != nil {
		return err
	}
	if restored.deferred = keyOf(restored.event) != k; restored.deferred {
		reached.State("records that did not fit their batch are restored")
	}
	if restored.key() != k {
		return fmt.Errorf("a window of the event %q has the key of another one", restored.event)
	}
	w.held[k] = restored
	return nil
}

func decode(value []byte) (*window, error) {
	ev, numbers := &corev1.Event{}, map[protowire.Number]uint64{}
	for len(value) > 0 {
		field, wire, tag := protowire.ConsumeTag(value)
		length := protowire.ConsumeFieldValue(field, wire, value[max(0, tag):])
		if tag < 0 || length < 0 {
			return nil, errors.New("a window is cut short")
		}
		content := value[tag : tag+length]
		value = value[tag+length:]
		switch {
		case wire == protowire.VarintType:
			numbers[field], _ = protowire.ConsumeVarint(content)
		case field == eventField && wire == protowire.BytesType:
			encoded, _ := protowire.ConsumeBytes(content)
			if err := ev.Unmarshal(encoded); err != nil {
				return nil, err
			}
		}
	}
	return &window{
		event: event.Name(ev),
		end:   time.Unix(0, int64(numbers[endField])),
		first: numbers[firstField],
		held: &observation.Observation{
			Event: ev, Occurrences: int64(numbers[occurrencesField]), SeenAt: time.Unix(0, int64(numbers[seenAtField])),
		},
	}, nil
}

// Settle puts restored windows in order. What they hold has no owners yet. If the interval has
// become shorter, the windows end accordingly. Their ends do not move if the clock is set later.
func (w *Windows) Settle(now time.Time) {
	for _, open := range w.held {
		if open.end.Before(now) {
			reached.State("a window ended while no process ran")
		} else if open.end.Sub(now) > w.interval {
			reached.State("a restored window ends early because the interval is shorter")
		}
		open.end = now.Add(min(open.end.Sub(now), w.interval))
		w.order = append(w.order, open)
		w.bytes += weightOf(open.held)
		w.noteFirst(open)
	}
	// Those that were deferred end together: they are delivered in the order in which they came. One
	// event may have several.
	slices.SortFunc(w.order, func(a, b *window) int {
		return cmp.Or(a.end.Compare(b.end), a.held.Compare(b.held), cmp.Compare(a.first, b.first))
	})
	for _, open := range w.order {
		if !open.deferred {
			w.byEvent[open.event] = open
		}
	}
}

// Keys returns the keys of the windows that hold something. Windows may change while it is read.
func (w *Windows) Keys() iter.Seq[Key] { return maps.Keys(w.held) }

// Held returns what windows hold, without its owners after Restore.
func (w *Windows) Held() []observation.Observation {
	held := make([]observation.Observation, 0, len(w.held))
	for _, open := range w.order {
		if open.held != nil {
			held = append(held, *open.held)
		}
	}
	return held
}

// Replace replaces what Held returned by the same observations with their owners.
func (w *Windows) Replace(held []observation.Observation) {
	next := 0
	for _, open := range w.order {
		if open.held != nil {
			w.bytes += weightOf(&held[next]) - weightOf(open.held)
			open.held = &held[next]
			next++
		}
	}
}

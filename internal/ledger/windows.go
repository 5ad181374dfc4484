// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// windows holds a window for each involved object, reason and type that had a record within the
// interval. A window keeps what comes meanwhile, and nobody accounts for it before the window ends. So
// what is noted knows nothing of it, but for the version of its stream, which is held back: a window
// needs no place in a checkpoint.
type windows struct {
	interval time.Duration
	byKey    map[windowKey]*window
	order    []*window // by end; all windows are equally long, so also by begin
	bytes    int64     // that they keep
}

// windowKey names an involved object, a reason, a type, and the namespace in which the events are: they
// come from one stream.
type windowKey [16]byte

type window struct {
	key  windowKey
	end  time.Time
	kept *kept // nil: nothing came since the record that opened the window
}

// kept is what came while a window was open: the first state of each event, the one with most occurrences,
// and its deletion. The first one shows whether it is a new event under an old name.
type kept struct {
	newest *corev1.Event
	states []keptState         // in the order in which their events first came
	index  map[eventObject]int // of the states
	first  uint64              // the lowest version that the first of them may have had; 0: it is not known
	place  *list.Element       // in keeping of the stream
}

type keptState struct {
	seen
	at        time.Time // when the first state of the event was seen
	isFirst   bool      // of the event
	deletion  *seen     // nil: the event was not deleted
	deletedAt time.Time
}

// eventObject is an event, which may have been created several times.
type eventObject struct {
	identity
	uid number
}

const (
	// maxKept bounds what windows keep, in bytes, and maxWindows how many there are. Beyond it, the
	// oldest end early: nothing is lost, but there may then be more than one record in an interval.
	maxKept    = 32 << 20
	maxWindows = 100_000
	// keptOverhead is the memory of what a window keeps in addition to the text of its event, and
	// eventOverhead that of each event.
	keptOverhead  = 1 << 10
	eventOverhead = 256
	// mostEnded is the maximum number of windows that end at once, even if they kept nothing: all
	// events of a list open theirs at about the same time. It is more than a batch opens.
	mostEnded = 2000
)

func newWindows(interval time.Duration) *windows {
	return &windows{interval: interval, byKey: map[windowKey]*window{}}
}

func windowKeyOf(ev *corev1.Event) windowKey {
	o := &ev.InvolvedObject
	var text []byte
	for _, part := range [...]string{ev.Namespace, o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason, ev.Type} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return windowKey(sum[:len(windowKey{})])
}

// open returns the open window of an event; nil: there is none. A window that ended, but was not taken
// by due, is still open if it keeps something.
func (w *windows) open(ev *corev1.Event, now time.Time) (k windowKey, open *window) {
	if w.interval == 0 {
		return k, nil
	}
	k = windowKeyOf(ev)
	if found := w.byKey[k]; found != nil && (found.kept != nil || found.end.After(now)) {
		return k, found
	}
	return k, nil
}

// begin opens a window for a record.
func (w *windows) begin(k windowKey, now time.Time) {
	if w.interval == 0 {
		return
	}
	opened := &window{key: k, end: now.Add(w.interval)}
	w.byKey[k] = opened
	w.order = append(w.order, opened)
}

// keep keeps a state of an event, if it has more occurrences than the one that it keeps.
func (w *windows) keep(open *window, s Seen, state seen, first uint64) {
	k := open.kept
	if k == nil {
		k = &kept{newest: s.Event, index: map[eventObject]int{}, first: first, place: state.from.keeping.PushBack(open)}
		open.kept = k
		w.bytes += k.weight()
	}
	w.bytes -= k.weight()
	object := eventObject{state.identity, state.uid}
	switch i, isKept := k.index[object]; {
	case isKept && state.count <= k.states[i].count: // Nothing is new in it.
	case isKept && !k.states[i].isFirst:
		k.states[i].seen, k.newest = state, s.Event
	default:
		k.index[object], k.newest = len(k.states), s.Event
		k.states = append(k.states, keptState{seen: state, at: s.At, isFirst: !isKept})
	}
	w.bytes += k.weight()
}

// delete keeps the deletion of an event if a window keeps a state of it. It reports whether one does.
func (w *windows) delete(ev *corev1.Event, last seen, now time.Time) bool {
	open := w.byKey[windowKeyOf(ev)]
	if open == nil || open.kept == nil {
		return false
	}
	i, isKept := open.kept.index[eventObject{last.identity, last.uid}]
	if isKept {
		open.kept.states[i].deletion, open.kept.states[i].deletedAt = &last, now
	}
	return isKept
}

// release takes from a window what it keeps; nil: nothing.
func (w *windows) release(open *window) *kept {
	released := open.kept
	if released != nil {
		w.bytes -= released.weight()
		released.states[0].from.keeping.Remove(released.place)
		open.kept = nil
	}
	return released
}

func (w *windows) isFull() bool { return w.bytes > maxKept || len(w.order) > maxWindows }

// due returns the next window to end; nil: none is due.
func (w *windows) due(now time.Time) *window {
	if len(w.order) == 0 || w.order[0].end.After(now) && !w.isFull() {
		return nil
	}
	return w.order[0]
}

// close forgets the oldest window. Another one may have been opened since it ended.
func (w *windows) close(ended *window) {
	w.order[0] = nil
	w.order = w.order[1:]
	if w.byKey[ended.key] == ended {
		delete(w.byKey, ended.key)
	}
}

// nextEnd returns the time at which the next window ends. ok is false if none is open.
func (w *windows) nextEnd() (end time.Time, ok bool) {
	switch {
	case len(w.order) == 0:
		return time.Time{}, false
	case w.isFull():
		return time.Time{}, true
	}
	return w.order[0].end, true
}

func (k *kept) weight() int64 {
	return keptOverhead + int64(k.newest.Size()) + eventOverhead*int64(len(k.states))
}

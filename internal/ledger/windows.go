// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// windows holds a window for each involved object, reason and type that had a record within the
// interval. What comes meanwhile is summed into the next record. It is not noted as delivered before
// that: its events stay as they were in what is noted, and the versions of their streams are held
// back. So a window needs no place in a checkpoint.
type windows struct {
	interval time.Duration
	byKey    map[windowKey]*window
	order    []*window // by end; all windows are equally long, so also by begin
	holding  map[*window]bool
	bytes    int64 // that they hold
}

// windowKey names an involved object, a reason and a type.
type windowKey [16]byte

type window struct {
	key    windowKey
	end    time.Time
	held   *observation.Observation // nil: nothing came since the record that opened the window
	events []identity               // whose occurrences are in what is held
	// first has, for each stream of what is held, the resource version of the first; 0: it is not known.
	first map[string]uint64
}

const (
	// maxHeld bounds what windows hold, in bytes. Beyond it, those that end first release what they
	// hold early: nothing is lost, but there may then be more than one record in an interval.
	maxHeld = 32 << 20
	// heldOverhead is the memory of what a window holds in addition to the text of its event.
	heldOverhead = 1 << 10
	// mostEnded is the maximum number of windows that end at once, even if they held nothing: all
	// events of a list open theirs at about the same time. It is more than a batch opens.
	mostEnded = 2000
)

func newWindows(interval time.Duration) *windows {
	return &windows{interval: interval, byKey: map[windowKey]*window{}, holding: map[*window]bool{}}
}

func windowKeyOf(ev *corev1.Event) windowKey {
	o := &ev.InvolvedObject
	var text []byte
	for _, part := range [...]string{o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason, ev.Type} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return windowKey(sum[:len(windowKey{})])
}

// open returns the open window of an event; nil: there is none. A window that ended, but was not taken
// by due, is still open if it holds something.
func (w *windows) open(ev *corev1.Event, now time.Time) (k windowKey, open *window) {
	if w.interval == 0 {
		return k, nil
	}
	k = windowKeyOf(ev)
	if found := w.byKey[k]; found != nil && (found.held != nil || found.end.After(now)) {
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

// hold sums: the newest state of the event, seen when the first of the held ones was.
func (w *windows) hold(open *window, stream string, o observation.Observation) {
	if open.held == nil {
		open.first = map[string]uint64{}
		w.holding[open] = true
	} else {
		o.Occurrences += open.held.Occurrences
		o.SeenAt = open.held.SeenAt
		w.bytes -= weightOf(open.held)
	}
	if _, isHeld := open.first[stream]; !isHeld {
		open.first[stream] = cmp.Or(o.LowestVersion, event.ResourceVersion(o.Event))
	}
	open.held = &o
	w.bytes += weightOf(open.held)
}

// release takes from a window what it holds.
func (w *windows) release(open *window) (record observation.Observation, events []identity) {
	record, events = *open.held, open.events
	w.bytes -= weightOf(open.held)
	delete(w.holding, open)
	open.held, open.events, open.first = nil, nil, nil
	return record, events
}

// due ends windows whose time has come, until n records are released or mostEnded windows have ended.
// A window that held something gives a record, which opens the next one.
func (w *windows) due(now time.Time, n int, take func(*window)) {
	released, ended := 0, 0
	var again []windowKey
	for ; ended < min(len(w.order), mostEnded) && released < n && !w.order[ended].end.After(now); ended++ {
		open := w.order[ended]
		w.order[ended] = nil
		w.close(open)
		if open.held != nil {
			take(open)
			again = append(again, open.key)
			released++
		}
	}
	w.order = w.order[ended:]
	for _, open := range w.order { // They stay open.
		if w.bytes <= maxHeld || released >= n {
			break
		}
		if open.held != nil {
			take(open)
			released++
		}
	}
	for _, k := range again {
		w.begin(k, now)
	}
}

// flush ends windows until n records are released; none is left once it releases fewer.
func (w *windows) flush(n int, take func(*window)) {
	for released := 0; len(w.order) > 0 && released < n; {
		open := w.order[0]
		w.order = w.order[1:]
		w.close(open)
		if open.held != nil {
			take(open)
			released++
		}
	}
}

// close forgets a window, unless another one was opened since it ended.
func (w *windows) close(ended *window) {
	if w.byKey[ended.key] == ended {
		delete(w.byKey, ended.key)
	}
}

// nextEnd returns the time at which the next window ends or releases what it holds. ok is false if
// none is open.
func (w *windows) nextEnd() (end time.Time, ok bool) {
	switch {
	case len(w.order) == 0:
		return time.Time{}, false
	case w.bytes > maxHeld:
		return time.Time{}, true
	}
	return w.order[0].end, true
}

// oldest returns, by stream, the lowest version of the first that a window holds.
func (w *windows) oldest() map[string]uint64 {
	if len(w.holding) == 0 {
		return nil
	}
	oldest := map[string]uint64{}
	for open := range w.holding {
		for stream, first := range open.first {
			if known, ok := oldest[stream]; first > 0 && (!ok || first < known) {
				oldest[stream] = first
			}
		}
	}
	return oldest
}

// releaseEarly takes from the windows of a stream what they hold. They stay open.
func (w *windows) releaseEarly(stream string, take func(*window)) {
	for _, open := range w.order {
		if _, isHeld := open.first[stream]; isHeld {
			take(open)
		}
	}
}

func weightOf(held *observation.Observation) int64 { return heldOverhead + int64(held.Event.Size()) }

// SPDX-License-Identifier: Apache-2.0

// Package dedup holds back the repeats of an event, so that there is at most one log record for
// each event and interval. The occurrences that it holds back are summed into the next record.
package dedup

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Windows holds a window for each event that had a record within the interval. It is not safe for
// concurrent use.
type Windows struct {
	dirty.Set // of those that have changed what they hold

	interval time.Duration
	streamOf func(namespace string) (stream string)
	byEvent  map[types.NamespacedName]*window
	order    []*window // by end; all windows are equally long, so also by begin

	held   map[Key]*window      // those that hold something
	bytes  int64                // that they hold
	oldest map[string]*versions // of them, by stream, those whose first version is known
}

type window struct {
	event types.NamespacedName
	end   time.Time
	// deferred reports whether it holds a record that did not fit its batch. It is no window of its
	// event.
	deferred bool
	held     *observation.Observation // nil: nothing came since the record that opened the window
	// first is the resource version of the first that is held; 0: nothing is held since the
	// cluster's versions went back.
	first uint64
	place int // in the stream's versions, while first is known
}

const (
	// maxBytes bounds what windows hold. Beyond it, those that end first release what they hold
	// early: nothing is lost, but an event may then have more than one record in an interval.
	maxBytes = 32 << 20
	// overhead is the memory of what a window holds in addition to the text of its event.
	overhead = 1 << 10
	// overheadOfPair is the memory of a tag, label or annotation in addition to its texts.
	overheadOfPair = 32
)

// mostEnded is how many windows end at once, also if they held nothing: all events of a listing
// open theirs at about the same time. It is more than a batch opens.
const mostEnded = 2000

// New makes windows of the given length. With 0, nothing is held back. streamOf returns the stream
// that has the events of a namespace.
func New(interval time.Duration, streamOf func(namespace string) string) *Windows {
	return &Windows{
		interval: interval,
		streamOf: streamOf,
		byEvent:  map[types.NamespacedName]*window{},
		held:     map[Key]*window{},
		oldest:   map[string]*versions{},
	}
}

// Admit returns the observations to record now: of each event the first one outside a window. It
// holds the rest. Callers must have taken what is Due before.
func (w *Windows) Admit(observations []observation.Observation, now time.Time) []observation.Observation {
	if w.interval == 0 && len(w.byEvent) == 0 {
		return observations
	}
	var admitted []observation.Observation
	for i := range observations {
		o := &observations[i]
		name := event.Name(o.Event)
		// A window that ended without having held anything may not be removed yet.
		if open, ok := w.byEvent[name]; ok && (open.held != nil || open.end.After(now)) {
			w.hold(open, o)
			continue
		}
		w.open(name, now)
		admitted = append(admitted, *o)
	}
	return admitted
}

// Due ends windows whose time has come, until it has n records or has ended mostEnded windows. A
// window that held something gives a record, which opens the next one.
func (w *Windows) Due(now time.Time, n int) (records []observation.Observation) {
	ended := 0
	var again []types.NamespacedName
	for ; ended < min(len(w.order), mostEnded) && len(records) < n && !w.order[ended].end.After(now); ended++ {
		window := w.order[ended]
		w.order[ended] = nil
		w.close(window)
		if window.held == nil {
			continue
		}
		records = append(records, w.release(window))
		if !window.deferred {
			again = append(again, window.event)
		}
	}
	w.order = w.order[ended:]
	records = append(records, w.early(n-len(records))...)
	for _, name := range again {
		w.open(name, now)
	}
	return records
}

// early takes up to n records from windows that hold too much. They stay open.
func (w *Windows) early(n int) (records []observation.Observation) {
	for _, open := range w.order {
		if w.bytes <= maxBytes || len(records) >= n {
			break
		}
		if open.held != nil {
			records = append(records, w.release(open))
		}
	}
	return records
}

// Defer holds records that do not fit their batch. They are due at once, before everything else.
func (w *Windows) Defer(records []observation.Observation, now time.Time) {
	deferred := make([]*window, len(records), len(records)+len(w.order))
	for i := range records {
		open := &window{event: event.Name(records[i].Event), end: now, deferred: true}
		w.hold(open, &records[i])
		deferred[i] = open
	}
	w.order = append(deferred, w.order...)
}

// HasDeferred reports whether records wait that did not fit their batch.
func (w *Windows) HasDeferred() bool { return len(w.order) > 0 && w.order[0].deferred }

// release takes from a window what it holds.
func (w *Windows) release(open *window) observation.Observation {
	held := *open.held
	held.LowestVersion = open.first // If it is held again, it still holds the position back.
	w.forgetFirst(open)
	w.noteReleased(open)
	open.held = nil
	return held
}

// close forgets a window, unless the event has opened another one since it ended.
func (w *Windows) close(ended *window) {
	if w.byEvent[ended.event] == ended {
		delete(w.byEvent, ended.event)
	}
}

func (w *Windows) open(event types.NamespacedName, now time.Time) {
	if w.interval == 0 {
		return
	}
	opened := &window{event: event, end: now.Add(w.interval)}
	w.byEvent[event] = opened
	w.order = append(w.order, opened)
}

// hold sums: the newest state of the event, seen when the first of the held ones was.
func (w *Windows) hold(open *window, o *observation.Observation) {
	merged := *o
	if open.held != nil {
		merged.Occurrences += open.held.Occurrences
		merged.SeenAt = open.held.SeenAt
		w.bytes -= weightOf(open.held)
	}
	open.held = &merged
	if open.first == 0 {
		open.first = cmp.Or(o.LowestVersion, event.ResourceVersion(o.Event))
		w.noteFirst(open)
	}
	w.noteHeld(open)
}

// Flush ends windows until it has n records; none is left once it returns fewer.
func (w *Windows) Flush(n int) (records []observation.Observation) {
	for len(w.order) > 0 && len(records) < n {
		open := w.order[0]
		w.order = w.order[1:]
		w.close(open)
		if open.held != nil {
			records = append(records, w.release(open))
		}
	}
	return records
}

// weightOf returns how many bytes of memory an observation takes that is held. Observations may
// share texts and objects, but anybody can cause some that do not: it counts all of them.
func weightOf(held *observation.Observation) int64 {
	size := overhead + held.Event.Size()
	for _, tags := range [...][]extract.Tag{held.Tags.Resource, held.Tags.Record, held.Tags.Metric} {
		for _, tag := range tags {
			size += overheadOfPair + len(tag.Name) + len(tag.Value)
		}
	}
	for _, objects := range [...][]*resolver.Object{held.Chain.Objects, held.TagSources} {
		for _, object := range objects {
			size += sizeOf(object.Labels) + sizeOf(object.Annotations)
		}
	}
	return int64(size)
}

func sizeOf(pairs map[string]string) (size int) {
	for key, value := range pairs {
		size += overheadOfPair + len(key) + len(value)
	}
	return size
}

// NextEnd is when the next window ends or releases what it holds; ok is false when none is open.
func (w *Windows) NextEnd() (end time.Time, ok bool) {
	switch {
	case len(w.order) == 0:
		return time.Time{}, false
	case w.bytes > maxBytes:
		return time.Time{}, true
	}
	return w.order[0].end, true
}

// ForgetVersions forgets the resource versions of what is held, since the cluster's have gone back.
func (w *Windows) ForgetVersions() {
	for k, open := range w.held {
		reached.State("a window holds an event over a restore")
		w.forgetFirst(open)
		w.Note(k)
	}
}

// Oldest returns the lowest resource version of the first observations that windows of the stream's
// events hold; 0: nothing is held of which it is known.
func (w *Windows) Oldest(stream string) uint64 {
	v, ok := w.oldest[stream]
	if !ok {
		return 0
	}
	return (*v)[0].first
}

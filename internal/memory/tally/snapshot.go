// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// record is a series in the form that is saved.
type record struct {
	Values      [len(names)]string `json:"values"` // by names
	Tags        []extract.Tag      `json:"tags,omitempty"`
	Start       int64              `json:"start"` // in nanoseconds since 1970: JSON cannot hold each time
	Moved       int64              `json:"moved"` // likewise
	Occurrences int64              `json:"occurrences"`
	// New is whether the point of value 0 is still to be written.
	New bool `json:"new,omitempty"`
	// Cluster is what its points name; nil: it has none, or this was not saved.
	Cluster *semconv.Cluster `json:"cluster,omitempty"`
	// Reference is the name of a workload that is known by reference only, and where it counts as one.
	Reference *reference `json:"reference,omitempty"`
}

type reference struct {
	Namespace, Group, Kind, Name string
}

// referenceOf returns the reference of a workload; nil: it was read, or has no name.
func referenceOf(w workload) *reference {
	if w.place == (place{}) {
		return nil
	}
	return &reference{w.place.namespace, w.place.kind.Group, w.place.kind.Kind, w.name}
}

// workload returns what references count.
func (r *reference) workload() workload {
	if r == nil {
		return workload{}
	}
	return workload{name: r.Name, place: place{r.Namespace, schema.GroupKind{Group: r.Group, Kind: r.Kind}}}
}

// Track makes the tally note from now on which series change, and report only sums that are saved.
func (t *Tally) Track() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed.Track()
}

// Changed is how many series have changed since the last TakeChanged.
func (t *Tally) Changed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed.Changed()
}

// TakeEmitted returns the time of the last points, to be saved with what TakeChanged returned. After
// End, it is a time that the last points are not after: they may follow each other by 1 ms.
func (t *Tally) TakeEmitted() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends.IsZero() {
		return t.emitted
	}
	return later(t.emitted, t.ends.Add(10*time.Millisecond))
}

// RestoreEmitted lets all points come after those of earlier processes, whatever the clock shows.
func (t *Tally) RestoreEmitted(last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emitted, t.begin = last, later(t.begin, last.Add(time.Millisecond))
}

// TakeChanged returns the series that have changed since it was last called. Until Saved is called,
// the sums that Value returns now are not reported.
func (t *Tally) TakeChanged() []Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.changed.TakeChanged()
	t.saving = nil // A process whose storage was taken over has abandoned its last write.
	for _, k := range keys {
		if s := t.series[k]; s != nil {
			s.saving, s.zero.saving = s.occurrences, s.zero.written
			t.saving = append(t.saving, s)
		}
	}
	return keys
}

// Saved notes that the sums of the series are saved that TakeChanged returned.
func (t *Tally) Saved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.saving {
		s.durable, s.zero.saved = s.saving, s.zero.saving
	}
	t.saving = nil
}

// Keys returns the keys of the series that there are now.
func (t *Tally) Keys() iter.Seq[Key] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(t.series)))
}

// Value is a series in the form that Restore takes; nil means that there is none.
func (t *Tally) Value(k Key) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.series[k]
	if s == nil {
		return nil
	}
	written, _ := json.Marshal(record{
		Values: s.values, Tags: s.tags, Start: s.start.UnixNano(), Moved: s.moved.UnixNano(), Occurrences: s.occurrences,
		New: !s.zero.written, Cluster: s.cluster, Reference: referenceOf(s.workload),
	})
	return written
}

// Restore puts a series back, or takes it away if the value is nil. It returns an error if the
// value is none of Value's. The key may be another one than with today's settings.
func (t *Tally) Restore(k Key, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.series[k]; old != nil {
		t.removeLocked(old)
	}
	if value == nil {
		return nil
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	if r.Occurrences <= 0 {
		return fmt.Errorf("a series has %d occurrences", r.Occurrences)
	}
	s := &series{key: k, workload: r.Reference.workload(), identity: identity{r.Values, r.Tags}, point: t.newPoint(time.Unix(0, r.Start))}
	s.moved, s.occurrences, s.durable, s.cluster = time.Unix(0, r.Moved), r.Occurrences, r.Occurrences, r.Cluster
	s.zero = t.restoredZeroLocked(&r)
	if s.zero.written && !s.zero.saved {
		t.changed.Note(k)
	}
	t.putLocked(s)
	return nil
}

// restoredZeroLocked returns what became of the 0 of a series that is restored. One that is owed, and
// that the settings do not ask for any more, must never come: a later process with other settings
// would emit it after the values of this one.
func (t *Tally) restoredZeroLocked(r *record) zero {
	switch {
	case !r.New:
		return noZero
	case t.config.InitialZero:
		return zero{}
	}
	reached.State("a series is restored without the zero that it owes")
	return zero{written: true}
}

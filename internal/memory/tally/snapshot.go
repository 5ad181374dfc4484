// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Key names a series.
type Key [16]byte

// saved is what a tally knows of its snapshots. A nil *saved notes nothing.
type saved struct {
	series  map[Key]*savedSeries
	keys    map[*point]Key
	changed dirty.Set[Key]
	saving  []*point // those that TakeChanged returned last, until Saved
}

type savedSeries struct {
	point    *point
	resource *resource // nil: the overflow series
	key      pointKey
}

// record is a series in the form that is saved.
type record struct {
	Overflow    bool             `json:"overflow,omitempty"`
	Namespace   string           `json:"namespace,omitempty"`
	Workload    *resolver.Object `json:"workload,omitempty"`
	Tags        []extract.Tag    `json:"tags,omitempty"`
	Reason      string           `json:"reason,omitempty"`
	Type        string           `json:"type,omitempty"`
	ObjectKind  string           `json:"objectKind,omitempty"`
	Start       time.Time        `json:"start"`
	Moved       time.Time        `json:"moved"`
	Occurrences int64            `json:"occurrences"`
	// New is whether the point of value 0 was not written yet.
	New bool `json:"new,omitempty"`
}

// add adds a new series.
func (s *saved) add(p *point, r *resource, key pointKey) {
	if s != nil {
		s.know(hash(r, key), p, r, key)
	}
}

// know adds a series that is saved under a key. The checkpoint may have been written with other
// settings, and then under another key than now.
func (s *saved) know(k Key, p *point, r *resource, key pointKey) {
	s.series[k] = &savedSeries{p, r, key}
	s.keys[p] = k
}

func (s *saved) note(p *point) {
	if s != nil {
		s.changed.Note(s.keys[p])
	}
}

func (s *saved) drop(p *point) {
	if s == nil {
		return
	}
	s.note(p)
	delete(s.series, s.keys[p])
	delete(s.keys, p)
}

// hash names a series by everything that tells it from others.
func hash(r *resource, key pointKey) (k Key) {
	identity := record{Overflow: r == nil, Reason: key.reason, Type: key.eventType, ObjectKind: key.objectKind}
	if r != nil && r.visible != "" {
		identity.Namespace = r.visible
	} else if r != nil {
		identity.Namespace, identity.Tags = r.namespace, r.tags
		if r.workload != nil {
			identity.Workload = identityOf(r.workload)
		}
	}
	written, _ := json.Marshal(identity)
	sum := sha256.Sum256(written)
	copy(k[:], sum[:])
	return k
}

// identityOf leaves out what else an object carries.
func identityOf(o *resolver.Object) *resolver.Object {
	return &resolver.Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

// Track makes the tally note from now on which series change, and report only sums that are saved.
func (t *Tally) Track() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = &saved{series: map[Key]*savedSeries{}, keys: map[*point]Key{}}
	t.saved.changed.Track()
}

// Changed is how many series have changed since the last TakeChanged.
func (t *Tally) Changed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved.changed.Len()
}

// TakeChanged returns the series that have changed since it was last called. Until Saved is called,
// the sums that Value returns now are not reported.
func (t *Tally) TakeChanged() []Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.saved.changed.Take()
	for _, k := range keys {
		if s, ok := t.saved.series[k]; ok {
			s.point.saving, s.point.zero.saving = s.point.occurrences, s.point.zero.written
			t.saved.saving = append(t.saved.saving, s.point)
		}
	}
	return keys
}

// Saved notes that the sums of the series are saved that TakeChanged returned.
func (t *Tally) Saved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.saved.saving {
		p.durable, p.zero.saved = p.saving, p.zero.saving
	}
	t.saved.saving = nil
}

// Keys returns the keys of all series.
func (t *Tally) Keys() []Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.saved.series))
}

// Len is the number of series, the overflow series included.
func (t *Tally) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.saved.series)
}

// Value is a series in the form that Restore takes; nil means that there is none.
func (t *Tally) Value(k Key) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.saved.series[k]
	if !ok {
		return nil
	}
	r := record{
		Overflow: s.resource == nil, Reason: s.key.reason, Type: s.key.eventType, ObjectKind: s.key.objectKind,
		Start: s.point.start, Moved: s.point.moved, Occurrences: s.point.occurrences,
		New: !s.point.zero.written,
	}
	if s.resource != nil {
		r.Namespace, r.Tags = s.resource.namespace, s.resource.tags
		if s.resource.workload != nil {
			r.Workload = identityOf(s.resource.workload)
		}
	}
	written, _ := json.Marshal(r)
	return written
}

// Restore puts a series back, or takes it away if the value is nil. It returns an error if the
// value is none of Value's.
func (t *Tally) Restore(k Key, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.saved.series[k]; ok {
		t.removeLocked(old)
	}
	if value == nil {
		return nil
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	p := &point{start: r.Start, moved: r.Moved, occurrences: r.Occurrences, durable: r.Occurrences, zero: noZero}
	if r.New && t.config.InitialZero {
		p.zero = zero{}
	}
	if r.Overflow {
		t.overflow = p
		t.saved.know(k, p, nil, pointKey{})
		return nil
	}
	key := t.resourceKeyOf(r.Namespace, r.Workload, r.Tags)
	found, ok := t.resources[key]
	if !ok {
		found = &resource{namespace: r.Namespace, workload: r.Workload, tags: r.Tags, visible: key.visible, points: map[pointKey]*point{}}
		t.resources[key] = found
	}
	pk := pointKey{r.Reason, r.Type, r.ObjectKind}
	found.points[pk] = p
	t.series++
	t.saved.know(k, p, found, pk)
	return nil
}

// removeLocked takes a series away that a newer value replaces.
func (t *Tally) removeLocked(s *savedSeries) {
	delete(t.saved.series, t.saved.keys[s.point])
	delete(t.saved.keys, s.point)
	if s.resource == nil {
		t.overflow = nil
		return
	}
	delete(s.resource.points, s.key)
	t.series--
}

// Reset drops all sums: they start at 0 now.
func (t *Tally) Reset(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil {
		for _, s := range t.saved.series {
			t.saved.note(s.point)
		}
		t.saved.series, t.saved.keys, t.saved.saving = map[Key]*savedSeries{}, map[*point]Key{}, nil
	}
	t.resources = map[resourceKey]*resource{}
	t.series, t.overflow, t.begin = 0, nil, now.Round(0)
}

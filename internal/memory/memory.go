// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dedup"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/objects"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Config is what a memory depends on.
type Config struct {
	Coverage      Coverage
	FromBeginning bool // whether events that exist at the first start are new
	DedupInterval time.Duration
	Counts        bool // whether occurrences are counted
	Tally         tally.Config
	// Identity has the settings that form a series' identity, in any form. With others than the
	// checkpoint's, sums start at 0.
	Identity string
	// Saved is whether the memory is saved: it then notes what changes.
	Saved bool
	// Objects is how many objects of chains are saved at most; 0: none.
	Objects int
	// Start is where the receiver starts without a checkpoint; nil: nowhere in particular.
	Start Position
}

// Position reports what was delivered before the receiver started.
type Position interface {
	// Of returns the version up to which the events of a stream were delivered; ok is false if
	// nothing is known of the stream.
	Of(stream string) (version uint64, ok bool)
	// Reached reports whether an event of the namespace was delivered.
	Reached(namespace string, version uint64) bool
}

// Memory is what the receiver remembers in one session. It is not safe for concurrent use, except
// for Tally.
type Memory struct {
	config  Config
	ledger  *ledger.Ledger
	streams *streams
	Windows *dedup.Windows
	Tally   *tally.Tally
	objects *objects.Objects
	parts   []part // the five above
	cluster string
	// unreadable has the entries of the checkpoint that cannot be read, and that the next one has
	// not.
	unreadable map[checkpoint.Key]error
}

// New makes a memory that remembers nothing.
func New(config Config, now time.Time) *Memory {
	m := &Memory{
		config:  config,
		ledger:  ledger.New(),
		streams: newStreams(config.Coverage),
		Windows: dedup.New(config.DedupInterval, config.Coverage.streamOf),
		Tally:   tally.New(config.Tally, now),
		objects: objects.New(config.Objects),

		unreadable: map[checkpoint.Key]error{},
	}
	m.parts = []part{
		{streamKind, m.streams}, {ledgerKind, m.ledger}, {windowKind, m.Windows}, {seriesKind, m.Tally}, {objectKind, m.objects},
	}
	if config.Saved {
		for _, p := range m.parts {
			p.Track()
		}
	}
	return m
}

// BeginList begins a listing of a stream.
func (m *Memory) BeginList(stream string) { m.ledger.BeginList(stream) }

// EndList ends it: events of the stream that it did not have are deleted.
func (m *Memory) EndList(stream string, now time.Time) {
	m.ledger.EndList(stream, now)
	if m.streams.listed(stream) {
		m.ledger.EndPast(now)
	}
}

// List accounts for an event of a listing and returns how many of its occurrences are new. If the
// coverage before included the event, all are new that are not remembered. Any other event existed
// before the receiver covered it.
func (m *Memory) List(stream string, ev *corev1.Event) int64 {
	if m.streams.covers(ev) || m.isNew(ev) {
		return m.ledger.Observe(stream, ev)
	}
	return m.ledger.Remember(stream, ev)
}

// isNew reports whether an event that no coverage included counts with all its occurrences.
func (m *Memory) isNew(ev *corev1.Event) bool {
	if start := m.config.Start; start != nil {
		if _, known := start.Of(ev.Namespace); known {
			reached.State("a list has what happened after the last leader's position")
			return !start.Reached(ev.Namespace, event.ResourceVersion(ev))
		}
	}
	return m.config.FromBeginning && !m.streams.watched(ev.Namespace)
}

// Existing notes an event as it was at the position where the receiver starts.
func (m *Memory) Existing(stream string, ev *corev1.Event) { m.ledger.Remember(stream, ev) }

// Change accounts for a change of an event and returns how many of its occurrences are new.
func (m *Memory) Change(stream string, ev *corev1.Event) int64 { return m.ledger.Observe(stream, ev) }

// Delete notes that an event is deleted. Its count stays known for ledger.RememberDeleted.
func (m *Memory) Delete(stream string, ev *corev1.Event, now time.Time) {
	m.ledger.Delete(stream, ev, now)
}

// ForgetVersions forgets all resource versions, since the cluster's have gone back, and no counts.
// Each stream then lists.
func (m *Memory) ForgetVersions() {
	m.ledger.ForgetVersions()
	m.streams.forgetVersions()
	m.Windows.ForgetVersions()
	m.config.Start = nil
}

// TakeBack forgets observations that nobody delivers. If a list has their events, they are new again.
func (m *Memory) TakeBack(observations []observation.Observation) {
	for i := range observations {
		m.ledger.TakeBack(observations[i].Event, observations[i].Occurrences)
	}
}

// Forget drops some of what has been remembered for long enough. It reports whether there may be
// more.
func (m *Memory) Forget(now time.Time) (more bool) { return m.ledger.Forget(now) }

// Advance notes that a stream resumes at a version, once what came before it is dealt with.
func (m *Memory) Advance(stream, version string) { m.streams.advance(stream, version) }

// Reached returns the version up to which the changes of a stream are dealt with; 0: it is not
// known.
func (m *Memory) Reached(stream string) uint64 { return m.streams.reached(stream) }

// Resume returns where a stream resumes; empty: it begins with a listing.
func (m *Memory) Resume(stream string) string { return m.streams.resume(stream) }

// DeliveredUpTo returns, for each stream that has been listed, the version up to which its events
// were delivered. An event that is held back holds it back.
func (m *Memory) DeliveredUpTo() map[string]uint64 {
	delivered := m.streams.versions()
	for stream, reached := range delivered {
		if oldest := m.Windows.Oldest(stream); oldest > 0 {
			delivered[stream] = min(reached, oldest-1)
		}
	}
	return delivered
}

// Count counts the occurrences of observations that are saved or delivered.
func (m *Memory) Count(observations []observation.Observation, now time.Time) {
	if m.config.Counts {
		m.Tally.Add(observations, now)
	}
}

// Use notes the objects that the attributes of records come from. Callers call it only if the
// memory is saved.
func (m *Memory) Use(observations []observation.Observation) {
	for i := range observations {
		m.objects.Use(observations[i].Chain.Objects)
		m.objects.Use(observations[i].TagSources)
	}
}

// Objects returns the objects of the chains, the one that was used last at the end.
func (m *Memory) Objects() []*resolver.Object { return m.objects.All() }

// Len returns how many events are remembered.
func (m *Memory) Len() int { return m.ledger.Len() }

// EndWindows ends all windows and returns what they held, which was not delivered.
func (m *Memory) EndWindows() []observation.Observation { return m.Windows.Flush(math.MaxInt) }

// state is the part of a checkpoint that each write has.
type state struct {
	Cluster  string `json:"cluster,omitempty"`  // UID; empty: not known
	Identity string `json:"identity,omitempty"` // empty: not known, and not changed
	// Emitted is the time of the metric's last points, in nanoseconds since 1970; 0: there are none.
	// An emission alone needs no write: it may be that of an earlier one if the receiver was idle.
	Emitted int64 `json:"emitted,omitempty"`
}

// The first byte of an entry's key is its kind.
const (
	ledgerKind = 'e'
	streamKind = 'p'
	windowKind = 'w'
	seriesKind = 's'
	objectKind = 'o'
)

// entries are what a part of the memory remembers, in the form that a checkpoint has.
type entries interface {
	// Track notes from now on which entries change.
	Track()
	// Changed is how many entries have changed since the last TakeChanged.
	Changed() int
	// TakeChanged returns the entries that have changed since it was last called.
	TakeChanged() []dirty.Key
	// Keys returns the keys of all entries, as checkpoint.Source does.
	Keys() iter.Seq[dirty.Key]
	// Value is an entry in the form that Restore takes; nil means that there is none.
	Value(dirty.Key) []byte
	// Restore puts an entry back, or takes it away if the value is nil.
	Restore(key dirty.Key, value []byte) error
}

// part is a part of the memory, with the first byte of its entries' keys.
type part struct {
	kind byte
	entries
}

// part returns the part that an entry belongs to; nil: there is none.
func (m *Memory) part(of checkpoint.Key) entries {
	for _, p := range m.parts {
		if p.kind == of[0] {
			return p.entries
		}
	}
	return nil
}

func keyOf(kind byte, of []byte) (k checkpoint.Key) {
	k[0] = kind
	copy(k[1:], of)
	return k
}

// Restore puts an entry of a checkpoint back, or takes it away if the value is nil. Callers call
// Settle after the last one. An entry that cannot be read is taken away; see Unreadable.
func (m *Memory) Restore(key checkpoint.Key, value []byte) error {
	delete(m.unreadable, key)
	err := m.restore(key, value)
	if err != nil {
		_ = m.restore(key, nil)
		m.unreadable[key] = err
	}
	return err
}

// Unreadable returns how many entries of the checkpoint could not be read, and why one of them
// could not.
func (m *Memory) Unreadable() (n int, example error) {
	for _, example = range m.unreadable {
		break
	}
	return len(m.unreadable), example
}

func (m *Memory) restore(key checkpoint.Key, value []byte) error {
	if part := m.part(key); part != nil {
		return part.Restore(dirty.Key(key[1:]), value)
	}
	if value == nil {
		return nil // It was removed, since it could not be read.
	}
	return fmt.Errorf("there is no kind of entry %q", key[0])
}

// Settle makes what was restored ready. The state is what Content returned with it. If the state
// cannot be read, this is an error, and the memory is ready without it.
func (m *Memory) Settle(saved json.RawMessage, now time.Time) error {
	var s state
	err := json.Unmarshal(saved, &s)
	if err != nil {
		s, err = state{}, fmt.Errorf("%w: its state: %w", checkpoint.ErrCorrupt, err)
	}
	m.cluster = s.Cluster
	m.Tally.RestoreEmitted(time.Unix(0, s.Emitted))
	m.ledger.Settle(m.streams.scopes(), m.config.Coverage.Namespaces)
	m.Windows.Settle(now)
	if s.Identity != "" && s.Identity != m.config.Identity {
		m.Tally.Reset(now)
	}
	if m.streams.settle() {
		m.ledger.EndPast(now)
	}
	return err
}

// Cluster returns the UID of the cluster that is remembered; empty: it is not known.
func (m *Memory) Cluster() string { return m.cluster }

// SetCluster notes the UID of the cluster.
func (m *Memory) SetCluster(uid string) { m.cluster = uid }

// Unsaved returns how many entries have changed since Content was called.
func (m *Memory) Unsaved() int {
	n := len(m.unreadable)
	for _, p := range m.parts {
		n += p.Changed()
	}
	return n
}

// Content returns what has changed since it was last called, and which Saved acknowledges.
func (m *Memory) Content() checkpoint.Content {
	// The streams' entries name the ledger's numbers of streams.
	if m.streams.numbered != m.ledger.Streams() {
		m.streams.number(m.ledger.Scopes())
	}
	changed := slices.AppendSeq(make([]checkpoint.Key, 0, m.Unsaved()), maps.Keys(m.unreadable))
	clear(m.unreadable)
	for _, p := range m.parts {
		for _, k := range p.TakeChanged() {
			changed = append(changed, keyOf(p.kind, k[:]))
		}
	}
	s := state{Cluster: m.cluster, Identity: m.config.Identity}
	if emitted := m.Tally.TakeEmitted(); !emitted.IsZero() {
		s.Emitted = emitted.UnixNano()
	}
	written, _ := json.Marshal(s)
	return checkpoint.Content{State: written, Changed: changed, Source: m}
}

// Saved notes that the last Content is saved: the metric reports the sums as they were in it.
func (m *Memory) Saved() { m.Tally.Saved() }

// Value implements checkpoint.Source.
func (m *Memory) Value(key checkpoint.Key) []byte {
	if part := m.part(key); part != nil {
		return part.Value(dirty.Key(key[1:]))
	}
	return nil // It could not be read.
}

// Keys implements checkpoint.Source.
func (m *Memory) Keys() iter.Seq[checkpoint.Key] {
	return func(yield func(checkpoint.Key) bool) {
		for _, p := range m.parts {
			for k := range p.Keys() {
				if !yield(keyOf(p.kind, k[:])) {
					return
				}
			}
		}
	}
}

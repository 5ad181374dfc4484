// SPDX-License-Identifier: Apache-2.0

// Package tally sums occurrences for the metric k8s.event.occurrences, by workload, reason, type
// and kind.
package tally

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
)

// Config bounds a Tally.
type Config struct {
	MaxSeries int           // what goes beyond is summed in one overflow series, which does not count as one of these
	SeriesTTL time.Duration // a series that has not changed for this time is dropped
	// InitialZero is whether the first point of a series has the value 0, so that a query sees how
	// much the first occurrences add.
	InitialZero bool
	// Disabled has the attributes of points that are left out, and so do not distinguish series;
	// nil: none.
	Disabled semconv.Disabled
}

// Tally holds the cumulative sums. Its methods may be called concurrently.
type Tally struct {
	config   Config
	disabled [len(names)]bool // by names

	// mu guards everything below: the loop adds while the metrics are read on a timer.
	mu     sync.Mutex
	series map[Key]*series
	bytes  int // of the texts that tell them apart
	// begin is when the sums began. A new series starts after it.
	begin time.Time
	// ended has the times of the last points of series that were dropped, for SeriesTTL. A series
	// that begins again starts after them.
	ended map[Key]time.Time
	// references bounds the names of workloads that are known by reference only.
	references references
	usage      Usage // since TakeUsage
	// cluster is what Metrics was last called with. A series that was emitted under another name of
	// the cluster continues until the metrics pipeline has accepted its value.
	cluster *semconv.Cluster
	emitted time.Time // the time of the last points
	// ends is when End was called; zero: it was not. The last points have this time, so that it can
	// be saved before them.
	ends    time.Time
	changed dirty.Set
	saving  []*series // those that TakeChanged returned last, until Saved
	scratch []byte    // of keyLocked
}

// Key names a series by what tells it from others.
type Key = dirty.Key

// overflow is the key of the series that counts what goes beyond MaxSeries.
var overflow Key

// names are the attributes of points that tell the series of a cluster apart, in addition to tags.
// Checkpoints have their values in this order.
var names = [...]string{
	"k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name", "k8s.workload.uid",
	"k8s.event.reason", "k8s.event.type", "k8s.object.kind",
}

// The attributes of points that name the cluster.
const (
	clusterUID  = "k8s.cluster.uid"
	clusterName = "k8s.cluster.name"
)

// Attributes returns the attributes of points, apart from tags, which users can disable.
func Attributes() []string { return append([]string{clusterUID, clusterName}, names[:]...) }

// identity is what tells a series from others. It never changes.
type identity struct {
	values [len(names)]string // by names; empty: the series does not have it
	tags   []extract.Tag
}

type series struct {
	key      Key
	workload workload
	identity
	point
}

// point is the sum of a series.
type point struct {
	start, moved time.Time
	cluster      *semconv.Cluster // that its points name; nil: it has none yet
	occurrences  int64
	saving       int64 // of them, those that are being saved
	durable      int64 // of them, those that are saved
	written      int64 // the value that Metrics wrote last
	emitted      int64 // the value that the metrics pipeline accepted last
	zero         zero
	last         time.Time // the time of the last point
}

// zero is what became of the point of value 0 that comes before the first value. If the metrics
// pipeline rejects it, it is lost: one of several exporters may have got it, and another one may
// reject everything.
type zero struct {
	written bool // by Metrics, or it is owed, or it is never to be written
	saving  bool // that it was written is being saved
	saved   bool // that it was written is saved
	owed    bool // it comes together with the first value
}

// noZero is that of a series that needs none.
var noZero = zero{written: true, saved: true}

// New makes a tally whose sums start at 0 now.
func New(config Config, now time.Time) *Tally {
	t := &Tally{config: config}
	for i, name := range names {
		t.disabled[i] = config.Disabled[name]
	}
	t.Reset(now)
	return t
}

// Reset drops all sums: they start at 0 now, after the last points.
func (t *Tally) Reset(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.series {
		t.changed.Note(k)
	}
	t.series, t.ended, t.saving = map[Key]*series{}, map[Key]time.Time{}, nil
	t.references = references{}
	t.bytes, t.begin, t.ends = 0, later(now.Round(0), t.emitted.Add(time.Millisecond)), time.Time{}
}

// Add counts the occurrences of what was delivered.
func (t *Tally) Add(observations []observation.Observation, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range observations {
		o := &observations[i]
		s := t.seriesLocked(o)
		s.occurrences += o.Occurrences
		s.moved = now
		t.changed.Note(s.key)
	}
}

// Usage is how many series there are, and what has happened since TakeUsage was last called.
type Usage struct {
	Series     int // without the overflow series
	Overflowed int // observations that count in the overflow series
	Unnamed    int // observations without the name of their workload: see maxReferences
	// UnnamedKind and UnnamedNamespace are those of one of them.
	UnnamedKind, UnnamedNamespace string
}

// TakeUsage returns the usage.
func (t *Tally) TakeUsage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	usage := t.usage
	usage.Series = t.countLocked()
	t.usage = Usage{}
	return usage
}

// IsFull reports whether there are as many series as there may be.
func (t *Tally) IsFull() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countLocked() >= t.config.MaxSeries
}

func (t *Tally) countLocked() int {
	if t.series[overflow] != nil {
		return len(t.series) - 1
	}
	return len(t.series)
}

// meanBytes is how many bytes the texts of series may have on average. Usual ones have a few
// hundred, but anybody who may create Events chooses them.
const meanBytes = 2 << 10

func (t *Tally) seriesLocked(o *observation.Observation) *series {
	namespace := namespaceOf(o)
	w := workloadOf(o, namespace)
	if t.references.admit(&w) {
		t.usage.Unnamed++
		t.usage.UnnamedKind, t.usage.UnnamedNamespace = w.kind, namespace
	}
	id := t.identityOf(o, namespace, &w)
	key := t.keyLocked(&id)
	if t.series[key] == nil && (t.countLocked() >= t.config.MaxSeries || t.bytes >= t.config.MaxSeries*meanBytes) {
		id, key, w = identity{}, overflow, workload{}
		t.usage.Overflowed++
	}
	s := t.series[key]
	if s == nil {
		id.tags = slices.Clone(id.tags)
		s = &series{key: key, workload: w, identity: id, point: t.newPoint(t.startLocked(key, o.SeenAt))}
		t.putLocked(s)
	}
	return s
}

// startLocked returns when a series starts: when its first occurrence was seen, but not before the
// sums began, or before the last point of a former series with the same attributes.
func (t *Tally) startLocked(key Key, seen time.Time) time.Time {
	// Points have the wall clock's time, which may be set back. The monotonic clock is not.
	start := later(seen.Round(0), t.begin)
	if last, ended := t.ended[key]; ended {
		reached.State("a series that ended begins again")
		start = later(start, last.Add(time.Millisecond))
	}
	return start
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (t *Tally) newPoint(start time.Time) point {
	p := point{start: start, last: start} // The value comes later.
	if !t.config.InitialZero {
		p.zero = noZero
	}
	return p
}

func (t *Tally) putLocked(s *series) {
	t.series[s.key] = s
	t.bytes += s.size()
	t.references.begin(s.workload)
}

func (t *Tally) removeLocked(s *series) {
	delete(t.series, s.key)
	t.bytes -= s.size()
	t.references.end(s.workload)
}

// dropLocked removes a series that ends.
func (t *Tally) dropLocked(s *series) {
	t.removeLocked(s)
	t.ended[s.key] = s.last
	t.changed.Note(s.key)
}

// size returns how many bytes the texts have, which each point has in OTLP.
func (id *identity) size() (size int) {
	for _, value := range id.values {
		size += len(value)
	}
	for _, tag := range id.tags {
		size += len(tag.Name) + len(tag.Value)
	}
	return size
}

// namespaceOf returns the namespace of a series, which is that of the records.
func namespaceOf(o *observation.Observation) string {
	involved := o.Chain.Objects[0]
	if involved.GroupKind() == semconv.Namespace {
		return involved.Name
	}
	return involved.Namespace
}

// identityOf leaves disabled attributes empty.
func (t *Tally) identityOf(o *observation.Observation, namespace string, w *workload) identity {
	id, ev := identity{tags: o.Tags.Metric}, o.Event
	for i, value := range [len(names)]string{
		namespace, w.apiVersion, w.kind, w.name, w.uid,
		ev.Reason, ev.Type, ev.InvolvedObject.Kind,
	} {
		if !t.disabled[i] {
			id.values[i] = text.Value(value)
		}
	}
	return id
}

// keyLocked returns the key of a series. An annotation's value may hold any character, so that texts
// have their lengths.
func (t *Tally) keyLocked(id *identity) Key {
	t.scratch = t.scratch[:0]
	for _, value := range id.values {
		t.hashLocked(value)
	}
	for _, tag := range id.tags {
		t.hashLocked(tag.Name)
		t.hashLocked(tag.Value)
	}
	sum := sha256.Sum256(t.scratch)
	return Key(sum[:len(Key{})])
}

func (t *Tally) hashLocked(text string) {
	t.scratch = append(binary.AppendUvarint(t.scratch, uint64(len(text))), text...)
}

// Expire drops the series that have not moved for SeriesTTL and whose value the metrics pipeline
// has accepted: an occurrence that was counted just before a crash, or while the pipeline rejected
// metrics, still has to be emitted.
func (t *Tally) Expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := now.Add(-t.config.SeriesTTL)
	for key, last := range t.ended {
		if last.Before(oldest) {
			t.begin = later(t.begin, last.Add(time.Millisecond))
			delete(t.ended, key)
		}
	}
	for _, s := range t.series {
		switch {
		case !s.moved.Before(oldest):
		case s.emitted == s.occurrences:
			t.dropLocked(s)
		default:
			reached.State("a series does not expire before its last value is emitted")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package series sums occurrences for the metric k8s.event.occurrences, by workload, reason, type
// and kind. The sums belong to one term of leading, or to the process.
package series

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// Settings bound the series.
type Settings struct {
	// Max bounds them. Events of one namespace make at most half of them, and the last tenth is for
	// namespaces with less than a thousandth: who may write Events in many namespaces takes none from
	// others. What goes beyond is summed in one overflow series, which does not count as one of these.
	Max int
	TTL time.Duration // a series that has not changed for this time is dropped
	// InitialZero makes 0 the first point of a series, so that a query sees how much the first
	// occurrences add.
	InitialZero bool
	// Disabled has the attributes of points that are left out, and so do not distinguish series;
	// nil: none.
	Disabled semconv.Disabled
}

// Series holds the cumulative sums. Its methods may be called concurrently.
type Series struct {
	settings Settings
	disabled [len(names)]bool // by names

	// mu guards everything below: the loop adds while the metrics are read on a timer.
	mu    sync.Mutex
	byKey map[key]*series
	// byOrigin counts the series that the Events of each namespace have made.
	byOrigin map[string]int
	// begin is the start time of the sums. A new series starts after it.
	begin time.Time
	// ended has the times of the last points of series that were dropped, for TTL. A series that
	// begins again starts after them.
	ended         map[key]time.Time
	workloadNames workloadNames
	usage         Usage     // since TakeUsage
	emitted       time.Time // the time of the last points
	ends          bool      // End was called
	scratch       []byte    // of keyLocked
}

// key names a series by what tells it from others.
type key [16]byte

// overflow is the key of the series that counts what goes beyond Config.Max.
var overflow key

// names are the attributes of points that tell the series of a cluster apart, in addition to tags.
var names = [...]string{
	"k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name", "k8s.workload.uid",
	"k8s.event.reason", "k8s.event.type", "k8s.object.kind", semconv.LastTerminatedReason,
}

// The attributes of points that name the cluster.
const (
	clusterUID  = "k8s.cluster.uid"
	clusterName = "k8s.cluster.name"
)

// Attributes returns the attributes of points, apart from tags, which users can disable.
func Attributes() []string { return append([]string{clusterUID, clusterName}, names[:]...) }

// identity distinguishes a series from others. It never changes.
type identity struct {
	values [len(names)]string // by names; empty: the series does not have it
	tags   []extract.Tag
}

type series struct {
	key      key
	origin   string // the namespace of the Event that made it; empty: it is the overflow series
	workload workload
	identity

	// The following is the sum.
	start, moved time.Time
	occurrences  int64
	written      int64     // the value that Metrics wrote last
	accepted     int64     // the value that the metrics pipeline accepted last
	needsZero    bool      // a point of value 0 comes before the first value
	last         time.Time // the time of the last point
}

// New makes series whose sums start at 0 now.
func New(settings Settings, now time.Time) *Series {
	s := &Series{
		settings: settings, byKey: map[key]*series{}, byOrigin: map[string]int{}, ended: map[key]time.Time{},
		workloadNames: workloadNames{}, begin: now.Round(0), emitted: now.Round(0),
	}
	for i, name := range names {
		s.disabled[i] = settings.Disabled[name]
	}
	return s
}

// Add counts the occurrences of what was delivered.
func (s *Series) Add(observations []observation.Observation, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range observations {
		o := &observations[i]
		one := s.seriesLocked(o, now)
		one.occurrences += o.Occurrences
		one.moved = now
	}
}

// Usage has the number of series, and what has happened since the last call of TakeUsage.
type Usage struct {
	Series     int // without the overflow series
	Overflowed int // observations that count in the overflow series
	// OverflowedNamespace is that of the Event of one of them.
	OverflowedNamespace string
	Unnamed             int // observations without the name of their workload: see maxWorkloadNames
	// UnnamedKind and UnnamedNamespace are those of one of them.
	UnnamedKind, UnnamedNamespace string
}

// TakeUsage returns the usage.
func (s *Series) TakeUsage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage := s.usage
	usage.Series = s.countLocked()
	s.usage = Usage{}
	return usage
}

func (s *Series) countLocked() int {
	if s.byKey[overflow] != nil {
		return len(s.byKey) - 1
	}
	return len(s.byKey)
}

func (s *Series) seriesLocked(o *observation.Observation, now time.Time) *series {
	namespace := namespaceOf(o)
	w := workloadOf(o, namespace, now)
	if s.workloadNames.admit(&w) {
		s.usage.Unnamed++
		s.usage.UnnamedKind, s.usage.UnnamedNamespace = w.kind, namespace
	}
	id := s.identityOf(o, namespace, &w)
	k := s.keyLocked(&id)
	origin := o.Event.Namespace
	if s.byKey[k] == nil && s.isFullLocked(origin) {
		s.usage.Overflowed++
		s.usage.OverflowedNamespace = origin
		id, k, w, origin = identity{}, overflow, workload{}, ""
	}
	one := s.byKey[k]
	if one == nil {
		start := s.startLocked(k, o.SeenAt)
		one = &series{
			key: k, origin: origin, workload: w, identity: id,
			start: start, last: start, needsZero: s.settings.InitialZero, // The value comes later.
		}
		s.byKey[k] = one
		s.byOrigin[one.origin]++
		s.workloadNames.begin(w)
	}
	return one
}

// isFullLocked reports whether an Event of a namespace makes no more series.
func (s *Series) isFullLocked(origin string) bool {
	all, own, limit := s.countLocked(), s.byOrigin[origin], s.settings.Max
	return all >= limit || own >= max(1, limit/2) || all >= limit-limit/10 && own >= max(1, limit/1000)
}

// startLocked returns when a series starts: when its first occurrence was seen, but not before the
// sums began, or before the last point of a former series with the same attributes.
func (s *Series) startLocked(k key, seen time.Time) time.Time {
	// Points have the wall clock's time, which may be set back. The monotonic clock is not.
	return later(later(seen.Round(0), s.begin), s.ended[k].Add(time.Millisecond))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
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
func (s *Series) identityOf(o *observation.Observation, namespace string, w *workload) identity {
	id, ev := identity{tags: o.Tags.Metric}, o.Event
	for i, value := range [len(names)]string{
		namespace, w.apiVersion, w.kind, w.name, w.uid,
		ev.Reason, ev.Type, ev.InvolvedObject.Kind, o.Details.EndedBy(),
	} {
		if !s.disabled[i] {
			id.values[i] = value
		}
	}
	return id
}

// keyLocked returns the key of a series. An annotation's value may hold any character, so that texts
// have their lengths.
func (s *Series) keyLocked(id *identity) key {
	s.scratch = s.scratch[:0]
	for _, value := range id.values {
		s.hashLocked(value)
	}
	for _, tag := range id.tags {
		s.hashLocked(tag.Name)
		s.hashLocked(tag.Value)
	}
	sum := sha256.Sum256(s.scratch)
	return key(sum[:len(key{})])
}

func (s *Series) hashLocked(text string) {
	s.scratch = append(binary.AppendUvarint(s.scratch, uint64(len(text))), text...)
}

// Expire drops the series that have not moved for TTL and whose value the metrics pipeline has
// accepted: an occurrence that was counted while the pipeline rejected metrics still has to be
// emitted.
func (s *Series) Expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := now.Add(-s.settings.TTL)
	for k, last := range s.ended {
		if last.Before(oldest) {
			s.begin = later(s.begin, last.Add(time.Millisecond))
			delete(s.ended, k)
		}
	}
	for _, one := range s.byKey {
		switch {
		case !one.moved.Before(oldest):
		case one.accepted == one.occurrences:
			delete(s.byKey, one.key)
			if s.byOrigin[one.origin]--; s.byOrigin[one.origin] == 0 {
				delete(s.byOrigin, one.origin)
			}
			s.workloadNames.end(one.workload)
			s.ended[one.key] = one.last
		}
	}
}

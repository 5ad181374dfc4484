// SPDX-License-Identifier: Apache-2.0

// Package tally sums occurrences for the metric k8s.event.occurrences, by workload, reason, type
// and kind.
package tally

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Config bounds a Tally.
type Config struct {
	MaxSeries int           // what goes beyond is summed in one overflow series, which does not count as one of these
	SeriesTTL time.Duration // a series that has not changed for this time is dropped
	// InitialZero is whether the first point of a series has the value 0, so that a query sees how
	// much the first occurrences add.
	InitialZero bool
	// Disabled and DisabledOfPoints have the attributes of resources and of points that are left
	// out, and so do not distinguish series; nil: none.
	Disabled, DisabledOfPoints semconv.Disabled
}

// Tally holds the cumulative sums. Its methods may be called concurrently.
type Tally struct {
	config Config

	// mu guards everything below: the loop adds while the metrics are read on a timer.
	mu        sync.Mutex
	resources map[resourceKey]*resource
	series    int // points over all resources
	// begin is when the sums began. A new series starts after it, and after the last collection.
	begin time.Time
	// begun reports whether Metrics has begun a series since TakeBegun.
	begun    bool
	overflow *point // nil until it is needed
	// overflowed is how many observations the overflow series has got since TakeUsage.
	overflowed int
	emitted    time.Time // when Metrics was last called
	saved      *saved    // nil: nothing is saved
}

// resourceKey is what tells one resource from another.
type resourceKey struct {
	namespace  string
	apiVersion string
	kind       string
	name       string
	uid        string
	tags       string
	// visible has all attributes if some are disabled; the other fields are then empty.
	visible string
}

type resource struct {
	namespace string
	workload  *resolver.Object // nil: its end is not known
	tags      []extract.Tag
	visible   string // as in its key
	points    map[pointKey]*point
}

type pointKey struct{ reason, eventType, objectKind string }

type point struct {
	start, moved time.Time
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
	written bool // by Metrics, or it is owed
	saving  bool // that it was written is being saved
	saved   bool // that it was written is saved
	owed    bool // it comes together with the first value
}

// noZero is that of a series that needs none.
var noZero = zero{written: true, saved: true}

// New makes a tally whose sums start at 0 now.
func New(config Config, now time.Time) *Tally {
	return &Tally{config: config, resources: map[resourceKey]*resource{}, begin: now.Round(0)}
}

// Add counts the occurrences of what was delivered.
func (t *Tally) Add(observations []observation.Observation, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range observations {
		o := &observations[i]
		p := t.pointLocked(o)
		p.occurrences += o.Occurrences
		p.moved = now
		t.saved.note(p)
	}
}

// TakeUsage returns how many series there are, without the overflow series, and how many
// observations this one has got since TakeUsage was last called.
func (t *Tally) TakeUsage() (series, overflowed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	overflowed, t.overflowed = t.overflowed, 0
	return t.series, overflowed
}

func (t *Tally) pointLocked(o *observation.Observation) *point {
	workload := workloadOf(o.Chain)
	key := t.resourceKeyOf(o.Chain.Objects[0].Namespace, workload, o.Tags.Metric)
	r := t.resources[key]
	pk := t.pointKeyOf(o.Event)
	if r != nil && r.points[pk] != nil {
		return r.points[pk]
	}
	if t.series >= t.config.MaxSeries {
		return t.overflowLocked(o)
	}
	if r == nil {
		r = newResource(o, workload, key.visible)
		t.resources[key] = r
	}
	p := t.newPointLocked(o)
	r.points[pk] = p
	t.series++
	t.saved.add(p, r, pk)
	return p
}

// newPointLocked makes a series that starts when its first occurrence was seen, but not before the
// last collection, which did not have it.
func (t *Tally) newPointLocked(first *observation.Observation) *point {
	// Points have the wall clock's time, which may be set back. The monotonic clock is not.
	p := &point{start: first.SeenAt.Round(0)}
	// A former series with the same attributes may have a point at the time of the last collection.
	for _, earliest := range []time.Time{t.begin, t.emitted.Add(time.Millisecond)} {
		if p.start.Before(earliest) {
			p.start = earliest
		}
	}
	if !t.config.InitialZero {
		p.zero = noZero
	}
	p.last = p.start // The value comes later.
	return p
}

func (t *Tally) overflowLocked(first *observation.Observation) *point {
	t.overflowed++
	if t.overflow == nil {
		t.overflow = t.newPointLocked(first)
		t.saved.add(t.overflow, nil, pointKey{})
	}
	return t.overflow
}

// workloadOf is the object that occurrences count under. A pod that nothing owns, or whose end is
// not known, counts under its kind alone, so that the number of series grows with workloads and not
// with pods. Nil means that the end of something other than a pod is not known.
func workloadOf(chain resolver.Chain) *resolver.Object {
	end := chain.End()
	if end == nil {
		end = chain.Objects[0]
		if end.GroupKind() != semconv.Pod {
			return nil
		}
	}
	if end.GroupKind() == semconv.Pod {
		return &barePod
	}
	return end
}

var barePod = resolver.Object{APIVersion: "v1", Kind: "Pod"}

// pointKeyOf leaves disabled attributes empty.
func (t *Tally) pointKeyOf(ev *corev1.Event) pointKey {
	key := pointKey{ev.Reason, ev.Type, ev.InvolvedObject.Kind}
	if len(t.config.DisabledOfPoints) > 0 {
		return t.withoutDisabled(key)
	}
	return key
}

func (t *Tally) withoutDisabled(key pointKey) pointKey {
	for name, value := range key.attributes() {
		if t.config.DisabledOfPoints[name] {
			*value = ""
		}
	}
	return key
}

func (t *Tally) resourceKeyOf(namespace string, workload *resolver.Object, tags []extract.Tag) resourceKey {
	if len(t.config.Disabled) > 0 {
		attributes := pcommon.NewMap()
		(&resource{namespace: namespace, workload: workload, tags: tags}).write(attributes, semconv.Cluster{})
		t.config.Disabled.RemoveFrom(attributes)
		visible, _ := json.Marshal(attributes.AsRaw())
		return resourceKey{visible: string(visible)}
	}
	key := resourceKey{namespace: namespace, tags: extract.Joined(tags)}
	if workload != nil {
		key.apiVersion, key.kind, key.name, key.uid = workload.APIVersion, workload.Kind, workload.Name, string(workload.UID)
	}
	return key
}

func newResource(o *observation.Observation, workload *resolver.Object, visible string) *resource {
	return &resource{
		namespace: o.Chain.Objects[0].Namespace,
		workload:  workload,
		tags:      slices.Clone(o.Tags.Metric),
		visible:   visible,
		points:    map[pointKey]*point{},
	}
}

// Expire drops the series that have not moved for SeriesTTL and whose value the metrics pipeline
// has accepted: an occurrence that was counted just before a crash, or while the pipeline rejected
// metrics, still has to be emitted.
func (t *Tally) Expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := now.Add(-t.config.SeriesTTL)
	for key, r := range t.resources {
		for pk, p := range r.points {
			if p.moved.Before(oldest) && p.emitted == p.occurrences {
				delete(r.points, pk)
				t.series--
				t.saved.drop(p)
			}
		}
		if len(r.points) == 0 {
			delete(t.resources, key)
		}
	}
}

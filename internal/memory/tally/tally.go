// SPDX-License-Identifier: Apache-2.0

// Package tally sums occurrences for the metric k8s.event.occurrences, by workload, reason, type
// and kind.
package tally

import (
	"slices"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Config bounds a Tally.
type Config struct {
	MaxSeries int           // what goes beyond is summed in one overflow series, which does not count as one of these
	SeriesTTL time.Duration // a series that has not changed for this time is dropped
}

// Tally holds the cumulative sums. Its methods may be called concurrently.
type Tally struct {
	config Config

	// mu guards everything below: the loop adds while the metrics are read on a timer.
	mu        sync.Mutex
	resources map[resourceKey]*resource
	series    int // points over all resources
	// epoch is a time at which no series existed that does not exist now, so a new one counts from
	// there: the start, or the last time that any was dropped.
	epoch    time.Time
	overflow *point    // nil until it is needed
	emitted  time.Time // when Metrics was last called
	saved    *saved    // nil: nothing is saved
}

// resourceKey is what tells one resource from another.
type resourceKey struct {
	namespace  string
	apiVersion string
	kind       string
	name       string
	uid        string
	tags       string
}

type resource struct {
	namespace string
	workload  *resolver.Object // nil: its end is not known
	tags      []extract.Tag
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
}

// New makes a tally whose sums start at 0 now.
func New(config Config, now time.Time) *Tally {
	return &Tally{config: config, resources: map[resourceKey]*resource{}, epoch: now}
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

func (t *Tally) pointLocked(o *observation.Observation) *point {
	workload := workloadOf(o.Chain)
	key := resourceKeyOf(o.Chain.Objects[0].Namespace, workload, o.Tags.Metric)
	r := t.resources[key]
	pk := pointKey{o.Event.Reason, o.Event.Type, o.Event.InvolvedObject.Kind}
	if r != nil && r.points[pk] != nil {
		return r.points[pk]
	}
	if t.series >= t.config.MaxSeries {
		return t.overflowLocked()
	}
	if r == nil {
		r = newResource(o, workload)
		t.resources[key] = r
	}
	p := &point{start: t.epoch}
	r.points[pk] = p
	t.series++
	t.saved.know(p, r, pk)
	return p
}

func (t *Tally) overflowLocked() *point {
	if t.overflow == nil {
		t.overflow = &point{start: t.epoch}
		t.saved.know(t.overflow, nil, pointKey{})
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

func resourceKeyOf(namespace string, workload *resolver.Object, tags []extract.Tag) resourceKey {
	key := resourceKey{namespace: namespace, tags: extract.Joined(tags)}
	if workload != nil {
		key.apiVersion, key.kind, key.name, key.uid = workload.APIVersion, workload.Kind, workload.Name, string(workload.UID)
	}
	return key
}

func newResource(o *observation.Observation, workload *resolver.Object) *resource {
	return &resource{
		namespace: o.Chain.Objects[0].Namespace,
		workload:  workload,
		tags:      slices.Clone(o.Tags.Metric),
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
				t.epoch = now
				t.saved.drop(p)
			}
		}
		if len(r.points) == 0 {
			delete(t.resources, key)
		}
	}
}

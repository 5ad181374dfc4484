// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// Summary has the events of a workload and of what it owns that match a Query.
type Summary struct {
	Key         Key       `json:"workload"`
	All         int64     `json:"occurrences"`
	Warnings    int64     `json:"warnings"`
	Last        time.Time `json:"last"`
	LastWarning time.Time `json:"last_warning,omitzero"` // zero: there is none
	Reasons     []Counted `json:"reasons"`               // warnings first
	Manifests   []string  `json:"manifests,omitempty"`
	Facts       []*Fact   `json:"-"` // the newest first; read only

	id string
}

// Counted is a value with its occurrences.
type Counted struct {
	Value   string `json:"reason"`
	Warning bool   `json:"warning,omitempty"`
	N       int64  `json:"occurrences"`
}

// Slot is a part of a chart.
type Slot struct {
	From             time.Time
	Normal, Warnings int64
}

// Values are those that a Query can choose, the most frequent first.
type Values struct{ Namespaces, Reasons, Types, Manifests []Counted }

// Window returns the times of the Query.
func (q Query) Window(now time.Time) (from, until time.Time) {
	from, until = later(q.From, now.Add(-Horizon)), now
	if !q.Until.IsZero() {
		until = earlier(q.Until, now)
	}
	return from, until
}

func (q Query) admitsKey(k Key, id string) bool {
	inNamespace := q.Namespace == "" || q.Namespace == k.Namespace || q.Namespace == ClusterScoped && k.Namespace == ""
	return inNamespace && (q.Workload == "" || q.Workload == id)
}

func (q Query) admits(f *Fact) bool {
	return (q.Reason == "" || q.Reason == f.Reason) && (q.Type == "" || strings.EqualFold(q.Type, f.Type)) && (q.Manifest == "" || q.Manifest == f.Manifest)
}

// since returns how often the Event occurred from a time on.
func (f *Fact) since(from time.Time) (n int64) {
	for _, m := range f.Moments {
		if !m.At.Before(from) {
			n += m.N
		}
	}
	return n
}

// each calls do with each fact that the Query admits, and how often it occurred.
func (v *At) each(q Query, do func(w *workloadAt, f *Fact, n int64)) {
	for _, w := range v.workloads {
		if !q.admitsKey(w.key, w.id) {
			continue
		}
		for _, f := range w.facts {
			if n := f.since(v.from); n > 0 && q.admits(f) {
				do(w, f, n)
			}
		}
	}
}

// Workloads returns those with warnings first, each with what happened last first.
func (v *At) Workloads() []Summary {
	found, reasons, manifests := map[Key]*Summary{}, map[Key]map[Counted]int64{}, map[Key]map[string]bool{}
	v.each(v.query, func(w *workloadAt, f *Fact, n int64) {
		s := found[w.key]
		if s == nil {
			s = &Summary{Key: w.key, id: w.id}
			found[w.key], reasons[w.key], manifests[w.key] = s, map[Counted]int64{}, map[string]bool{}
		}
		s.All, s.Last, s.Facts = s.All+n, later(s.Last, f.Last), append(s.Facts, f)
		if f.IsWarning() {
			s.Warnings, s.LastWarning = s.Warnings+n, later(s.LastWarning, f.Last)
		}
		reasons[w.key][Counted{Value: f.Reason, Warning: f.IsWarning()}] += n
		if f.Manifest != "" {
			manifests[w.key][f.Manifest] = true
		}
	})
	all := make([]Summary, 0, len(found))
	for key, s := range found {
		s.Reasons, s.Manifests = most(ordered(reasons[key])), slices.Sorted(maps.Keys(manifests[key]))
		slices.SortFunc(s.Facts, newestFirst)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Summary) int {
		return cmp.Or(b.LastWarning.Compare(a.LastWarning), b.Last.Compare(a.Last), cmp.Compare(a.id, b.id))
	})
	return all
}

// maxReasons bounds the reasons of a workload in an answer.
const maxReasons = 20

// most returns the first values, and one for all others.
func most(all []Counted) []Counted {
	if len(all) <= maxReasons {
		return all
	}
	others := Counted{Value: "others"}
	for _, c := range all[maxReasons:] {
		others.N, others.Warning = others.N+c.N, others.Warning || c.Warning
	}
	return append(all[:maxReasons:maxReasons], others)
}

func newestFirst(a, b *Fact) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
}

// ordered returns values with warnings first, and the most frequent first.
func ordered(counts map[Counted]int64) (all []Counted) {
	for c, n := range counts {
		c.N = n
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Counted) int {
		return cmp.Or(compareBools(b.Warning, a.Warning), cmp.Compare(b.N, a.N), cmp.Compare(a.Value, b.Value))
	})
	return all
}

// Counts returns slots of equal length, the oldest first.
func (v *At) Counts(slots int) []Slot {
	length := max(1, v.now.Sub(v.from)/time.Duration(slots))
	all := make([]Slot, slots)
	for i := range all {
		all[i].From = v.from.Add(time.Duration(i) * length)
	}
	v.each(v.query, func(_ *workloadAt, f *Fact, _ int64) {
		for _, moment := range f.Moments {
			if moment.At.Before(v.from) {
				continue
			}
			s := &all[min(int(moment.At.Sub(v.from)/length), slots-1)]
			if f.IsWarning() {
				s.Warnings += moment.N
			} else {
				s.Normal += moment.N
			}
		}
	})
	return all
}

// Values returns the values of the time of the Query, whatever else it chooses.
func (v *At) Values() Values {
	var counts [4]map[Counted]int64
	for i := range counts {
		counts[i] = map[Counted]int64{}
	}
	v.each(Query{}, func(w *workloadAt, f *Fact, n int64) {
		for i, value := range []string{cmp.Or(w.key.Namespace, ClusterScoped), f.Reason, f.Type, f.Manifest} {
			if value != "" {
				counts[i][Counted{Value: value, Warning: f.IsWarning() && i == 1}] += n
			}
		}
	})
	return Values{ordered(counts[0]), ordered(counts[1]), ordered(counts[2]), ordered(counts[3])}
}

// Spans returns the spans of the rollouts of the workload that the Query chooses.
func (v *At) Spans() (spans []rollout.Span) {
	for _, w := range v.workloads {
		if v.query.Workload == "" || !v.query.admitsKey(w.key, w.id) {
			continue
		}
		for _, known := range w.rollouts {
			for _, revision := range slices.Sorted(maps.Keys(known.Revisions)) {
				for _, part := range known.Spans(revision, rollout.Options{Now: v.now}) {
					spans = append(spans, part.Spans...)
				}
			}
		}
	}
	return spans
}

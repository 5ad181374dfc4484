// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The outcomes of a rollout. docs/rollouts.md defines them.
const (
	Complete   = "complete"
	Failed     = "failed"
	Superseded = "superseded"
	Incomplete = "incomplete"
)

// The reasons of a rollout.
const (
	First    = "first"    // no revision was there before
	Update   = "update"   // it replaces another revision
	Rollback = "rollback" // the revision was active before
	Restart  = "restart"  // an update with the same images
)

// Rollout is one rollout of a workload, in short.
type Rollout struct {
	Revision string
	Start    int64  // nanoseconds since 1970
	Record   string // log.record.uid of the record that began it; empty: the first pod shows it
	Replaced string // the revision that it replaces; empty: not known, or none
	Reason   string // empty: not known
	// Images and Former are those of this revision and of the replaced one, by container; empty: not known.
	Images, Former map[string]string
	Outcome        string
	Available      int64 // when something proved that its pods were available; 0: nothing did
	Undone         int64 // when the revision was scaled to zero afterwards; 0: no record shows it
}

// Rollouts returns the rollouts of a workload, the oldest first. The scheduled runs of a CronJob are none.
func (w *Workload) Rollouts(o Options) (all []Rollout) {
	if w.lacks {
		return nil
	}
	h := w.history()
	for _, e := range h {
		if strings.HasPrefix(w.controllerOf(e.revision), "cronjob.") {
			continue
		}
		options := o
		options.job = IsJob(e.revision)
		if x := w.newRun(h, e, w.views(e.revision, options), options); x.isKnown() {
			all = append(all, w.summary(h, x))
		}
	}
	return all
}

func (w *Workload) summary(h history, x *run) Rollout {
	s := Rollout{
		Revision: x.revision, Start: x.start, Record: w.recordOf(x.episode), Undone: x.undone,
		Replaced: w.replacedBy(h, x.episode), Images: w.Revisions[x.revision].images(),
		Outcome: Incomplete,
	}
	if r := w.Revisions[s.Replaced]; r != nil {
		s.Former = r.images()
	}
	switch {
	case x.isComplete():
		s.Outcome, s.Available = Complete, x.end
	case x.failure() != "":
		s.Outcome = Failed
	}
	s.Reason = s.reason(x)
	return s
}

func (s *Rollout) reason(x *run) string {
	switch {
	case x.activation != "":
		return Rollback
	case s.Replaced != "" && len(s.Images) > 0 && maps.Equal(s.Images, s.Former):
		return Restart
	case s.Replaced != "":
		return Update
	case s.Outcome == Complete && x.begins:
		return First
	}
	return ""
}

// recordOf returns the UID of the record that began a rollout; empty: none that is known.
func (w *Workload) recordOf(e episode) string {
	if e.activation != "" {
		return e.activation
	}
	for _, a := range w.activations() {
		if a.revision == e.revision && a.start <= e.start+skew {
			return a.activation
		}
	}
	return ""
}

// replacedBy returns the revision that a rollout replaces: the newest one that had pods when it began, or was
// scaled down in it. Empty: no record shows it.
func (w *Workload) replacedBy(h history, e episode) (found string) {
	if IsJob(e.revision) {
		return ""
	}
	latest := int64(0)
	for _, name := range slices.Sorted(maps.Keys(w.Revisions)) {
		r := w.Revisions[name]
		if name == e.revision || !w.siblings(name, e.revision) || !r.hadPodsBefore(e.start, h.next(e)) {
			continue
		}
		since := int64(1)
		for _, other := range h {
			if other.revision == name && other.start <= e.start {
				since = max(since, other.start)
			}
		}
		if since > latest {
			found, latest = name, since
		}
	}
	return found
}

// hadPodsBefore reports whether the revision had pods when another one began.
func (r *Revision) hadPodsBefore(at, until int64) bool {
	newest, ok := r.stepBefore(at)
	for _, s := range r.steps() {
		if !s.Up && s.At >= at && s.At < until {
			return true
		}
	}
	if ok {
		return newest.To > 0
	}
	for _, p := range r.Pods {
		if began := r.began(p); began != 0 && began < at {
			return true
		}
	}
	return false
}

// next returns when the next rollout of the workload begins.
func (h history) next(e episode) int64 {
	for _, other := range h {
		if other.start > e.start && other.revision != e.revision {
			return other.start
		}
	}
	return always
}

// images returns the images of a revision by container, as its kubelets pulled or found them.
func (r *Revision) images() map[string]string {
	all := map[string]string{}
	for _, p := range r.Pods {
		for _, e := range p.Events {
			if name, _, _ := pullOf(e.Message); name != "" && e.Container != "" {
				all[e.Container] = max(all[e.Container], name)
			}
		}
	}
	return all
}

// PodState is where and when a pod was.
type PodState struct {
	UID, Name, Revision, Node string
	Began, Started            int64 // 0: no record shows it
	Stopped                   int64 // its deletion, eviction or Killing; 0: it goes on
}

// PodStates returns the pods of a workload, the oldest first.
func (w *Workload) PodStates(o Options) (all []PodState) {
	for revision, r := range w.Revisions {
		options := o
		options.job = IsJob(revision)
		for _, v := range w.views(revision, options) {
			s := PodState{
				UID: v.uid, Name: v.pod.Name, Revision: revision, Node: v.pod.Node, Began: cmp.Or(v.began, v.start),
				Stopped: earliest(v.stopped, firstAfter(bothTimes(r.Names.Deleted[v.pod.Name], w.Names.Deleted[v.pod.Name]), v.began)),
			}
			if v.hasStarted() {
				s.Started = v.end
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b PodState) int { return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(a.UID, b.UID)) })
	return all
}

// Replicas returns how many pods each revision has, by its last scaling.
func (w *Workload) Replicas() map[string]int {
	all := map[string]int{}
	for name, r := range w.Revisions {
		if s, ok := r.stepBefore(always); ok {
			all[name] = s.To
		}
	}
	return all
}

// RevisionOf returns the revision of the object that a record with this resource is about; empty: none.
func RevisionOf(resource pcommon.Map) string {
	s, _ := subjectOf(resource)
	return s.revision
}

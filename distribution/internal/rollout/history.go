// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// skew is how much earlier than its cause the first record of a pod can be: the times of controllers
// have a resolution of a second, and clocks differ.
const skew = int64(2 * time.Second)

// StopWindow is how long after the end of a pod a rollout can begin that ended it. A StatefulSet, and
// a Deployment that recreates its pods, start the new pod after the end of the old one.
const StopWindow = time.Minute

// episode is one rollout of a revision. A rollback is another one of the same revision.
type episode struct {
	revision   string
	activation string // the UID of the record that began it; empty: the first rollout
	start      int64
	undone     int64 // when the revision was scaled to zero afterwards; 0: no record shows it
}

func (w *Workload) traceOf(e episode) pcommon.TraceID {
	return traceID(w.Cluster, w.UID, e.revision, e.activation)
}

// again returns the activations that begin another rollout of a revision: it is scaled up from zero,
// it was active before, and another revision was activated since, or has pods. A scale-up from zero of the
// current revision is none.
func (w *Workload) again() (cuts []episode) {
	for e, known := range w.begun() {
		if known {
			cuts = append(cuts, e)
		}
	}
	return cuts
}

// begun returns the activations that begin a rollout, and whether the revision was active before.
func (w *Workload) begun() iter.Seq2[episode, bool] {
	return func(yield func(episode, bool) bool) {
		previous := map[string]episode{} // by controller
		seen := map[string]bool{}
		for _, a := range w.activations() {
			of := w.Activations[a.activation]
			before := previous[of.Controller]
			known := seen[a.revision] || of.Repeated || w.wasActive(a, before.start)
			if begins := !known || before.revision != a.revision || w.replaces(of); begins && !yield(a, known) {
				return
			}
			previous[of.Controller] = a
			seen[a.revision] = true
		}
	}
}

// replaces reports whether another revision had pods when this one was scaled up from zero: the last known scaling of
// the other one was up. If this revision was active before, its rollout was undone.
func (w *Workload) replaces(a Activation) bool {
	for name, r := range w.Revisions {
		if r.hadPodsAt(name, a) {
			return true
		}
	}
	return a.Replaces
}

func (r *Revision) hadPodsAt(name string, a Activation) bool {
	if name == a.Revision || r.Controller != a.Controller {
		return false
	}
	s, ok := r.stepBefore(a.At)
	return ok && s.Up && s.To > 0
}

// Begun returns the revisions that were rolled out, by log.record.uid of the records that show it: each
// scales a revision up from zero. Other scale-ups from zero begin no rollout. It leaves out
// a repeated one with nothing before it: this can be a rollback, or a scale-up of the current
// revision.
func (w *Workload) Begun() map[string]string {
	begun := map[string]string{}
	for e, known := range w.begun() {
		if !known || e != w.activations()[0] {
			begun[e.activation] = e.revision
		}
	}
	return begun
}

// Creation is that of a pod, at a time in nanoseconds since 1970.
type Creation struct {
	Pod string
	At  int64
}

// Introduction is that of a revision with a pod. Replaced is the revision of the pod whose place this one
// took, if it is not known to be the first one of the revision.
type Introduction struct{ Revision, Replaced string }

// Introduced returns the revisions of a StatefulSet or a DaemonSet by the creations of their first pods, also
// of the first ones after another revision. It leaves out the oldest revision that is known, if no pod
// of another one was in the place of its pod.
func (w *Workload) Introduced() map[Creation]Introduction {
	introduced := map[Creation]Introduction{}
	for name := range w.Revisions {
		if strings.Contains(name, "/") {
			continue // It is no hash, but the name of an object.
		}
		all := w.views(name, Options{})
		previous := int64(0)
		for _, v := range all {
			if v.start == 0 {
				continue
			}
			isNewer := previous == 0 && w.hasOlderRevision(name) && !haveEnd(all, v.created)
			if of, ok := w.introduction(name, &v, previous, isNewer); ok && v.isFresh() {
				introduced[Creation{v.pod.Name, v.created}] = of
			}
			previous = v.began
		}
	}
	return introduced
}

// introduction returns that of a revision that is newer, else that by a pod that took the place of another one. If the
// revision has a previous pod, the other one must have begun after it: else both belong to one rollout.
func (w *Workload) introduction(name string, v *view, previous int64, isNewer bool) (of Introduction, ok bool) {
	if isNewer {
		return Introduction{Revision: name}, true
	}
	former, began := w.formerRevision(name, v)
	return Introduction{name, former}, former != "" && (previous == 0 || began > previous)
}

// haveEnd reports whether one of the pods had ended before a time, and nothing shows when it started: then the
// revision is older than its records.
func haveEnd(views []view, before int64) bool {
	return slices.ContainsFunc(views, func(v view) bool { return v.start == 0 && v.stopped <= before+skew })
}

// formerRevision returns the revision of the pod whose place another one took, less than StopWindow after
// its end began, and when that pod began; empty: no record shows it.
func (w *Workload) formerRevision(of string, v *view) (former string, began int64) {
	latest, place := int64(0), w.placeOf(of, v.pod)
	for name, r := range w.Revisions {
		if name == of || !w.siblings(name, of) {
			continue
		}
		for uid, pod := range r.Pods {
			if place == "" || w.placeOf(name, pod) != place {
				continue
			}
			other := viewOf(uid, pod, r, w.Names, Options{})
			if other.makesRoom(v.created) && other.stopped > latest {
				former, began, latest = name, other.began, other.stopped
			}
		}
	}
	return former, began
}

// placeOf returns what one pod of the owner has at a time: its node in a DaemonSet, else its name.
func (w *Workload) placeOf(revision string, pod *Pod) string {
	if strings.HasPrefix(w.controllerOf(revision), "daemonset.") {
		return pod.Node
	}
	return pod.Name
}

// Began returns when a pod was created or scheduled; 0: no record shows it. The clock of its node, which
// can be behind, does not decide.
func (w *Workload) Began(pod string) int64 {
	for _, r := range w.Revisions {
		if p := r.Pods[pod]; p != nil {
			at := r.began(&Pod{Name: p.Name, Placed: p.Placed})
			created := latestUntil(w.Names.Created[p.Name], cmp.Or(at, p.Seen)+int64(time.Second))
			return earliest(at, created)
		}
	}
	return 0
}

// isFresh reports whether the creation that is known is that of this pod: a StatefulSet has used the name
// before.
func (v *view) isFresh() bool {
	first := inOrder(v.pod.Events).without(kindStopping).first()
	return v.created != 0 && cmp.Or(v.pod.Placed, first)-v.created <= int64(StopWindow)
}

func (w *Workload) hasOlderRevision(name string) bool {
	own := w.Revisions[name].start()
	for other, r := range w.Revisions {
		if start := r.start(); other != name && w.siblings(other, name) && start != 0 && start < own {
			return true
		}
	}
	return false
}

// IsJob reports whether the revision is a Job, which does not replace the pods of another one.
func IsJob(revision string) bool { return strings.HasPrefix(revision, "job.batch/") }

// siblings reports whether the same object makes both revisions, so that one can replace the other.
func (w *Workload) siblings(a, b string) bool { return w.controllerOf(a) == w.controllerOf(b) }

func (w *Workload) controllerOf(revision string) string {
	if r := w.Revisions[revision]; r != nil {
		return r.Controller
	}
	return ""
}

// activations returns all scale-ups from zero, in the order of time.
func (w *Workload) activations() []episode {
	all := make([]episode, 0, len(w.Activations))
	for uid, a := range w.Activations {
		all = append(all, episode{revision: a.Revision, activation: uid, start: a.At})
	}
	slices.SortFunc(all, compareEpisodes)
	return all
}

func compareEpisodes(a, b episode) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.activation, b.activation), cmp.Compare(a.revision, b.revision))
}

// wasActive reports whether a revision began before another one was activated; 0 is no time. If only
// kubelets have records of that, the scale-down since then shows it: the clock of a node can be behind.
func (w *Workload) wasActive(again episode, other int64) bool {
	r := w.Revisions[again.revision]
	if r == nil || other == 0 {
		return false
	}
	return r.First != 0 && r.First < other || r.First >= again.start && r.isScaledDownBefore(again.start)
}

// history is all rollouts of a workload, in the order of time.
type history []episode

func (w *Workload) history() history {
	all := history(w.again())
	for name, r := range w.Revisions {
		if start := r.start(); start != 0 {
			all = append(all, episode{revision: name, start: start})
		}
	}
	for i, e := range all {
		if r := w.Revisions[e.revision]; r != nil {
			all[i].undone = r.scaledToZero(e.start)
		}
	}
	slices.SortFunc(all, compareEpisodes)
	return all
}

// at returns the rollout of a revision to which something belongs that began at this time.
func (h history) at(revision string, began int64) episode {
	found := episode{revision: revision}
	for _, e := range h {
		if e.revision == revision && (e.activation == "" || e.start <= began+skew) {
			found = e
		}
	}
	return found
}

// replaced returns the rollout that ended a pod of another rollout. ok is false if none is known: the
// pod ended for another reason, such as a scale-down.
func (w *Workload) replaced(h history, own episode, stop int64) (by episode, ok bool) {
	if IsJob(own.revision) {
		return by, false
	}
	for _, e := range h {
		isOwn := e.revision == own.revision && e.activation == own.activation
		wasUndone := e.undone != 0 && e.undone < stop-int64(StopWindow)
		if isOwn || wasUndone || !w.siblings(e.revision, own.revision) || e.start <= own.start || e.start > stop+int64(StopWindow) {
			continue
		}
		if ok && e.start > stop {
			break // The first one after the end is nearer.
		}
		by, ok = e, true
	}
	return by, ok
}

// end returns the time at which the next rollout of the same revision begins.
func (h history) end(of episode) int64 {
	for _, e := range h {
		if e.revision == of.revision && compareEpisodes(e, of) > 0 && e.activation != of.activation {
			return e.start
		}
	}
	return int64(^uint64(0) >> 1)
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

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
		_, all := w.runs(w.history(), name, Options{})
		previous := int64(0)
		for _, v := range all {
			if v.start == 0 {
				continue
			}
			isNewer := previous == 0 && w.hasOlderRevision(name) && !haveEnd(all, v.created)
			if of, ok := w.introduction(name, v, previous, isNewer); ok && v.isFresh() {
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
func haveEnd(views []*view, before int64) bool {
	return slices.ContainsFunc(views, func(v *view) bool { return v.start == 0 && v.stopped <= before+skew })
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
			other := viewOf(uid, pod, r, w.Names)
			if other.makesRoom(v.created) && other.stopped > latest {
				former, began, latest = name, other.began, other.stopped
			}
		}
	}
	return former, began
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

// Group has the objects of one kind in a namespace.
type Group struct{ Cluster, Namespace, Kind string }

func (g Group) compare(other Group) int {
	return cmp.Or(cmp.Compare(g.Cluster, other.Cluster), cmp.Compare(g.Namespace, other.Namespace), cmp.Compare(g.Kind, other.Kind))
}

// Crowd returns the largest of some groups if all together take more than half of the room; an
// empty one: they do not.
func Crowd(groups map[Group]int, room int) (crowd Group) {
	total := 0
	for g, size := range groups {
		total += size
		if size > groups[crowd] || size == groups[crowd] && g.compare(crowd) < 0 {
			crowd = g
		}
	}
	if total <= room/2 {
		return Group{}
	}
	return crowd
}

// makesRoom reports whether the end of the pod began less than StopWindow before: a pod that was created then can
// have its place.
func (v *view) makesRoom(at int64) bool {
	return v.stopped <= at+skew && at-v.stopped <= int64(StopWindow)
}

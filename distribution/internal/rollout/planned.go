// SPDX-License-Identifier: Apache-2.0

package rollout

import "cmp"

// planned returns by how many pods the owner scaled the revision up, without those that it took back. Records of that
// can be missing: a controller writes at most 25 Events about a Deployment at once. If the first one is, or if more
// pods run than were planned, the pods count that are known and have not ended.
func (x *run) planned() int {
	by := x.scaled - x.before - x.dropped
	switch {
	case x.scaled == 0:
		return x.wanted
	case x.before == 0 && x.healthy() <= by:
		return by
	}
	return max(by, x.alive()-x.dropped)
}

// alive returns how many pods had not ended when the rollout did. The owner replaces those that have.
func (x *run) alive() int { return x.count(x.isAlive) }

func (x *run) isAlive(v *view) bool { return v.stop == nil || v.stopped > x.end }

// wanted returns how many pods the owner wanted, if no scaling has a record: a StatefulSet, a DaemonSet and a Job emit
// none. It leaves out pods that ended, were deleted or were replaced before the rollout ended.
func (w *Workload) wanted(x *run, until int64) int {
	latest := w.latest(x)
	wanted := w.unseen(x, until)
	for _, v := range latest {
		if !v.gone {
			wanted++
		}
	}
	if wanted > 0 {
		return wanted
	}
	for _, v := range latest {
		v.gone = false // Nothing came after it.
	}
	return max(len(latest), x.created)
}

// latest returns the last pod of each place, and notes which pods are gone. A Job's pod that ended after its start is
// not gone.
func (w *Workload) latest(x *run) map[string]*view {
	latest := map[string]*view{}
	for _, v := range x.initial {
		hasDone := IsJob(x.revision) && v.hasStarted()
		v.gone = w.isDeleted(x, v.pod.Name, v.began) || !x.isAlive(v) && !hasDone
		place := cmp.Or(w.placeOf(x.revision, v.pod), v.pod.Name)
		if former := latest[place]; former != nil {
			former.gone = true
		}
		latest[place] = v
	}
	return latest
}

// unseen returns how many pods were created of which there is no other record.
func (w *Workload) unseen(x *run, until int64) (count int) {
	seen := map[string]bool{}
	for _, v := range x.initial {
		seen[v.pod.Name] = true
	}
	for name, times := range w.Revisions[x.revision].Names.Created {
		if !seen[name] && isBetween(times, x.start-skew, until) && !w.isDeleted(x, name, times[0]) {
			count++
		}
	}
	return count
}

// isDeleted reports whether the owner deleted a pod that began at a time, before the rollout ended.
func (w *Workload) isDeleted(x *run, name string, began int64) bool {
	deleted := bothTimes(w.Revisions[x.revision].Names.Deleted[name], w.Names.Deleted[name])
	at := firstAfter(deleted, began)
	return at != 0 && at <= x.end
}

// dropped returns how many pods of the last scale-up the owner took back before they started, and before another
// rollout began. It returns 0 if the owner then scaled the revision to zero: the rollout was undone.
func (w *Workload) dropped(h history, x *run) (count int) {
	r, next, last := w.Revisions[x.revision], always, int64(0)
	for _, e := range h {
		if e.start > x.start && e.start < next && w.siblings(e.revision, x.revision) {
			next = e.start
		}
	}
	for _, v := range x.initial {
		deleted := firstAfter(r.Names.Deleted[v.pod.Name], v.began)
		if !v.hasStarted() && deleted >= x.raised && deleted < next && deleted != 0 {
			count, last = count+1, max(last, deleted)
		}
	}
	if s, ok := r.stepBefore(last + skew); !ok || s.To == 0 || w.replacesPods(x.revision, last) {
		return 0
	}
	return count
}

// replacesPods reports whether another revision was scaled up around a time: then it gets the place of pods that the
// owner deletes.
func (w *Workload) replacesPods(of string, at int64) bool {
	for name, r := range w.Revisions {
		if name == of || !w.siblings(name, of) {
			continue
		}
		for s := range r.Steps {
			if s.Up && max(s.At-at, at-s.At) <= int64(StopWindow) {
				return true
			}
		}
	}
	return false
}

// noteEvicted notes which pods ended although the owner did not delete them, if it has made another one since.
func (w *Workload) noteEvicted(x *run) {
	if len(x.initial) == 0 {
		return
	}
	deleted, newest := w.Revisions[x.revision].Names.Deleted, x.initial[len(x.initial)-1].began
	for _, v := range x.initial {
		v.gone = v.stop != nil && len(deleted[v.pod.Name]) == 0 && newest >= v.stopped-skew
	}
}

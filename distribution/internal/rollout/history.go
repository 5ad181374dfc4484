// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// skew is the longest time by which the first record of a pod can be earlier than its cause: the
// times of controllers have a resolution of a second, and clocks differ.
const skew = int64(2 * time.Second)

// StopWindow is the longest time between the end of a pod and the start of the rollout that ended
// it. A StatefulSet, and a Deployment that recreates its pods, start the new pod after the end of
// the old one.
const StopWindow = time.Minute

// episode is one rollout of a revision. A rollback is another one of the same revision.
type episode struct {
	revision   string
	activation string // the UID of the record that began it; empty: the first rollout
	start      int64
	undone     int64 // when the revision was scaled to zero afterwards; 0: no record shows it
}

// again returns the activations that begin another rollout of a revision: it is scaled up from
// zero, it was active before, and another revision was activated since, or has pods. A scale-up
// from zero of the current revision is none.
func (w *Workload) again(h history) (cuts []episode) {
	previous, seen := map[string]episode{}, map[string]bool{} // by controller, and by revision
	for _, a := range h.activations {
		activation := w.Activations[a.activation]
		before := previous[activation.Controller]
		known := seen[a.revision] || activation.Repeated || w.wasActive(a.revision, before.start)
		if known && (before.revision != "" && before.revision != a.revision || w.replaces(h, activation)) {
			cuts = append(cuts, a)
		}
		previous[activation.Controller], seen[a.revision] = a, true
	}
	return cuts
}

// replaces reports whether another revision had pods when this one was scaled up from zero. If this
// revision was active before, its rollout was undone.
func (w *Workload) replaces(h history, a Activation) bool {
	for name, r := range w.Revisions {
		if name != a.Revision && r.Controller == a.Controller && h.stepsOf(r).replicas(a.At) > 0 {
			return true
		}
	}
	return false
}

// placeOf returns what one pod of the owner has at a time: its node in a DaemonSet, else its name.
func (w *Workload) placeOf(revision string, pod *Pod) string {
	if strings.HasPrefix(w.controllerOf(revision), "daemonset.") {
		return cmp.Or(pod.Node, pod.Name)
	}
	return pod.Name
}

// IsJob reports whether the revision is a Job, which does not replace the pods of another one.
func IsJob(revision string) bool { return strings.HasPrefix(revision, "job.batch/") }

// siblings reports whether the same object makes both revisions, so that one can replace the other.
// A Job replaces none.
func (w *Workload) siblings(a, b string) bool {
	return !IsJob(b) && w.controllerOf(a) == w.controllerOf(b)
}

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

// wasActive reports whether a revision began before another one was activated; 0 is no time.
func (w *Workload) wasActive(revision string, other int64) bool {
	r := w.Revisions[revision]
	return r != nil && r.First != 0 && r.First < other
}

// history is all rollouts of a workload, in the order of time, and what was computed of revisions.
type history struct {
	episodes    []episode
	activations []episode
	revisions   []string // in order
	ends        map[string][]int64
	steps       map[*Revision]steps
}

func (w *Workload) history() history {
	h := history{
		activations: w.activations(), revisions: slices.Sorted(maps.Keys(w.Revisions)),
		ends: map[string][]int64{}, steps: map[*Revision]steps{},
	}
	all := w.again(h)
	for name, r := range w.Revisions {
		if r.First != 0 {
			all = append(all, episode{revision: name, start: r.First})
		}
	}
	for i, e := range all {
		if r := w.Revisions[e.revision]; r != nil {
			all[i].undone = h.stepsOf(r).toZero(e.start)
		}
	}
	slices.SortFunc(all, compareEpisodes)
	h.episodes = all
	return h
}

func (h history) stepsOf(r *Revision) steps {
	all, ok := h.steps[r]
	if !ok {
		all = r.steps()
		h.steps[r] = all
	}
	return all
}

// endsOf returns when the pods of a revision ended, in the order of time; 0: one of them goes on.
func (w *Workload) endsOf(h history, revision string) []int64 {
	ends, ok := h.ends[revision]
	if !ok {
		for _, pod := range w.Revisions[revision].Pods {
			ends = append(ends, w.endOf(w.Revisions[revision], pod))
		}
		slices.Sort(ends)
		h.ends[revision] = ends
	}
	return ends
}

// at returns the rollout of a revision to which something belongs that began at this time.
func (h history) at(revision string, began int64) episode {
	found := episode{revision: revision}
	for _, e := range h.episodes {
		if e.revision == revision && (e.activation == "" || e.start <= began+skew) {
			found = e
		}
	}
	return found
}

// replaced returns the rollout that ended a pod of another rollout. ok is false if none is known:
// the pod ended for another reason, such as a scale-down.
func (w *Workload) replaced(h history, own episode, stop int64) (by episode, ok bool) {
	for _, e := range h.episodes {
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
func (h history) end(own episode) int64 {
	for _, e := range h.episodes {
		if e.revision == own.revision && compareEpisodes(e, own) > 0 {
			return e.start
		}
	}
	return always
}

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The bounds of what the store keeps to answer what changed.
const (
	maxWarned    = 64 // first warnings of a workload
	maxChanged   = 64 // records of a workload that can show a change
	maxRemains   = 8  // such records of a workload that was dropped
	maxElsewhere = 2_000
	maxRollouts  = 400   // of all workloads
	maxPods      = 2_000 // of all rollouts
	maxOwnPods   = 1_000 // of a rollout; later ones are not in its timeline
)

// notice is a record about a node or an autoscaler. It can matter to several workloads.
type notice struct {
	record
	cluster string
	node    string // empty: it is about an autoscaler
}

// note keeps what can matter to other workloads than that of the entry.
func (s *store) note(e *entry) {
	of := e.involved() // An autoscaler can have an owner, such as a ScaledObject.
	n := notice{record: recordOf(e), cluster: e.cluster}
	switch {
	case of.kind() == "node" && isNodeCondition(e.of[traitReason]):
		n.node = of.Name
	case of.Kind == "horizontalpodautoscaler" && e.of[traitReason] == reasonRescaled:
	default:
		return
	}
	s.elsewhere = insert(s.elsewhere, n, func(n notice) time.Time { return n.Time })
	s.elsewhere = slices.Delete(s.elsewhere, 0, max(0, len(s.elsewhere)-maxElsewhere))
}

// canMatter reports whether the notice can matter to a workload with pods on these nodes.
func (n *notice) canMatter(w *workload, nodes map[string]bool) bool {
	return n.cluster == w.cluster && (nodes[n.node] || n.node == "" && n.Namespace == w.namespace)
}

// nodes returns the nodes on which the workload had pods. A node needs none.
func (w *workload) nodes() map[string]bool {
	on := map[string]bool{}
	for _, m := range w.objects {
		for _, p := range m.placed {
			on[p.node] = true
		}
	}
	if w.top.kind() == "node" {
		on[w.top.Name] = true
	}
	return on
}

// keep keeps what can answer what changed, and what it changed.
func (w *workload) keep(e *entry, elsewhere []notice) {
	w.live(e)
	if e.of.isWarning() {
		w.keepWarning(e)
	}
	if canShowChange(e) {
		w.changed = insert(w.changed, recordOf(e), func(r record) time.Time { return r.Time })
		w.boundChanges(maxChanged)
	}
	if len(w.warned) > maxWarned {
		w.thin(elsewhere)
	}
}

// life is an object that had the name of the workload.
type life struct {
	uid, rollouts string
	since         time.Time // its first record
}

// maxLives bounds the objects of one name that are known.
const maxLives = 8

// live notes of which object the record is. Records of the pods of a former one still come after it was
// created again.
func (w *workload) live(e *entry) {
	if e.uid == "" {
		return
	}
	known := slices.IndexFunc(w.lives, func(l life) bool { return l.uid == e.uid })
	if known < 0 {
		known = len(w.lives)
		w.lives = append(w.lives, life{e.uid, e.rollouts, e.at})
	}
	w.lives[known].since = earlier(w.lives[known].since, e.at)
	slices.SortStableFunc(w.lives, func(a, b life) int { return a.since.Compare(b.since) })
	w.lives = slices.Delete(w.lives, 0, max(0, len(w.lives)-maxLives))
	last := w.lives[len(w.lives)-1]
	w.uid, w.rollouts = last.uid, last.rollouts
}

// matters returns how much an answer needs the workload: one with a warning has an answer, one that
// changed can have one later.
func (w *workload) matters() int {
	switch {
	case len(w.warned) > 0:
		return 2
	case len(w.changed) > 0:
		return 1
	}
	return 0
}

// remains returns what the store keeps of a workload that it drops. The workload's rollouts are the next
// ones to be forgotten, so that they do not displace those of workloads that are shown.
func (s *store) remains(w *workload) *workload {
	of := &workload{workloadKey: w.workloadKey, uid: w.uid, rollouts: w.rollouts, lives: w.lives}
	w.boundChanges(maxRemains)
	of.changed = withRevisions(w.changed, s.rolloutsOf(w))
	for _, known := range s.rolloutsOf(w) {
		for _, r := range known.Revisions {
			r.Closed = true
		}
	}
	return of
}

// placement is a record that shows that a pod was on a node.
type placement struct {
	record
	created time.Time // when the pod was created; zero: not known
	left    time.Time // when the pod ended; zero: not known
}

// maxPlacements bounds those of a pod. A StatefulSet uses the name of a pod again.
const maxPlacements = 8

// place keeps the records that show where a pod was.
func (m *member) place(e *entry) {
	switch {
	case e.endsPod():
		m.leave(e)
	case e.of[traitReason] == "Started":
		m.goOn(e)
	}
	isKnown := slices.ContainsFunc(m.placed, func(p placement) bool { return p.node == e.node })
	if e.node == "" || isKnown && e.of[traitReason] != rollout.ReasonScheduled {
		return
	}
	m.placed = insert(m.placed, placement{record: recordOf(e)}, func(p placement) time.Time { return p.Time })
	m.placed = slices.Delete(m.placed, 0, max(0, len(m.placed)-maxPlacements))
}

// endsPod reports whether the record shows that a kubelet ends a pod, or that the pod is deleted because
// of a taint of its node. The kubelet of a dead node emits nothing.
func (e *entry) endsPod() bool {
	switch e.of[traitReason] {
	case "Killing":
		return strings.HasPrefix(e.message, "Stopping container")
	case "TaintManagerEviction":
		return strings.HasPrefix(e.message, markedForDeletion)
	}
	return false
}

// leave notes that the pod of this time ended. A kubelet can end a former pod of the same name.
func (m *member) leave(e *entry) {
	for i := range slices.Backward(m.placed) {
		p := &m.placed[i]
		if !p.Time.After(e.at) && (e.node == "" || e.node == p.node) {
			p.left = e.at
			return
		}
	}
}

// goOn notes that a pod had not ended: a kubelet stops all containers to give the pod a new sandbox.
func (m *member) goOn(e *entry) {
	for i := range m.placed {
		if p := &m.placed[i]; e.pod != "" && p.pod == e.pod && e.at.After(p.left) {
			p.left = time.Time{}
		}
	}
}

// wheres returns where the pod was. A pod that is scheduled has no former place: it is another pod of the
// same name. created has the times at which pods of this name were created.
func (m *member) wheres(created []time.Time) []placement {
	placed := slices.Clone(m.placed)
	for i := range placed {
		p := &placed[i]
		if i+1 < len(placed) && placed[i+1].Reason == rollout.ReasonScheduled && p.left.IsZero() {
			p.left = placed[i+1].Time
		}
		for _, at := range created {
			if !at.After(p.Time) {
				p.created = at
			}
		}
	}
	return placed
}

// covers reports whether the pod can have been on the node at a time, or by late before. Only the record of the
// scheduler, or of its creation, shows that it was not there before.
func (p placement) covers(at time.Time, late time.Duration) bool {
	hasBegun := inSeconds(p.created, at) <= 0 && (p.Reason != rollout.ReasonScheduled || inSeconds(p.Time, at) <= 0)
	return hasBegun && (p.left.IsZero() || inSeconds(at.Add(-late), p.left) <= 0)
}

// canShowChange reports whether a record of a workload can show that somebody changed it.
func canShowChange(e *entry) bool {
	isPod := e.involved().kind() == "pod" // Others have such reasons, too: a Workload of Kueue is preempted.
	switch e.of[traitReason] {
	case rollout.ReasonScaled, rollout.ReasonCreatedPod:
		return true
	case rollout.ReasonScheduled:
		return isPod && len(e.chain) == 1 // No owner has created the pod.
	}
	_, ok := evictionOf(e.of[traitReason], e.message)
	return ok && isPod
}

// warningPause is the pause after which an Event that comes again is another warning. Of one that goes on,
// kubelets write an occurrence every 5 minutes.
const warningPause = 10 * time.Minute

// keepWarning keeps the first record of an event, and the first one after each pause.
func (w *workload) keepWarning(e *entry) {
	r := recordOf(e)
	r.since = r.FirstTime
	for i, known := range slices.Backward(w.warned) {
		if r.event == "" || known.event != r.event {
			continue
		}
		hasPaused := e.occurrences == 1 && r.Time.Sub(known.last) >= warningPause // Others can have been in the pause.
		if !hasPaused {
			w.warned[i].last = later(known.last, r.Time)
			return
		}
		r.since = r.Time
		break
	}
	w.warned = insert(w.warned, r, func(r record) time.Time { return r.since })
}

// boundChanges drops records while there are more than most.
func (w *workload) boundChanges(most int) {
	for len(w.changed) > most {
		w.dropChange()
	}
}

// dropChange drops the oldest record of the most frequent kind: neither the pods of one scale-up nor the
// steps of a rolling update must displace the rollouts.
func (w *workload) dropChange() {
	counts := map[string]int64{}
	for _, r := range w.changed {
		counts[r.frequent()]++
	}
	most, _ := mostFrequent(counts, 1)
	oldest := slices.IndexFunc(w.changed, func(r record) bool { return r.frequent() == most[0] })
	w.changed = slices.Delete(w.changed, oldest, oldest+1)
}

// thin drops warnings of the older half. It keeps the first warning after each change.
func (w *workload) thin(elsewhere []notice) {
	var times []time.Time
	for _, r := range w.changed {
		times = append(times, r.Time)
	}
	nodes := w.nodes()
	for _, n := range elsewhere {
		if n.canMatter(w, nodes) {
			times = append(times, n.Time)
		}
	}
	kept := []record{w.warned[0]}
	for i, r := range w.warned[1:] {
		before := w.warned[i].since
		isFirst := slices.ContainsFunc(times, func(at time.Time) bool { return inSeconds(before, at) < 0 && inSeconds(at, r.since) <= 0 })
		if isFirst || i >= maxWarned/2 {
			kept = append(kept, r)
		}
	}
	w.warned = slices.Delete(kept, 0, max(0, len(kept)-maxWarned))
}

// frequent returns the reason, but tells the scale-ups from zero from other scalings.
func (r *record) frequent() string {
	if s, ok := rollout.ScalingOf(r.Message); ok && s.From == 0 {
		return r.Reason + " from 0"
	}
	return r.Reason
}

func (w *workload) forgetChanges(before time.Time) {
	w.warned = slices.DeleteFunc(w.warned, func(r record) bool { return r.last.Before(before) })
	w.changed = slices.DeleteFunc(w.changed, func(r record) bool { return r.Time.Before(before) })
}

// follow adds what the records of a batch say about rollouts. The records themselves come next, with add.
func (s *store) follow(read *rollout.Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boundPods(read)
	s.rollouts.Join(read)
	for workload, w := range read.Workloads {
		for name := range w.Revisions {
			_, r := s.rollouts.Revision(rollout.Key{Workload: workload, Revision: name})
			r.News = s.now().UnixNano() // A repeated warning, too: it is what somebody looks for.
			r.Closed = r.Closed || rollout.IsJob(name)
		}
	}
}

// boundPods removes pods that would exceed the bound of their rollout.
func (s *store) boundPods(read *rollout.Model) {
	for workload, w := range read.Workloads {
		for name, in := range w.Revisions {
			_, known := s.rollouts.Revision(rollout.Key{Workload: workload, Revision: name})
			for uid := range in.Pods {
				if known != nil && len(known.Pods) >= maxOwnPods && known.Pods[uid] == nil {
					delete(in.Pods, uid)
				}
			}
		}
	}
}

// forgetChanges drops what is older than before.
func (s *store) forgetChanges(before time.Time) {
	s.elsewhere = slices.DeleteFunc(s.elsewhere, func(n notice) bool { return n.Time.Before(before) })
	for workload, w := range s.rollouts.Workloads {
		for name, r := range w.Revisions {
			if r.News < before.UnixNano() {
				s.rollouts.Forget(rollout.Key{Workload: workload, Revision: name})
			}
		}
		if len(w.Revisions) == 0 && w.Names.Last() < before.UnixNano() {
			delete(s.rollouts.Workloads, workload)
		}
	}
}

// placements returns the records that show on which nodes the workload had pods, in the order of time. A
// node needs none. The rollouts know when pods began of which the page has dropped these records.
func (s *store) placements(w *workload) map[string][]placement {
	placed, created := map[string][]placement{}, w.creations()
	for _, m := range w.objects {
		for _, p := range m.wheres(created[m.chain[len(m.chain)-1].Name]) {
			if p.written.Equal(p.Time) { // Else the time at which it began is in the future, too.
				p.created = later(p.created, s.beganAt(w, p.pod))
			}
			placed[p.node] = append(placed[p.node], p)
		}
	}
	for _, all := range placed {
		slices.SortFunc(all, func(a, b placement) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.UID, b.UID)) })
	}
	if w.top.kind() == "node" {
		placed[w.top.Name] = nil
	}
	return placed
}

// creations returns the times at which pods were created, by their names.
func (w *workload) creations() map[string][]time.Time {
	created := map[string][]time.Time{}
	for _, r := range w.changed {
		if kind, name := rollout.NamedIn(r.Message); kind == "pod" && r.Reason == rollout.ReasonCreatedPod {
			created[name] = append(created[name], r.Time)
		}
	}
	return created
}

// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The bounds of what the store keeps to answer what changed.
const (
	maxWarned    = 64 // first warnings of a workload
	maxChanged   = 64 // records of a workload that can show a change
	maxElsewhere = 2_000
	maxRollouts  = 400   // of all workloads
	maxPods      = 2_000 // of all rollouts
	maxOwnPods   = 1_000 // of a rollout; later ones are not in its timeline
)

// notice is a record about a node or an autoscaler. It can matter to several workloads.
type notice struct {
	record
	cluster string
	top     object
}

// note keeps what can matter to other workloads than that of the entry.
func (s *store) note(e *entry) {
	top := e.chain[0]
	isNode := top.Kind == "node" && isNodeCondition(e.of[traitReason])
	isAutoscaler := top.Kind == "horizontalpodautoscaler" && e.of[traitReason] == reasonRescaled
	if !isNode && !isAutoscaler {
		return
	}
	s.elsewhere = insert(s.elsewhere, notice{recordOf(e), e.cluster, top}, func(n notice) time.Time { return n.Time })
	s.elsewhere = slices.Delete(s.elsewhere, 0, max(0, len(s.elsewhere)-maxElsewhere))
}

// keep keeps what can answer what changed, and what it changed.
func (w *workload) keep(e *entry, elsewhere []notice) {
	if e.uid != "" {
		w.uid, w.rollouts = e.uid, e.rollouts
	}
	if e.of.isWarning() {
		w.keepWarning(recordOf(e))
	}
	if canShowChange(e) {
		w.changed = insert(w.changed, recordOf(e), func(r record) time.Time { return r.Time })
		if len(w.changed) > maxChanged {
			w.dropChange()
		}
	}
	if len(w.warned) > maxWarned {
		w.thin(elsewhere)
	}
}

// matters reports whether what the workload has kept can be a part of an answer.
func (w *workload) matters() bool { return len(w.warned)+len(w.changed) > 0 }

// place keeps the record that shows where a pod is.
func (m *member) place(e *entry) {
	if e.node != "" && m.node != e.node {
		placed := recordOf(e)
		m.node, m.placed = e.node, &placed
	}
}

// reasonPreempted is the reason of a pod that the scheduler ended for another one.
const reasonPreempted = "Preempted"

// canShowChange reports whether a record of a workload can show that somebody changed it.
func canShowChange(e *entry) bool {
	switch e.of[traitReason] {
	case rollout.ReasonScaled, rollout.ReasonCreatedPod, reasonPreempted:
		return true
	case rollout.ReasonScheduled:
		return len(e.chain) == 1 // No owner has created the pod.
	}
	return false
}

// keepWarning keeps the first record of an event.
func (w *workload) keepWarning(r record) {
	known := slices.IndexFunc(w.warned, func(other record) bool { return r.event != "" && other.event == r.event })
	if known < 0 {
		w.warned = insert(w.warned, r, func(r record) time.Time { return r.FirstTime })
		return
	}
	w.warned[known].last = later(w.warned[known].last, r.Time)
}

// dropChange drops the oldest record of the most frequent reason: the pods of one scale-up must not
// displace the rollouts.
func (w *workload) dropChange() {
	counts := map[string]int64{}
	for _, r := range w.changed {
		counts[r.Reason]++
	}
	most, _ := mostFrequent(counts, 1)
	oldest := slices.IndexFunc(w.changed, func(r record) bool { return r.Reason == most[0] })
	w.changed = slices.Delete(w.changed, oldest, oldest+1)
}

// thin drops warnings of the older half. It keeps the first warning after each change.
func (w *workload) thin(elsewhere []notice) {
	var times []time.Time
	for _, r := range w.changed {
		times = append(times, r.Time)
	}
	for _, n := range elsewhere {
		times = append(times, n.Time)
	}
	kept := []record{w.warned[0]}
	for i, r := range w.warned[1:] {
		before := w.warned[i].FirstTime
		isFirst := slices.ContainsFunc(times, func(at time.Time) bool { return inSeconds(before, at) < 0 && inSeconds(at, r.FirstTime) <= 0 })
		if isFirst || i >= maxWarned/2 {
			kept = append(kept, r)
		}
	}
	w.warned = slices.Delete(kept, 0, max(0, len(kept)-maxWarned))
}

func (w *workload) forgetChanges(before time.Time) {
	w.warned = slices.DeleteFunc(w.warned, func(r record) bool { return r.last.Before(before) })
	w.changed = slices.DeleteFunc(w.changed, func(r record) bool { return r.Time.Before(before) })
}

// follow adds what the records of a batch say about rollouts.
func (s *store) follow(read *rollout.Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boundPods(read)
	for _, key := range s.rollouts.Join(read) {
		_, r := s.rollouts.Revision(key)
		r.News = s.now().UnixNano()
	}
	s.rollouts.Evict(maxRollouts, maxPods, func(rollout.Key, *rollout.Revision) {})
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

// placements returns the nodes on which the workload has pods, with a record that shows it. A node
// needs none.
func (w *workload) placements() map[string]*record {
	placed := map[string]*record{}
	for _, m := range w.objects {
		if m.placed == nil {
			continue
		}
		known := placed[m.node]
		if known == nil || cmp.Or(m.placed.Time.Compare(known.Time), cmp.Compare(m.placed.UID, known.UID)) > 0 {
			placed[m.node] = m.placed
		}
	}
	if w.top.Kind == "node" {
		placed[w.top.Name] = nil
	}
	return placed
}

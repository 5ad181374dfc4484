// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// scope returns what the affected pods have in common: their revision, and their node.
func (w *workloadAt) scope(p *Problem) (all []string) {
	if len(p.pods) == 0 {
		return nil
	}
	if text := w.scopeOfRevisions(p); text != "" {
		all = append(all, text)
	}
	if len(p.Nodes) == 1 && len(p.pods) > 1 {
		for _, pod := range w.alive(p) {
			if pod.Node != "" && pod.Node != p.Nodes[0] {
				return append(all, "all on "+p.Nodes[0])
			}
		}
	}
	return all
}

// alive returns the pods that had not ended when the problem began.
func (w *workloadAt) alive(p *Problem) (all []*rollout.PodState) {
	for _, pod := range w.pods {
		isAlive := (pod.Stopped == 0 || timeAt(pod.Stopped).After(p.Onset)) && pod.Workload == cmp.Or(p.intervals[0].uid, pod.Workload)
		if isAlive && (pod.Began == 0 || !timeAt(pod.Began).After(p.Last)) {
			all = append(all, pod)
		}
	}
	return all
}

// scopeOfRevisions compares the pods of the newest revision with those of the one before.
func (w *workloadAt) scopeOfRevisions(p *Problem) string {
	total := map[string]int{}
	for _, pod := range w.alive(p) {
		total[pod.Revision]++
	}
	for revision, n := range w.replicas {
		total[revision] = max(total[revision], n)
	}
	affected := map[string]int{}
	for _, uid := range p.pods {
		if pod := w.pods[uid]; pod != nil {
			affected[pod.Revision]++
		}
	}
	newest := w.newestRollout(p.Last, p.intervals[0].fact.rolloutObject())
	if newest == nil || newest.Replaced == "" || rollout.IsJob(newest.Revision) {
		if len(p.Revisions) != 1 || rollout.IsJob(p.Revisions[0]) {
			return ""
		}
		if all := total[p.Revisions[0]]; all > 1 {
			return share(affected[p.Revisions[0]], all)
		}
		return ""
	}
	isNew, isOld := affected[newest.Revision], affected[newest.Replaced]
	switch {
	case isNew > 0 && isOld > 0:
		return "pods of both revisions, so not the rollout of " + nameOf(newest.Revision)
	case isNew > 0 && total[newest.Replaced] > 0:
		return fmt.Sprintf("%s of the new revision, 0 of %d of the old one", share(isNew, total[newest.Revision]), total[newest.Replaced])
	case isNew > 0:
		return share(isNew, total[newest.Revision]) + " of the new revision"
	case isOld > 0 && total[newest.Revision] > 0:
		return fmt.Sprintf("%s of the old revision, 0 of %d of the new one", share(isOld, total[newest.Replaced]), total[newest.Revision])
	}
	return ""
}

// newestRollout returns the last rollout that began until a time, of a part of the workload; zero:
// of all.
func (w *workloadAt) newestRollout(until time.Time, part Object) *rollout.Rollout {
	for i := range slices.Backward(w.rolled) {
		if r := &w.rolled[i]; !timeAt(r.Start).After(until) && (part == Object{} || r.Controller == part.String()) {
			return r
		}
	}
	return nil
}

// share describes how many of all pods are affected.
func share(n, total int) string {
	if total < n {
		total = n
	}
	return fmt.Sprintf("%d of %s", n, rollout.Plural(total, "pod"))
}

// InWords returns a duration for people: 10 s, 6 min, 1 h 10 min.
func InWords(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

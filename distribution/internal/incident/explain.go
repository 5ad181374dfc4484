// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

const (
	// sameTime is the longest time between the onsets of problems that began together.
	sameTime = 10 * time.Second
	// afterRollout is the time after its pods began for which a rollout can be a cause, afterDone
	// the time after they started. If nothing ran before the rollout (afterFirst), it explains only
	// what fails at once.
	afterRollout, afterDone, afterFirst = 15 * time.Minute, 5 * time.Minute, 30 * time.Second
	afterScaling                        = 10 * time.Minute
	afterOthers                         = 2 * time.Minute // after a change of another workload in the namespace
	afterState                          = time.Minute     // after the end of a state of a node
	// resolution is the longest time by which the record of a change can be later than its effect,
	// because times have whole seconds.
	resolution = 2 * time.Second
	maxCauses  = 5
	maxOthers  = 2 // of them elsewhere in the namespace
)

// explain adds to a problem what it has in common with others, and its causes.
func (v *cut) explain(p *Problem) {
	others := v.begunWith(p)
	if n := len(others); n > 0 {
		number := rollout.Plural(n, "other workload")
		if n == maxBegun {
			number = "at least " + number
		}
		p.Scope = append(p.Scope, fmt.Sprintf("%s began to fail within %d s", number, int(sameTime.Seconds())))
	}
	p.Causes = ownCauses(p)
	for _, w := range slices.Concat(v.everywhere, v.in[space{p.Key.Cluster, p.Key.Namespace}]) {
		for i := range w.changes {
			if c, ok := v.causeOf(&w.changes[i], p, others); ok {
				p.Causes = append(p.Causes, c)
			}
		}
	}
	p.order()
	if len(p.Causes) > 0 {
		return
	}
	p.Unknown = "not known: no record shows a change that can have caused it"
	if since := v.model.Since(v.now); p.Onset.Before(since.Add(time.Minute)) {
		p.Unknown = "not known: it began before the time from which records are complete"
	}
	p.LastChange = v.lastChange(p)
}

// maxBegun bounds the other workloads that are named.
const maxBegun = 50

// begunWith returns the workloads of which a problem began at the same time.
func (v *cut) begunWith(p *Problem) (others []Key) {
	first, _ := slices.BinarySearchFunc(v.onsets, p.Onset.Add(-sameTime), func(o onset, at time.Time) int { return o.at.Compare(at) })
	for _, o := range v.onsets[first:] {
		if o.at.Sub(p.Onset) > sameTime || len(others) == maxBegun {
			break
		}
		isOther := o.key != p.Key && o.key.Cluster == p.Key.Cluster && o.class != classNode && p.Class != classNode
		if isOther && !slices.Contains(others, o.key) {
			others = append(others, o.key)
		}
	}
	return others
}

// ownCauses returns what the message of the problem names.
func ownCauses(p *Problem) []Cause {
	for _, f := range slices.Backward(p.facts) {
		for i := range own {
			if !f.shows(p.Class) {
				break
			}
			if slices.Contains(own[i].can, p.Class) && own[i].says.MatchString(f.Message) {
				c := Change{Kind: own[i].change, Text: own[i].tell(f), At: p.Onset, Key: p.Key, Object: f.Object().String(), Records: []string{f.ID}}
				return []Cause{{Change: c, Where: "message"}}
			}
		}
	}
	return []Cause{}
}

// causeOf returns the change as a cause, if it came before, can have this effect, and touches the problem.
func (v *cut) causeOf(c *Change, p *Problem, others []Key) (cause Cause, ok bool) {
	before := p.Onset.Sub(c.At)
	if c.Key.Cluster != p.Key.Cluster {
		return cause, false
	}
	late := resolution
	if c.row != nil {
		late += c.row.late
	}
	if before < -late || slices.Contains(p.Records, first(c.Records)) {
		return cause, false
	}
	cause = Cause{Change: *c, Before: Before(max(0, before))}
	isOwn := c.Key == p.Key
	switch {
	case isOwn && c.row == nil:
		cause.Where, ok = "workload", v.canOwn(c, p, len(others))
	case c.node != "" && slices.Contains(machines, c.Key.Top.GroupKind()):
		cause.Where, ok = "node", v.canNode(c, p)
	case isOwn:
		cause.Where, ok = "workload", before <= c.row.before && slices.Contains(c.row.can, p.Class) && v.tookPlace(c, p)
	case c.Key.Namespace == p.Key.Namespace && p.Key.Namespace != "", isGitOps(c):
		isVictim := c.row == nil && slices.Contains(others, c.Key)
		cause.Where, ok = "namespace", !isVictim && v.canOther(c, p)
		cause.Text = "also changed in " + p.Key.Namespace + ": " + c.Text
	}
	return cause, ok
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// canOwn reports whether a rollout, a scaling or the creation of a pod can have caused a problem of its workload. If
// several workloads began to fail at once, a rollout whose pods ran is not the cause.
func (v *cut) canOwn(c *Change, p *Problem, others int) bool {
	w, began := v.workloads[p.Key], p.Onset
	pod := w.pods[p.intervals[0].fact.Pod] // the one that had the problem first
	if pod != nil && pod.Began != 0 {
		began = earlier(began, timeAt(pod.Began))
	}
	before := p.Onset.Sub(c.At)
	isOfRevision := len(p.Revisions) == 0 || slices.Contains(p.Revisions, c.revision) && !w.wasThereBefore(p, c)
	switch c.Kind {
	case kindRollout:
		if c.To == 0 && c.From > 0 || rollout.IsJob(c.revision) || !isOfRevision || before > afterRollout+began.Sub(c.At) || p.Onset.Sub(began) > afterRollout {
			return false
		}
		after, most := p.Onset.Sub(c.done), afterDone
		if c.isFirst {
			most = afterFirst
		}
		isLate := after > most || began.After(c.done) && !began.Equal(p.Onset)
		return c.done.IsZero() || !isLate && (others < 2 || after <= afterFirst)
	case kindDeletion:
		return before <= afterScaling && slices.Contains(startups, p.Class) && pod != nil && !began.Before(c.At.Add(-resolution))
	case kindScaling, kindAutoscaler:
		if c.To < c.From {
			return before <= afterScaling && slices.Contains(runtimes, p.Class) && c.To > 0
		}
		isNew := !began.Before(c.At.Add(-resolution)) || p.Class == classCreate
		return before <= afterScaling && isNew && slices.Contains(startups, p.Class)
	}
	return false
}

// wasThereBefore reports whether pods that are older than a rollout have the problem, or had it before.
func (w *workloadAt) wasThereBefore(p *Problem, c *Change) bool {
	return slices.ContainsFunc(slices.Concat(p.intervals, p.before), func(s *interval) bool {
		pod := w.pods[s.fact.Pod]
		isOther := s.fact.Revision != c.revision && s.fact.Revision != ""
		return isOther && (s.onset().Before(c.At) || pod != nil && pod.Began != 0 && timeAt(pod.Began).Before(c.At.Add(-resolution)))
	})
}

// canNode reports whether the change of a node can have caused the problem of pods on it, or of pods that took the
// place of those that left it.
func (v *cut) canNode(c *Change, p *Problem) bool {
	at := earlier(p.Onset, c.At)
	if c.row == nil || !c.Until.IsZero() && p.Onset.Sub(c.Until) > afterState || c.row.end == "" && p.Onset.Sub(c.At) > c.row.before {
		return false
	}
	if c.Key == p.Key { // The node's own problem: NotReady explains itself only by an earlier change.
		return c.Kind == kindNode && c.At.Before(p.Onset)
	}
	w, ok := v.workloads[p.Key]
	if !ok {
		return false
	}
	onlyThere := len(p.Nodes) > 0
	for _, node := range p.Nodes {
		onlyThere = onlyThere && (node == c.node || v.hadChange(node, c, p))
	}
	if onlyThere && slices.Contains(p.Nodes, c.node) && slices.Contains(c.row.can, p.Class) {
		return true
	}
	return c.row.moves && w.leftAfter(c.node, at.Add(-statusUpdate)) && w.beganAfter(p, c.At.Add(-statusUpdate))
}

// node returns the known state of a node, or nil.
func (v *cut) node(cluster, name string) *workloadAt {
	return v.workloads[Key{cluster, "", Object{Kind: "node", Name: name}}]
}

// hadChange reports whether another node had the same change before the problem began.
func (v *cut) hadChange(node string, c *Change, p *Problem) bool {
	n := v.node(c.Key.Cluster, node)
	return n != nil && slices.ContainsFunc(n.changes, func(o Change) bool { return o.row == c.row && !o.At.After(p.Onset.Add(resolution)) })
}

// leftAfter reports whether a pod of the workload left the node after a time. The kubelet of a dead node says nothing:
// then an eviction shows it.
func (w *workloadAt) leftAfter(node string, at time.Time) bool {
	for _, c := range w.changes {
		pod := w.pods[c.pod]
		if (c.Kind == kindEviction || c.Kind == kindPreemption) && pod != nil && pod.Node == node && !c.At.Before(at) {
			return true
		}
	}
	for _, pod := range w.pods {
		if pod.Node == node && pod.Stopped != 0 && !timeAt(pod.Stopped).Before(at) {
			return true
		}
	}
	return false
}

// beganAfter reports whether all pods of the problem began after a time; it is false if it is not about pods.
func (w *workloadAt) beganAfter(p *Problem, at time.Time) bool {
	for _, uid := range p.pods {
		if pod := w.pods[uid]; pod == nil || pod.Began == 0 || timeAt(pod.Began).Before(at) {
			return false
		}
	}
	return len(p.pods) > 0
}

// tookPlace reports whether the pods of the problem began after a pod of the workload was evicted.
func (v *cut) tookPlace(c *Change, p *Problem) bool {
	if c.Kind != kindEviction && c.Kind != kindPreemption {
		return true
	}
	return p.Class == classCreate || v.workloads[p.Key].beganAfter(p, c.At.Add(-resolution))
}

func isGitOps(c *Change) bool { return c.Kind == kindGitOps }

// canOther reports whether what changed elsewhere in the namespace can have caused the problem.
func (v *cut) canOther(c *Change, p *Problem) bool {
	before := p.Onset.Sub(c.At)
	if c.Kind == kindRollout && before < afterScaling { // Its pods are replaced one after the other.
		before = p.Onset.Sub(earlier(later(c.At, c.done), p.Onset))
	}
	switch {
	case isGitOps(c):
		isNamed := c.Key.Top.Name == p.Key.Top.Name || strings.Contains(c.Text, "/"+p.Key.Top.Name)
		return before <= c.row.before && isNamed && slices.Contains(c.row.can, p.Class)
	case c.row != nil:
		return before <= c.row.before && slices.Contains(c.row.can, p.Class) && c.Kind == kindVolume
	case c.isFirst, c.Kind == kindScaling && c.To > c.From:
		return false
	}
	return before <= afterOthers && slices.Contains(runtimes, p.Class)
}

// order puts the likeliest cause first.
func (p *Problem) order() {
	slices.SortStableFunc(p.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.weight(p), a.weight(p)), cmp.Compare(a.Before, b.Before), compareChanges(b.Change, a.Change))
	})
	seen := map[string]int{}
	p.Causes = slices.DeleteFunc(p.Causes, func(c Cause) bool {
		key, most := c.Kind+c.Key.ID()+c.Text, 1
		switch {
		case c.Where == "namespace":
			key, most = c.Where, maxOthers
		case c.Kind == kindDeletion:
			key = c.Kind
		}
		seen[key]++
		return seen[key] > most
	})
	p.Causes = p.Causes[:min(len(p.Causes), maxCauses)]
}

// weight returns how closely the cause is connected with the problem. A rollout whose pods have run
// is as likely as what changed elsewhere: then the nearest one counts.
func (c *Cause) weight(p *Problem) int {
	switch {
	case c.Where == "message":
		return 4
	case c.Kind == kindRollout && !c.done.IsZero() && p.Onset.Sub(c.done) > afterFirst:
		return 1
	case c.Where == "workload":
		return 3
	case c.Where == "node":
		return 2
	case c.Where == "namespace":
		return 1
	}
	return 0
}

// lastChange returns the newest change of the workload before the onset.
func (v *cut) lastChange(p *Problem) *Cause {
	w := v.workloads[p.Key]
	for _, c := range slices.Backward(w.changes) {
		isItself := slices.Contains(p.Records, first(c.Records))
		if !isItself && !c.At.After(p.Onset) {
			return &Cause{Change: c, Before: Before(p.Onset.Sub(c.At)), Where: "workload"}
		}
	}
	return nil
}

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
		isAlive := pod.Stopped == 0 || timeAt(pod.Stopped).After(p.Onset)
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

// newestRollout returns the last rollout that began until a time, of a part of the workload; zero: of all.
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

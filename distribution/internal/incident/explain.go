// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

const (
	maxCauses = 5
	maxOthers = 2 // of them elsewhere in the namespace
	// maxLooked bounds the changes of one place that are looked at for one problem, the newest
	// before it.
	maxLooked = 500
)

// explanation is what a problem is compared with.
type explanation struct {
	*cut
	p      *Problem
	w      *workloadAt
	pod    *rollout.PodState    // that had the problem first; nil: not known
	began  time.Time            // when this pod began, or the problem
	others []Key                // workloads, and other namespaces, of which a problem began at the same time
	places map[*where][]*Change // the candidates of each place that was looked at
}

// explain adds to a problem what it has in common with others, and its causes, once.
func (v *cut) explain(p *Problem) {
	if p.isExplained {
		return
	}
	p.isExplained = true
	w := v.workloads[p.Key]
	others, within := v.begunWith(p)
	e := &explanation{
		cut: v, p: p, w: w, pod: w.pods[p.intervals[0].fact.Pod], began: p.Onset, others: others, places: map[*where][]*Change{},
	}
	if e.pod != nil && e.pod.Began != 0 {
		e.began = earlier(p.Onset, timeAt(e.pod.Began))
	}
	if n := e.inNamespace(); n > 0 {
		number := rollout.Plural(n, "other workload")
		if len(e.others) == maxBegun {
			number = "at least " + number
		}
		p.Scope = append(p.Scope, fmt.Sprintf("%s began to fail within %d s", number, int(within.Seconds())))
	}
	p.Causes = append(e.named(), e.changedConfigMap()...)
	for i := range links {
		l := &links[i]
		if !slices.Contains(l.can, p.Class) {
			continue
		}
		for _, c := range e.candidates(l.where) {
			if l.connects(c, e) {
				p.Causes = append(p.Causes, l.causeOf(c, e))
			}
		}
	}
	p.leaveOut(w.older, "older scaling")
	p.leaveOut(w.unread, "older repeat")
	p.order()
	if len(p.Causes) > 0 {
		return
	}
	p.Unknown = "not known: no record shows a change that can have caused it"
	if since := v.model.Since(v.now); p.Onset.Before(since.Add(startTime)) {
		p.Unknown = "not known: it began before the time from which records are complete"
	}
	if text := p.quietConfigMaps(); text != "" {
		p.Unknown += "; " + text
	}
	p.LastChange = e.lastChange()
}

// inNamespace returns how many of the others are in the namespace of the problem: at the same time,
// something happens in some other namespace.
func (e *explanation) inNamespace() (n int) {
	for _, key := range e.others {
		if key.Namespace == e.p.Key.Namespace {
			n++
		}
	}
	return n
}

// connects reports whether a change can have caused the problem, which is of a class that the link
// can cause.
func (l *link) connects(c *Change, e *explanation) bool {
	if !slices.Contains(l.changes, c.what) || e.p.Onset.Sub(c.At) < -(resolution+l.late) {
		return false
	}
	if uid := e.p.intervals[0].uid; c.Key == e.p.Key && c.uid != "" && uid != "" && c.uid != uid {
		return false // Another workload has had this name.
	}
	at, ok := l.from.of(c, e)
	isIn := ok && e.p.Onset.Sub(at) <= l.within && !slices.Contains(e.p.Records, first(c.Records))
	return isIn && !slices.ContainsFunc(l.only, func(only condition) bool { return !only.holds(c, e) })
}

func (l *link) causeOf(c *Change, e *explanation) Cause {
	p := e.p
	cause := Cause{Change: *c, Before: Before(max(0, p.Onset.Sub(c.At))), Where: l.where.name, weight: l.weight, isGuess: l.isGuess}
	if l.text != nil {
		cause.Text = l.text(c, e)
	}
	switch l.where {
	case whereNamespace, whereName:
		cause.Text = "also changed in " + p.Key.Namespace + ": " + c.Text
	case whereNameElsewhere:
		cause.Text = "reported from " + c.Key.Namespace + ": " + c.Text
	}
	return cause
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// candidates returns the changes of a place that a link can connect with the problem.
func (e *explanation) candidates(of *where) []*Change {
	if of == whereNameElsewhere {
		of = whereName
	}
	all, ok := e.places[of]
	if !ok {
		all = e.find(of)
		e.places[of] = all
	}
	return all
}

func (e *explanation) find(of *where) (all []*Change) {
	switch of {
	case whereWorkload, whereSameNode:
		return e.newest(e.w.changes, "workload")
	case whereNode:
		for _, node := range e.p.Nodes {
			all = append(all, e.changesOfNode(node)...)
		}
	case whereLeftNode:
		for _, node := range e.w.nodes {
			all = append(all, e.changesOfNode(node)...)
		}
	case whereNamespace:
		for _, c := range e.newest(e.in[space{e.p.Key.Cluster, e.p.Key.Namespace}], "namespace") {
			if c.Key != e.p.Key {
				all = append(all, c)
			}
		}
	case whereName:
		return e.deployments()
	}
	return all
}

// newest returns the newest changes before the problem, and those whose records can be late.
func (e *explanation) newest(all []*Change, of string) []*Change {
	end, _ := slices.BinarySearchFunc(all, e.p.Onset.Add(volumeUpdate+resolution+1), func(c *Change, at time.Time) int { return c.At.Compare(at) })
	e.p.leaveOut(end-maxLooked, "older "+of+" change")
	return all[max(0, end-maxLooked):end]
}

func (e *explanation) changesOfNode(name string) []*Change {
	if node := e.node(e.p.Key.Cluster, name); node != nil && node.key != e.p.Key {
		return e.newest(node.changes, "node")
	}
	return nil
}

// node returns the known state of a node, or nil.
func (v *cut) node(cluster, name string) *workloadAt {
	return v.workloads[Key{cluster, "", Object{Kind: "node", Name: name}}]
}

// maxBegun bounds the other workloads that are named.
const maxBegun = 50

// begunWith returns the workloads of which a problem began at the same time: each one soon after
// another one, so that all of them get the same answer. Those of another namespace count as one:
// else a busy one would hide the causes of all.
func (v *cut) begunWith(p *Problem) (others []Key, within time.Duration) {
	within = delay
	if p.Class == classNode {
		return nil, within
	}
	all := v.onsets[p.Key.Cluster]
	first, _ := slices.BinarySearchFunc(all, p.Onset, func(o onset, at time.Time) int { return o.at.Compare(at) })
	for _, step := range []int{1, -1} {
		before := p.Onset
		for i := first + min(step, 0); i >= 0 && i < len(all) && len(others) < maxBegun; i += step {
			o, pause := all[i], all[i].at.Sub(before).Abs()
			if pause > delay || o.at.Sub(p.Onset).Abs() > onceTime {
				break
			}
			if o.key.Namespace != p.Key.Namespace {
				if o.key = (Key{Namespace: o.key.Namespace}); slices.Contains(others, o.key) {
					continue
				}
			}
			if before = o.at; o.key == p.Key || slices.Contains(others, o.key) {
				continue
			}
			if others = append(others, o.key); o.at.Sub(p.Onset).Abs() > delay {
				within = onceTime
			}
		}
	}
	return others, within
}

// named returns what the message of the problem names.
func (e *explanation) named() []Cause {
	for _, f := range slices.Backward(e.p.facts) {
		for i := range messages {
			m := &messages[i]
			if !f.shows(e.p.Class) || !slices.Contains(m.can, e.p.Class) {
				continue
			}
			if text := m.describe(f); text != "" {
				c := Change{Kind: m.kind, Text: text, At: e.p.Onset, Key: e.p.Key, Object: f.Object().String(), Records: []string{f.ID}}
				return []Cause{{Change: c, Where: "message", weight: 6}}
			}
		}
	}
	return []Cause{}
}

// wasThereBefore reports whether some intervals are of pods that are older than a rollout, or began
// before it.
func (e *explanation) wasThereBefore(c *Change, all []*interval) bool {
	return slices.ContainsFunc(all, func(s *interval) bool {
		pod := e.w.pods[s.fact.Pod]
		isOther := s.fact.Revision != c.revision && s.fact.Revision != ""
		return isOther && (s.onset().Before(c.At) || pod != nil && pod.Began != 0 && timeAt(pod.Began).Before(c.At.Add(-resolution)))
	})
}

// hadChange reports whether another node had the same change before the problem began.
func (e *explanation) hadChange(node string, c *Change) bool {
	n := e.node(c.Key.Cluster, node)
	return n != nil && slices.ContainsFunc(n.changes, func(o *Change) bool { return o.what == c.what && !o.At.After(e.p.Onset.Add(resolution)) })
}

// leftAfter reports whether a pod of the workload left the node after a time. The kubelet of a dead
// node says nothing: then an eviction shows it.
func (w *workloadAt) leftAfter(node string, at time.Time) bool {
	for _, c := range w.changes {
		pod := w.pods[c.pod]
		if (c.what == podEvicted || c.what == podPreempted) && pod != nil && pod.Node == node && !c.At.Before(at) {
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

// beganAfter reports whether all pods of the problem began after a time; it is false if it is not
// about pods.
func (e *explanation) beganAfter(at time.Time) bool {
	for _, uid := range e.p.pods {
		if pod := e.w.pods[uid]; pod == nil || pod.Began == 0 || timeAt(pod.Began).Before(at) {
			return false
		}
	}
	return len(e.p.pods) > 0
}

// order puts the likeliest cause first.
func (p *Problem) order() {
	slices.SortStableFunc(p.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Before, b.Before), compareChanges(&b.Change, &a.Change))
	})
	seen, best := map[string]int{}, 0
	if len(p.Causes) > 0 {
		best = p.Causes[0].weight
	}
	p.Causes = slices.DeleteFunc(p.Causes, func(c Cause) bool {
		if c.isGuess && c.weight < best {
			return true
		}
		key, most := c.Kind+c.id+c.Text, 1
		switch {
		case c.Kind == kindRollout && c.Where == whereWorkload.name: // Two links of one change are one cause.
			key = c.Kind + c.Object + c.At.String()
		case c.Where == "namespace":
			key, most = c.Where, maxOthers
		case c.Kind == kindDeletion:
			key = c.Kind
		}
		seen[key]++
		return seen[key] > most
	})
	p.Causes = keep(p, p.Causes, maxCauses, "cause")
}

// lastChange returns the newest change of the workload before the onset.
func (e *explanation) lastChange() *Cause {
	for _, c := range slices.Backward(e.w.changes) {
		isItself := slices.Contains(e.p.Records, first(c.Records))
		if !isItself && !c.At.After(e.p.Onset) {
			return &Cause{Change: *c, Before: Before(e.p.Onset.Sub(c.At)), Where: "workload"}
		}
	}
	return nil
}

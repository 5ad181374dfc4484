// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// Problems returns the ongoing problems, and then those that are over, each the newest first.
func (v *At) Problems() []Problem {
	var chosen []*Problem
	for _, p := range v.joined() {
		if v.admits(p) {
			chosen = append(chosen, p)
		}
	}
	slices.SortFunc(chosen, compareProblems)
	firstOver := slices.IndexFunc(chosen, func(p *Problem) bool { return !p.Over.IsZero() })
	if firstOver < 0 {
		firstOver = len(chosen)
	}
	all := make([]Problem, 0, len(chosen))
	for i, p := range slices.Concat(spread(chosen[:firstOver]), spread(chosen[firstOver:])) {
		if i < maxExplained {
			v.explain(p)
		}
		all = append(all, *p)
		if !p.isExplained {
			all[i].Unknown = fmt.Sprintf("not looked for: there are more than %d problems", maxExplained)
		}
		all[i].shorten()
	}
	return all
}

// mostOfNamespace is the maximum number of problems of a namespace that come before those of
// others, so that one tenant does not displace what others look for.
const mostOfNamespace = 10

// shorten leaves out what would make an answer large.
func (p *Problem) shorten() {
	p.Pods = keep(p, p.Pods, maxRecords, "pod")
	p.Nodes = keep(p, p.Nodes, maxRecords, "node")
	p.Revisions = keep(p, p.Revisions, maxRecords, "revision")
	p.Members = keep(p, p.Members, maxMembers, "workload")
}

// keep returns the first values of a list, and notes what it leaves out.
func keep[T any](p *Problem, all []T, most int, noun string) []T {
	p.leaveOut(len(all)-most, noun)
	return all[:min(len(all), most)]
}

// leaveOut notes how much of something is not in the answer.
func (p *Problem) leaveOut(n int, noun string) {
	if n <= 0 {
		return
	}
	if p.LeftOut != "" {
		p.LeftOut += ", "
	}
	p.LeftOut += rollout.Plural(n, noun)
}

// spread returns the problems with those of a namespace that are too many behind all others.
func spread(all []*Problem) []*Problem {
	var early, late []*Problem
	counts := map[space]int{}
	for _, p := range all {
		in := space{p.Key.Cluster, p.Key.Namespace}
		if counts[in]++; counts[in] > mostOfNamespace {
			late = append(late, p)
		} else {
			early = append(early, p)
		}
	}
	return append(early, late...)
}

// maxExplained bounds the problems of an answer that are explained, so that no answer takes long.
const maxExplained = 200

// onset is the beginning of a problem of a workload.
type onset struct {
	at  time.Time
	key Key
}

func compareProblems(a, b *Problem) int {
	if order := cmp.Or(compareBools(b.Over.IsZero(), a.Over.IsZero()), b.Over.Compare(a.Over), b.Onset.Compare(a.Onset)); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Container, b.Container))
}

// admits reports whether something of the problem is in what the Query chooses.
func (v *At) admits(p *Problem) bool {
	if len(p.members) > 0 {
		return slices.ContainsFunc(p.members, v.admits)
	}
	isIn := p.Over.IsZero() || !later(p.Last, p.Over).Before(v.from)
	return isIn && v.query.admitsKey(p.Key, p.id) && slices.ContainsFunc(p.facts, v.query.admits)
}

// findProblems returns the problems of the workload. The intervals of several pods that overlap are
// one.
func (w *workloadAt) findProblems() (all []*Problem) {
	groups := map[string][]*interval{}
	intervals, unread := w.intervals()
	effects(intervals)
	var names []string
	for _, s := range intervals {
		name := s.name()
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], s)
	}
	for _, name := range names {
		all = append(all, w.newestProblem(groups[name]))
	}
	slices.SortStableFunc(all, compareProblems)
	if more := max(0, len(all)-maxProblems) + unread; more > 0 {
		all = all[:min(len(all), maxProblems)]
		all[len(all)-1].leaveOut(more, "other problem")
	}
	for _, p := range all {
		w.complete(p)
		p.identify()
	}
	slices.SortFunc(all, compareProblems)
	return all
}

// newestProblem returns the newest problem of one kind, with the earlier ones. One that goes on in
// other pods after a pause is another one, and so is one of a rollout that began when it was over.
func (w *workloadAt) newestProblem(intervals []*interval) *Problem {
	var first int // interval of the newest problem
	end := time.Time{}
	p := &Problem{Key: w.key, id: w.id, Causes: []Cause{}}
	for i, s := range intervals {
		if i > 0 && (s.onset().After(end.Add(probeQuiet)) || w.beganBetween(s.fact.Revision, end, s.onset())) {
			p.Earlier, first = append(p.Earlier, intervals[first].onset()), i
		}
		if end = later(end, s.over); s.over.IsZero() {
			end = w.now
		}
	}
	p.before, p.intervals = intervals[:first], intervals[first:]
	own := cmp.Or(p.intervals[0].shownBy, p.intervals[0])
	p.Class, p.Container, p.Onset = own.class, own.container, p.intervals[0].onset()
	goesOn := slices.ContainsFunc(p.intervals, func(s *interval) bool { return s.over.IsZero() })
	p.CanBeHarmless = goesOn
	for _, s := range p.intervals {
		p.Last, p.CanBeHarmless = later(p.Last, s.last()), p.CanBeHarmless && (s.canBeHarmless || !s.over.IsZero())
		if !goesOn && s.over.After(p.Over) {
			p.Over, p.Because = s.over, s.because
		}
	}
	return p
}

// complete adds what the order of problems does not need.
func (w *workloadAt) complete(p *Problem) {
	slices.Reverse(p.Earlier)
	p.Earlier = keep(p, p.Earlier, maxRecords, "earlier onset")
	var shown []occurrence
	older := 0
	for _, s := range p.intervals {
		shown, older = append(shown, s.occurrences...), max(older, s.older)
	}
	p.leaveOut(older, "older occurrence")
	slices.SortStableFunc(shown, func(a, b occurrence) int { return a.at.Compare(b.at) })
	isKnown := map[*Fact]bool{}
	for _, o := range shown {
		p.Count += o.n
		if !isKnown[o.Fact] {
			isKnown[o.Fact] = true
			p.facts = append(p.facts, o.Fact)
		}
	}
	p.CanBeHarmless = p.CanBeHarmless && p.Count < manyFailures
	w.affect(p)
	p.describe()
	p.describeEnd()
	p.Scope = w.scope(p)
	hadOther := func(s *interval) bool { return s.fact.Revision != "" && !slices.Contains(p.Revisions, s.fact.Revision) }
	if slices.ContainsFunc(p.before, hadOther) {
		p.Scope = append(p.Scope, "an earlier revision had it, too")
	}
}

// beganBetween reports whether a rollout of a revision began after a time, and until another one.
func (w *workloadAt) beganBetween(revision string, after, until time.Time) bool {
	return slices.ContainsFunc(w.rolled, func(r rollout.Rollout) bool {
		at := timeAt(r.Start)
		return r.Revision == revision && at.After(after) && !at.After(until)
	})
}

// affect notes the pods that have the problem, with their nodes and revisions.
func (w *workloadAt) affect(p *Problem) {
	p.Revisions = distinct(p.intervals, func(s *interval) string { return s.fact.Revision })
	p.pods = distinct(p.intervals, func(s *interval) string { return s.fact.Pod })
	ofPods := slices.DeleteFunc(slices.Clone(p.intervals), func(s *interval) bool { return s.fact.Pod == "" })
	p.Pods = distinct(ofPods, func(s *interval) string { return s.fact.Object().Name })
	p.Nodes = distinct(ofPods, w.nodeOf)
	p.PodCount, p.NodeCount, p.WorkloadCount = len(p.Pods), len(p.Nodes), 1
}

// distinct returns what intervals have, each value once.
func distinct(all []*interval, of func(*interval) string) (values []string) {
	isKnown := map[string]bool{"": true}
	for _, s := range all {
		if value := of(s); !isKnown[value] {
			isKnown[value] = true
			values = append(values, value)
		}
	}
	return values
}

const (
	maxMembers = 100 // of a problem in an answer
	maxRecords = 20  // of a problem in an answer, its earlier onsets, and the names of its pods, nodes and revisions
	// maxProblems bounds the problems of a workload: anybody may write any number of reasons.
	maxProblems = 100
	maxText     = 240 // bytes of a message in an answer
)

// describe chooses the message that explains most: the newest one that names a cause.
func (p *Problem) describe() {
	best := p.facts[0]
	for _, f := range p.facts {
		if cmp.Or(compareBools(f.shows(p.Class), best.shows(p.Class)), cmp.Compare(meaning(f), meaning(best)), f.Last.Compare(best.Last)) >= 0 {
			best = f
		}
	}
	p.Reason, p.Message, p.Record = best.Reason, record.Cut(best.Message, maxText), best.ID
	if best.Reason == reasonStarted {
		p.Message = fmt.Sprintf("The container %s started again, and nobody had killed it: it ended by itself", p.Container)
	}
	p.leaveOut(len(p.facts)-maxRecords, "older record")
	for _, f := range p.facts[max(0, len(p.facts)-maxRecords):] {
		p.Records = append(p.Records, f.ID)
	}
}

// meaning rates how much a message explains: "Back-off pulling image" and "Error: ErrImagePull"
// name no cause.
func meaning(f *Fact) int {
	switch {
	case !f.IsWarning():
		return 0
	case !record.HasCause(f.Message):
		return 1
	}
	return 2
}

// SPDX-License-Identifier: Apache-2.0

// Package problem follows problems over time: what a model shows at each look in, and what opened,
// changed and ended out. It keeps those that are over for 30 days.
//
// The package has no clock, no network and no storage. A Tracker can be stored as JSON; it must not
// be used concurrently.
package problem

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

const (
	// settle is the time for which a problem without a cause waits until it opens: a cause may
	// become known, and others may turn out to share it.
	settle = 10 * time.Second
	// flap is the time after its end was reported in which a problem that comes back is the same.
	flap = 5 * time.Minute
	// pause is the least time between two changes of a problem.
	pause = time.Minute
	// few pods are so few that twice as many are no news.
	few = 2
	// mostOfNamespace bounds the open problems of a namespace: anybody may write any number of
	// warnings there. It bounds those of several namespaces, too: they are a space of their own.
	mostOfNamespace = 100
	// mostOfCluster bounds the open problems of cluster-scoped objects, such as Nodes: only those who
	// may create Events in default or kube-system can open them.
	mostOfCluster = 1000
)

// The states of a problem in an Update.
const (
	Opened  = "opened"
	Changed = "changed"
	Ended   = "ended"
)

// Update is news of a problem.
type Update struct {
	State string
	Problem
	Shown    *incident.Problem // what the model shows of it; nil: nothing any more
	Previous []Problem         // the same problem before, within 30 days, the newest first
}

// Problem is what is kept of a problem.
type Problem struct {
	ID        string       `json:"id"`
	Series    string       `json:"series"`
	Others    []string     `json:"others,omitempty"` // the series of its effects, and of its members
	Key       incident.Key `json:"workload"`
	Class     string       `json:"class"`
	Sentence  string       `json:"sentence"`
	Onset     time.Time    `json:"since"`
	Over      time.Time    `json:"over,omitzero"`     // zero: it goes on
	Because   string       `json:"because,omitempty"` // why it is over
	IsOfMany  bool         `json:"of_many,omitempty"` // it was opened for workloads of several namespaces
	Pods      int          `json:"pods,omitempty"`
	Workloads int          `json:"workloads"`
	Reported  time.Time    `json:"reported"` // when an Update said this
}

// Tracker follows problems. The zero value knows none.
type Tracker struct {
	Open   []*Problem `json:"open,omitempty"`   // the first opened first
	Closed []Problem  `json:"closed,omitempty"` // the first ended first

	started time.Time // of the first look
	bytes   int       // of Closed
}

// Look compares what the model shows at a time with what is known, and returns the news: what ended
// first. Each problem is opened once, and ended once. If it is blind, events may be missing, so nothing ends.
func (t *Tracker) Look(now time.Time, shown []incident.Problem, isBlind bool) (news []Update) {
	if t.started.IsZero() {
		t.started = now
		t.measure()
	}
	t.forget(now)
	l := &look{Tracker: t, now: now, isBlind: isBlind, claimed: map[*Problem]*incident.Problem{}, bySeries: map[string]*Problem{}, goesOn: map[string]bool{}, counts: map[Space]int{}}
	for _, p := range slices.Backward(t.Open) { // If several have a series, the first opened counts.
		l.bySeries[p.Series] = p
		for _, series := range p.Others {
			l.bySeries[series] = p
		}
		l.counts[p.Space()]++
	}
	var fresh []*incident.Problem
	for i := range shown {
		if p := &shown[i]; !l.claim(p) && p.Over.IsZero() {
			fresh = append(fresh, p)
		}
	}
	if !isBlind {
		news = l.endUnclaimed()
	}
	for _, p := range slices.Clone(t.Open) {
		if update, ok := l.follow(p, l.claimed[p]); ok {
			news = append(news, update)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *incident.Problem) int {
		return cmp.Or(a.Onset.Compare(b.Onset), cmp.Compare(a.Series, b.Series))
	})
	for _, p := range fresh {
		if update, ok := l.open(p); ok {
			news = append(news, update)
		}
	}
	return news
}

// look is one comparison.
type look struct {
	*Tracker
	now      time.Time
	isBlind  bool
	bySeries map[string]*Problem // those that are open
	claimed  map[*Problem]*incident.Problem
	goesOn   map[string]bool // the series of what the model shows as going on
	counts   map[Space]int   // open problems
}

// Space is what has a bound of its own, so that a full one hides nothing from others: a namespace of a cluster, the
// cluster-scoped objects, which have no namespace, or the problems of several namespaces.
type Space struct {
	cluster, namespace string
	isOfMany           bool
}

// SpaceOf returns the space of what is about one workload.
func SpaceOf(k incident.Key) Space { return Space{cluster: k.Cluster, namespace: k.Namespace} }

func spaceOfShown(p *incident.Problem) Space {
	if p.Key.Namespace != "" && slices.ContainsFunc(p.Members, func(m incident.Member) bool { return m.Key.Namespace != p.Key.Namespace }) {
		return Space{cluster: p.Key.Cluster, isOfMany: true}
	}
	return SpaceOf(p.Key)
}

// Space returns the space of the problem.
func (p *Problem) Space() Space {
	if p.IsOfMany {
		return Space{cluster: p.Key.Cluster, isOfMany: true}
	}
	return SpaceOf(p.Key)
}

// most is how many problems of the space can be open.
func (s Space) most() int {
	if s.namespace == "" && !s.isOfMany {
		return mostOfCluster
	}
	return mostOfNamespace
}

// hasAny reports whether the problem, or something that it consists of, has a series for which is returns true.
func (p *Problem) hasAny(is func(series string) bool) bool {
	return is(p.Series) || slices.ContainsFunc(p.Others, is)
}

// claim notes that the model shows an open problem. Of several that are one now, the first opened
// goes on. One that is shown as going on wins over one that is over.
func (l *look) claim(p *incident.Problem) bool {
	var first *Problem
	for _, series := range p.AllSeries() {
		if p.Over.IsZero() {
			l.goesOn[series] = true
		}
		known := l.bySeries[series]
		if known == nil || first != nil && !known.Onset.Before(first.Onset) {
			continue
		}
		if other := l.claimed[known]; other == nil || !other.Over.IsZero() && p.Over.IsZero() {
			first = known
		}
	}
	if first == nil {
		return false
	}
	l.claimed[first] = p
	return true
}

// endUnclaimed ends what the model does not show by itself any more.
func (l *look) endUnclaimed() (news []Update) {
	for _, p := range slices.Clone(l.Open) {
		if l.claimed[p] != nil {
			continue
		}
		because := "no record shows it any more"
		if p.hasAny(func(series string) bool { return l.goesOn[series] }) {
			because = "it is a part of another problem"
		}
		news = append(news, l.end(p, nil, l.now, because))
	}
	return news
}

// follow notes what the model says of an open problem.
func (l *look) follow(p *Problem, shown *incident.Problem) (update Update, ok bool) {
	if shown == nil || l.isBlind && !shown.Over.IsZero() {
		return update, false
	}
	if !shown.Over.IsZero() {
		because := shown.Because
		if shown.Over.Before(l.started) {
			because += "; seen late"
		}
		return l.end(p, shown, shown.Over, because), true
	}
	if !p.differs(shown) || l.now.Sub(p.Reported) < pause {
		return update, false
	}
	return l.report(Changed, p, shown), true
}

// differs reports whether the problem says something else, or has spread.
func (p *Problem) differs(shown *incident.Problem) bool {
	hasSpread := shown.PodCount >= 2*max(few, p.Pods) || shown.WorkloadCount > p.Workloads
	return hasSpread || !onlyNumbersDiffer(shown.Sentence(), p.Sentence)
}

// onlyNumbersDiffer reports whether two sentences are the same but for numbers: those that matter are
// compared on their own.
func onlyNumbersDiffer(a, b string) bool {
	return strings.Map(withoutDigits, a) == strings.Map(withoutDigits, b)
}

func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// open begins a problem, if it is time, or continues one that was over a moment ago.
func (l *look) open(shown *incident.Problem) (update Update, ok bool) {
	isClear := !shown.CanBeHarmless && (len(shown.Causes) > 0 || l.now.Sub(shown.Onset) >= settle)
	in := spaceOfShown(shown)
	if !isClear || l.counts[in] >= in.most() {
		return update, false
	}
	l.counts[in]++
	if i := l.flapped(shown); i >= 0 {
		p := l.Closed[i]
		l.bytes -= p.size()
		l.Closed = slices.Delete(l.Closed, i, i+1)
		p.Over, p.Because = time.Time{}, ""
		l.Open = append(l.Open, &p)
		return l.report(Changed, &p, shown), true
	}
	p := &Problem{ID: shown.ID, Key: shown.Key, Onset: shown.Onset, IsOfMany: in.isOfMany}
	l.Open = append(l.Open, p)
	return l.report(Opened, p, shown), true
}

// flapped returns the index of the closed problem that goes on; -1: none does.
func (l *look) flapped(shown *incident.Problem) int {
	for i := range slices.Backward(l.Closed) {
		if p := &l.Closed[i]; p.ID == shown.ID || shown.Onset.Sub(p.Reported) <= flap && p.hasAny(func(series string) bool { return series == shown.Series }) {
			return i
		}
	}
	return -1
}

// report returns an Update with what the model shows now.
func (l *look) report(state string, p *Problem, shown *incident.Problem) Update {
	p.Sentence, p.Pods, p.Workloads, p.Reported = shown.Sentence(), shown.PodCount, shown.WorkloadCount, l.now
	p.Class, p.Series, p.Others = shown.Class, shown.Series, shown.AllSeries()[1:]
	return Update{State: state, Problem: *p, Shown: shown, Previous: l.previous(p)}
}

// end moves a problem to those that are over.
func (l *look) end(p *Problem, shown *incident.Problem, at time.Time, because string) Update {
	p.Over, p.Because, p.Reported = at, because, l.now
	l.Open = slices.DeleteFunc(l.Open, func(o *Problem) bool { return o == p })
	l.Closed = append(l.Closed, *p)
	l.bytes += p.size()
	return Update{State: Ended, Problem: *p, Shown: shown, Previous: l.previous(p)}
}

// previous returns the earlier problems of the same series.
func (t *Tracker) previous(p *Problem) (all []Problem) {
	for _, one := range slices.Backward(t.Closed) {
		if one.Series == p.Series && one.ID != p.ID {
			all = append(all, one)
		}
	}
	return all
}

// Known returns the open problem that has one of the series, and the earlier ones, the newest first. A nil
// problem is not open.
func (t *Tracker) Known(series []string) (open *Problem, previous []Problem) {
	isAsked := func(one string) bool { return slices.Contains(series, one) }
	for _, p := range t.Open {
		if open == nil && p.hasAny(isAsked) {
			known := *p
			open = &known
		}
	}
	for i := range slices.Backward(t.Closed) {
		if p := &t.Closed[i]; p.hasAny(isAsked) {
			previous = append(previous, *p)
		}
	}
	return open, previous
}

// measure computes the bytes of what was read.
func (t *Tracker) measure() {
	for i := range t.Closed {
		t.bytes += t.Closed[i].size()
	}
}

// size is about how many bytes the problem takes.
func (p *Problem) size() int {
	return 400 + len(p.Sentence) + len(p.Because) + len(p.Key.Namespace) + len(p.Key.Top.Name) + 32*len(p.Others)
}

// forget drops what is older than 30 days, and the oldest of the namespace that takes most.
func (t *Tracker) forget(now time.Time) {
	t.Closed = slices.DeleteFunc(t.Closed, func(p Problem) bool {
		isOld := now.Sub(p.Over) > KeptFor
		if isOld {
			t.bytes -= p.size()
		}
		return isOld
	})
	if t.bytes <= maxProblemsBytes {
		return
	}
	sizes := make([]kept, 0, len(t.Closed))
	for i := range t.Closed {
		p := &t.Closed[i]
		sizes = append(sizes, kept{p.ID, SpaceOf(p.Key), p.size()})
	}
	gone := beyond(sizes, maxProblemsBytes)
	t.Closed = slices.DeleteFunc(t.Closed, func(p Problem) bool { return gone[p.ID] })
	t.bytes = 0
	t.measure()
}

// Problems returns those that were open at a time or later, the newest first.
func (t *Tracker) Problems(at time.Time) (all []Problem) {
	for _, p := range t.Open {
		all = append(all, *p)
	}
	for _, p := range slices.Backward(t.Closed) {
		if !p.Over.Before(at) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return b.Onset.Compare(a.Onset) })
	return all
}

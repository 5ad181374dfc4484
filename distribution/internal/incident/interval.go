// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// occurrence is one moment of a fact that shows a problem.
type occurrence struct {
	*Fact
	at, until time.Time // the same, if it was once
	n         int64
}

// isKill reports whether a kubelet ended a container because of its probe.
func (o occurrence) isKill() bool { return o.Kind == record.KindRestarted }

// thread is what can have one problem at a time: a class of problems of an object, or of its
// container.
type thread struct {
	*symptom
	uid                        string // of the workload: its name can be used again
	reason, container, subject string
}

// interval is the time in which a thread has a problem.
type interval struct {
	thread
	fact        *Fact // of the object
	occurrences []occurrence
	over        time.Time // zero: it goes on
	because     string
	shownBy     *interval // what it is an effect of; nil: it is a problem of its own
	// pause is the longest one between two failures, and killed reports whether one of them ended
	// the container.
	pause  time.Duration
	killed bool
	// canBeHarmless is set if it goes on, and there were fewer failures than make a difference.
	canBeHarmless bool
	end           time.Time // of the last occurrence
	count         int64     // of the occurrences
	older         int       // occurrences of the thread that were not looked at
}

// maxOccurrences bounds what is looked at of a thread, the newest ones. A kubelet writes some 40 in
// an hour.
const maxOccurrences = 1000

func (s *interval) onset() time.Time { return s.occurrences[0].at }
func (s *interval) last() time.Time  { return s.end }

func (s *interval) add(o occurrence) {
	if len(s.occurrences) > 0 {
		s.pause = max(s.pause, o.at.Sub(s.last()))
	}
	s.occurrences, s.killed, s.end = append(s.occurrences, o), s.killed || o.isKill(), later(s.end, o.until)
	s.count += o.n
}

// name identifies the problem that intervals of several pods are.
func (s *interval) name() string {
	if s.shownBy != nil {
		return s.shownBy.name()
	}
	return s.ownName()
}

// ownName identifies the problem that the interval would be if it were no effect.
func (s *interval) ownName() string {
	return strings.Join([]string{s.class, s.uid, s.reason, s.container, s.fact.rolloutObject().String()}, "\n")
}

func compareIntervals(a, b *interval) int {
	if order := cmp.Or(a.onset().Compare(b.onset()), cmp.Compare(a.subject, b.subject)); order != 0 {
		return order
	}
	return cmp.Compare(a.name(), b.name())
}

// intervals returns the problems of each pod and each other object, and how many reasons were not
// looked at: an answer has room for those of the newest Events.
func (w *workloadAt) intervals() (all []*interval, unread int) {
	threads, reasons := map[thread][]occurrence{}, map[string]int{}
	for _, f := range slices.Backward(w.facts) {
		if f.symptom == nil {
			continue
		}
		t, shown := f.thread(f.symptom), w.shown(f)
		if len(shown) > 0 && t.reason != "" && reasons[t.reason] == 0 {
			reasons[t.reason] = len(reasons) + 1
		}
		if reasons[t.reason] <= maxProblems {
			threads[t] = append(threads[t], shown...)
		}
	}
	for _, o := range w.restarts() {
		t := o.thread(restarted)
		threads[t] = append(threads[t], o)
	}
	for t, occurrences := range threads {
		// A kill comes after the failure that it is for.
		slices.SortFunc(occurrences, func(a, b occurrence) int {
			return cmp.Or(a.at.Compare(b.at), compareBools(a.isKill(), b.isKill()), cmp.Compare(a.ID, b.ID))
		})
		older := max(0, len(occurrences)-maxOccurrences)
		occurrences = occurrences[older:]
		if t.grace > 0 {
			occurrences = w.withoutStarts(t, occurrences)
		}
		found := w.intervalsOf(t, occurrences)
		for _, s := range found {
			s.older = older
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, compareIntervals)
	return all, max(0, len(reasons)-maxProblems)
}

func (f *Fact) thread(s *symptom) thread {
	t := thread{symptom: s, uid: f.Workload.UID, subject: f.subject}
	switch s.by {
	case attributeContainer:
		t.container = f.Container
	case attributeReason:
		t.reason = f.Reason
	}
	return t
}

// intervalsOf cuts the occurrences of a thread where the problem was over in between.
func (w *workloadAt) intervalsOf(t thread, occurrences []occurrence) (all []*interval) {
	var s *interval
	for _, o := range occurrences {
		if s != nil {
			s.over, s.because = w.overAt(s, o.at)
		}
		if s == nil || !s.over.IsZero() {
			s = &interval{thread: t, fact: o.Fact}
			all = append(all, s)
		}
		s.add(o)
	}
	if s != nil {
		s.over, s.because = w.overAt(s, w.now)
		s.canBeHarmless = s.over.IsZero() && s.grace > 0 && !s.killed && s.count < s.least && !w.reportsSome(s)
	}
	return slices.DeleteFunc(all, w.wasHarmless)
}

// wasHarmless reports whether there were fewer failures than make a difference, or only those of a
// start that went well, and it is over.
func (w *workloadAt) wasHarmless(s *interval) bool {
	if s.over.IsZero() || s.grace == 0 || s.killed {
		return false
	}
	isStart := s.because != podEnded
	for _, o := range s.occurrences {
		isStart = isStart && o.at.Sub(w.startedBefore(o)) < s.grace
	}
	return s.count < s.least || isStart
}

const podEnded = "the pod has ended"

// shown returns the occurrences of a fact, without those of a pod that ends, if they do not go on.
func (w *workloadAt) shown(f *Fact) (all []occurrence) {
	for _, m := range f.Moments {
		all = append(all, occurrence{f, m.At, m.end(), m.N})
	}
	if f.First.Before(all[0].at) && f.Count > 1 {
		until, early := f.First, f.Count-f.total() // No record shows those.
		if early <= 0 {                            // The first record is of many occurrences, or later than the first one.
			if mean := all[0].at.Sub(f.First) / time.Duration(max(1, all[0].n-1)); mean <= f.symptom.quiet {
				until = all[0].at.Add(-mean) // Longer pauses are possible, but not likely.
			}
			early, all[0].n = 1, max(1, all[0].n-1)
		}
		all = slices.Insert(all, 0, occurrence{f, f.First, until, early})
	}
	pod := w.pods[f.Pod]
	if pod == nil || pod.Stopped == 0 || f.symptom.outlives {
		return all
	}
	if stopped := timeAt(pod.Stopped); f.Last.Before(stopped.Add(endTime)) {
		all = slices.DeleteFunc(all, func(o occurrence) bool { return !isBefore(o.at, stopped) })
	}
	return all
}

// isBefore reports whether a time is before another one, and not in the same second: most Events
// have whole seconds.
func isBefore(at, other time.Time) bool { return at.Before(other) && at.Unix() != other.Unix() }

// withoutStarts leaves out the failures while a container starts, unless they go on, or end the
// container. After many, a kubelet writes one in five minutes, so that nothing shows whether they
// go on.
func (w *workloadAt) withoutStarts(t thread, occurrences []occurrence) (left []occurrence) {
	starts, goesOn, counts := make([]time.Time, len(occurrences)), map[time.Time]bool{}, map[time.Time]int64{}
	for i, o := range occurrences {
		starts[i] = w.startedBefore(o)
		isLate := o.at.Sub(starts[i]) >= t.grace || o.isKill()
		if counts[starts[i]] += o.n; !isLate && counts[starts[i]] >= rollout.ManyEvents {
			goesOn[starts[i]] = true
		}
		if isLate && i > 0 && starts[i-1].Equal(starts[i]) {
			before := occurrences[i-1].at
			goesOn[starts[i]] = goesOn[starts[i]] || o.at.Sub(before) <= t.grace && before.Sub(starts[i]) < t.grace
		}
	}
	for i, o := range occurrences {
		if o.at.Sub(starts[i]) >= t.grace || goesOn[starts[i]] || o.isKill() {
			left = append(left, o)
		}
	}
	return left
}

// startedBefore returns when the container of a probe started last, or when its pod began; zero:
// not known.
func (w *workloadAt) startedBefore(o occurrence) time.Time {
	starts := w.timesOf(sign{o.subject, o.Container, reasonStarted})
	if i, _ := slices.BinarySearchFunc(starts, o.at.Add(1), time.Time.Compare); i > 0 {
		return starts[i-1]
	}
	if pod := w.pods[o.Pod]; pod != nil && pod.Began != 0 {
		return timeAt(pod.Began)
	}
	return time.Time{}
}

// restarts returns the restarts of containers that nobody had killed: they crashed, ran out of
// memory or ended.
func (w *workloadAt) restarts() (all []occurrence) {
	starts := map[[2]string][]*Fact{} // by pod and container
	for _, f := range w.facts {
		if f.Reason == reasonStarted && f.Pod != "" && !f.IsInit {
			id := [2]string{f.Pod, f.Container}
			starts[id] = append(starts[id], f)
		}
	}
	for _, facts := range starts {
		slices.SortFunc(facts, func(a, b *Fact) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Event, b.Event)) })
		all = append(all, w.restartsOf(facts)...)
	}
	return all
}

// restartsOf returns the starts of one container after its first one. The first record can be of a
// later one: then its count says so.
func (w *workloadAt) restartsOf(facts []*Fact) (all []occurrence) {
	previous := facts[0].First
	for i, f := range facts {
		for j, m := range f.Moments {
			n := m.N
			if !m.Until.IsZero() { // Nothing shows what ended the others.
				n = 1
			}
			if i == 0 && j == 0 && f.Count <= f.total() {
				n--
			}
			if n > 0 && !w.wasKilled(f, previous, m.At) {
				all = append(all, occurrence{f, m.At, m.end(), n})
			}
			previous = m.end()
		}
	}
	return all
}

func (f *Fact) total() (n int64) {
	for _, m := range f.Moments {
		n += m.N
	}
	return n
}

// wasKilled reports whether a kubelet ended the container, or the whole pod, between two of its
// starts.
func (w *workloadAt) wasKilled(f *Fact, from, until time.Time) bool {
	for _, s := range []sign{{f.Pod, f.Container, "Killing"}, {f.Pod, "", "Killing"}, {f.Pod, anyContainer, "SandboxChanged"}} {
		if at := firstFrom(w.timesOf(s), from); !at.IsZero() && !at.After(until) {
			return true
		}
	}
	return false
}

// overAt returns since when a problem was over, as far as it was known at a time; zero: it was not.
func (w *workloadAt) overAt(s *interval, now time.Time) (over time.Time, because string) {
	if pod := w.pods[s.fact.Pod]; pod != nil && pod.Stopped != 0 && !timeAt(pod.Stopped).After(now) && !s.outlives {
		return later(timeAt(pod.Stopped), s.last()), podEnded
	}
	if s.fact.isGone() && !s.outlives {
		return s.last(), "the pod no longer exists"
	}
	if at := w.recreated(s.uid); !at.IsZero() && !at.After(now) {
		return later(at, s.last()), "the workload was deleted, and another one has its name"
	}
	for i := range s.ends {
		e := &s.ends[i]
		at := w.endAfter(e, s, s.last().Add(e.after))
		if !at.IsZero() && !at.After(now) && now.Sub(s.last()) > e.holds {
			return at, e.text
		}
	}
	if quiet := w.quietOf(s); now.Sub(s.last()) > quiet {
		return s.last(), "nothing has repeated it for " + InWords(quiet)
	}
	return over, ""
}

// firstFrom returns the first of sorted times in the second of a time, or later; zero: there is
// none.
func firstFrom(times []time.Time, from time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(times, from.Truncate(time.Second), time.Time.Compare)
	if i == len(times) {
		return time.Time{}
	}
	return times[i]
}

// quietOf returns how long nothing may repeat the problem before it is over. A probe that fails is
// reported each time at first: three times the longest pause between its reports show that it is
// over. After a kill, the container has to fail again.
func (w *workloadAt) quietOf(s *interval) time.Duration {
	if s.grace == 0 || s.killed || s.count < s.least || w.reportsSome(s) {
		return s.quiet
	}
	return min(s.quiet, max(probeQuiet, 3*s.pause))
}

// A kubelet writes 25 Events about a pod at once, and then one in five minutes.
// (client-go/tools/record/events_cache.go, defaultSpamBurst and defaultSpamQPS)
const (
	burst      = rollout.ManyEvents // near 25: the model does not know all of them
	burstAgain = 5 * time.Minute
)

// reportsSome reports whether a kubelet had written so many Events about the pod at the last failure that it reported only
// some.
func (w *workloadAt) reportsSome(s *interval) bool {
	times := w.limitedAt(s.fact.Pod)
	i, _ := slices.BinarySearchFunc(times, s.last().Add(1), time.Time.Compare)
	return i > 0 && s.last().Sub(times[i-1]) <= burstAgain
}

// limitedAt returns when a kubelet had about no Event left for a pod, in order.
func (w *workloadAt) limitedAt(pod string) (times []time.Time) {
	times, ok := w.limited[pod]
	if ok {
		return times
	}
	var moments []Moment
	for _, f := range w.eventsOf(pod) {
		moments = append(append(moments, Moment{At: f.First, N: f.Count - f.total(), Until: f.Moments[0].At}), f.Moments...)
	}
	slices.SortFunc(moments, func(a, b Moment) int { return a.end().Compare(b.end()) })
	left, last := float64(burst), time.Time{}
	for _, m := range moments {
		begun := m.At
		if !last.IsZero() {
			begun = later(last, m.At)
			left = min(burst, left+float64(begun.Sub(last))/float64(burstAgain))
		}
		left += float64(max(0, m.end().Sub(begun))) / float64(burstAgain)
		if left = min(burst, max(0, left-float64(max(0, m.N)))); left < 2 && m.N > 0 {
			times = append(times, m.end())
		}
		last = m.end()
	}
	w.limited[pod] = times
	return times
}

// recreated returns when another object with the name of a workload appeared; zero: none did.
func (w *workloadAt) recreated(uid string) time.Time {
	i, _ := slices.BinarySearchFunc(w.appeared, w.uids[uid].Add(1), time.Time.Compare)
	if uid == "" || i == len(w.appeared) {
		return time.Time{}
	}
	return w.appeared[i]
}

// endAfter returns when something first ended a problem, from a time on; zero: nothing did.
func (w *workloadAt) endAfter(e *end, s *interval, from time.Time) (first time.Time) {
	look := func(in *workloadAt, subject, container string, reasons ...string) {
		for _, reason := range reasons {
			if at := firstFrom(in.timesOf(sign{subject, container, reason}), from); !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	switch e.on {
	case placeContainer:
		look(w, s.subject, cmp.Or(s.container, anyContainer), e.reasons...)
	case placeWorkload:
		look(w, "", anyContainer, e.reasons...)
	case placeRevision:
		look(w, s.fact.Revision, anyContainer, e.reasons...)
	case placeNode:
		look(w, s.subject, anyContainer, signEvicted)
		if node := w.node(w.key.Cluster, w.nodeOf(s)); node != nil {
			look(node, node.key.Top.String(), anyContainer, append(removals, endOfState(s.reason))...)
		}
	default:
		look(w, s.subject, anyContainer, e.reasons...)
	}
	return first
}

// nodeOf returns the node that has the problem, or whose pod has it.
func (w *workloadAt) nodeOf(s *interval) string {
	if s.fact.Pod == "" {
		return s.fact.Object().Name
	}
	if pod := w.pods[s.fact.Pod]; pod != nil {
		return pod.Node
	}
	return s.fact.Node
}

// effects notes which problems another one of the same container shows as well: a container that
// ends fails its probes, and one that cannot be created is also started again and again.
func effects(all []*interval) {
	groups := map[[2]string][]*interval{} // by pod and container
	for _, s := range all {
		if s.fact.Pod != "" {
			c := [2]string{s.fact.Pod, s.container}
			groups[c] = append(groups[c], s)
		}
	}
	for i := range symptoms {
		if len(symptoms[i].hides) == 0 {
			continue
		}
		for _, group := range groups {
			of := slices.DeleteFunc(slices.Clone(group), func(s *interval) bool { return s.symptom != &symptoms[i] || s.shownBy != nil })
			for _, s := range group {
				if s.shownBy == nil && slices.Contains(symptoms[i].hides, s.class) {
					s.shownBy = s.overlapping(of)
				}
			}
		}
	}
}

// overlapping returns the last of some intervals in which this one began, or that began a bit
// later; nil: there is none.
func (s *interval) overlapping(all []*interval) *interval {
	i, _ := slices.BinarySearchFunc(all, s.last().Add(startTime+1), func(a *interval, at time.Time) int { return a.onset().Compare(at) })
	if i == 0 || !all[i-1].over.IsZero() && s.onset().After(later(all[i-1].over, all[i-1].last())) {
		return nil
	}
	return all[i-1]
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func timeAt(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

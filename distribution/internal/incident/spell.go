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

// spells returns the problems of each pod and each other object.
func (w *known) spells() (all []*spell) {
	type thread struct{ class, reason, container, subject string }
	threads := map[thread][]occurrence{}
	add := func(class string, f *Fact, o ...occurrence) {
		t := thread{class: class, subject: f.subject()}
		switch class {
		case classImage, classStart, classCrash, classProbe:
			t.container = f.Container
		case classOther, classNode:
			t.reason = f.Reason
		}
		threads[t] = append(threads[t], o...)
	}
	for _, f := range w.facts {
		if class := classOf(f); class != "" {
			add(class, f, w.shown(f)...)
		}
	}
	for _, o := range w.restarts() {
		add(classCrash, o.Fact, o)
	}
	for t, occurrences := range threads {
		if occurrences = w.withoutProbesOfStarts(t.class, occurrences); len(occurrences) == 0 {
			continue
		}
		slices.SortFunc(occurrences, func(a, b occurrence) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.ID, b.ID)) })
		for _, part := range w.parts(t.class, occurrences) {
			s := &spell{class: t.class, reason: t.reason, container: t.container, fact: part[0].Fact, occurrences: part}
			if s.over, s.because = w.overOf(s); !s.wasHarmless() {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *spell) int {
		return cmp.Or(a.onset().Compare(b.onset()), cmp.Compare(a.fact.subject(), b.fact.subject()), cmp.Compare(a.name(), b.name()))
	})
	return all
}

// shown returns the occurrences of a fact, without those of a pod that ends, if they do not go on.
func (w *known) shown(f *Fact) (all []occurrence) {
	moments := f.Moments
	if f.First.Before(moments[0].At) && f.Count > 1 {
		moments = append([]Moment{{f.First, 1}}, moments...)
	}
	for _, m := range moments {
		all = append(all, occurrence{f, m.At, m.N})
	}
	if pod := w.pods[f.Pod]; pod != nil && pod.Stopped != 0 && f.Kind != "Evicted" {
		stopped := timeAt(pod.Stopped)
		if len(all) > 0 && all[len(all)-1].at.Before(stopped.Add(endTime)) {
			all = slices.DeleteFunc(all, func(o occurrence) bool { return !inSecond(o.at, stopped).Before(stopped) })
		}
	}
	return all
}

// inSecond returns the later one of two times that are in the same second: most Events have whole seconds.
func inSecond(at, other time.Time) time.Time {
	if at.Unix() == other.Unix() {
		return later(at, other)
	}
	return at
}

// withoutProbesOfStarts leaves out that a probe fails while a container starts, unless it goes on, or kills.
func (w *known) withoutProbesOfStarts(class string, occurrences []occurrence) []occurrence {
	if class != classProbe {
		return occurrences
	}
	isKill := func(o occurrence) bool { return o.Kind == record.KindRestarted }
	rank := func(o occurrence) int { return map[bool]int{true: 1}[isKill(o)] }
	slices.SortFunc(occurrences, func(a, b occurrence) int { // A kill comes after the failure that it is for.
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
	goesOn := map[time.Time]bool{} // by the start
	for i, o := range occurrences {
		started := w.startedBefore(o)
		isLate := o.at.Sub(started) >= startTime || isKill(o)
		isNext := i > 0 && o.at.Sub(occurrences[i-1].at) <= startTime && w.startedBefore(occurrences[i-1]).Equal(started)
		goesOn[started] = goesOn[started] || isLate && isNext && occurrences[i-1].at.Sub(started) < startTime
	}
	return slices.DeleteFunc(occurrences, func(o occurrence) bool {
		started := w.startedBefore(o)
		return o.at.Sub(started) < startTime && !goesOn[started] && !isKill(o)
	})
}

// startedBefore returns when the container of a probe started last, or when its pod began; zero: not known.
func (w *known) startedBefore(o occurrence) (started time.Time) {
	for _, f := range w.progress[o.Pod] {
		if f.Reason != reasonStarted || f.Container != o.Container {
			continue
		}
		for _, m := range f.Moments {
			if !inSecond(m.At, o.at).After(o.at) {
				started = later(started, m.At)
			}
		}
	}
	if pod := w.pods[o.Pod]; started.IsZero() && pod != nil && pod.Began != 0 {
		started = timeAt(pod.Began)
	}
	return started
}

// restarts returns the restarts of containers that nobody had killed: they crashed, ran out of memory or ended.
func (w *known) restarts() (all []occurrence) {
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

// restartsOf returns the starts of one container after its first one. The first record can be of a later one: then
// its count says so.
func (w *known) restartsOf(facts []*Fact) (all []occurrence) {
	previous := facts[0].First
	for i, f := range facts {
		seen := int64(0)
		for j, m := range f.Moments {
			seen += m.N
			n := m.N
			if i == 0 && j == 0 {
				n = f.Moments[0].N - 1
				if f.Count > f.total() {
					n = m.N
				}
			}
			if n > 0 && !w.wasKilled(f, previous, m.At) {
				all = append(all, occurrence{f, m.At, n})
			}
			previous = m.At
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

// wasKilled reports whether a kubelet ended the container, or the whole pod, between two of its starts.
func (w *known) wasKilled(of *Fact, from, until time.Time) bool {
	return slices.ContainsFunc(w.progress[of.Pod], func(f *Fact) bool {
		isKill := f.Reason == "Killing" && (f.Container == of.Container || f.Container == "") || f.Reason == "SandboxChanged"
		return isKill && slices.ContainsFunc(f.Moments, func(m Moment) bool {
			return !inSecond(m.At, from).Before(from) && !m.At.After(until)
		})
	})
}

// parts cuts occurrences where the problem was over in between.
func (w *known) parts(class string, occurrences []occurrence) (all [][]occurrence) {
	begin := 0
	for i := 1; i < len(occurrences); i++ {
		before := spell{class: class, fact: occurrences[begin].Fact, occurrences: occurrences[begin:i]}
		over, _ := w.overAt(&before, occurrences[i].at)
		if !over.IsZero() {
			all = append(all, occurrences[begin:i])
			begin = i
		}
	}
	return append(all, occurrences[begin:])
}

// overOf returns when a spell ended, and why. Zero means that it is ongoing.
func (w *known) overOf(s *spell) (over time.Time, because string) { return w.overAt(s, w.now) }

// overAt returns since when a spell was over, as far as it was known at a time.
func (w *known) overAt(s *spell, now time.Time) (over time.Time, because string) {
	if pod := w.pods[s.fact.Pod]; pod != nil && pod.Stopped != 0 && !timeAt(pod.Stopped).After(now) && s.class != classEviction {
		return later(timeAt(pod.Stopped), s.last()), "the pod has ended"
	}
	if at, text := w.recovery(s, now); !at.IsZero() {
		return at, text
	}
	if quiet := w.quietOf(s); now.Sub(s.last()) > quiet {
		return s.last(), "nothing has repeated it for " + InWords(quiet)
	}
	return over, ""
}

// leastFailures is the usual failureThreshold of a probe.
const leastFailures = 3

// wasHarmless reports whether a probe failed less often than makes a difference, and is over.
func (s *spell) wasHarmless() bool {
	count := int64(0)
	for _, o := range s.occurrences {
		if count += o.n; o.Kind == record.KindRestarted {
			return false
		}
	}
	return s.class == classProbe && !s.over.IsZero() && count < leastFailures
}

// quietOf returns how long nothing may repeat the spell before it is over. A probe that fails is reported each time
// at first: three times the longest pause between its reports show that it is over.
func (w *known) quietOf(s *spell) time.Duration {
	most := quietOf(s.class)
	if s.class == classNode && !hasEnd(s.fact.Reason) {
		most = usualQuiet
	}
	isKill := func(o occurrence) bool { return o.Kind == record.KindRestarted } // Its container has to fail again.
	if s.class != classProbe || w.events[s.fact.Pod] > rollout.ManyEvents || slices.ContainsFunc(s.occurrences, isKill) {
		return most
	}
	pause := time.Duration(0)
	for i := 1; i < len(s.occurrences); i++ {
		pause = max(pause, s.occurrences[i].at.Sub(s.occurrences[i-1].at))
	}
	return min(most, max(probeQuiet, 3*pause))
}

// hasEnd reports whether another Event ends the state of a node.
func hasEnd(reason string) bool {
	return slices.ContainsFunc(causes, func(r row) bool { return r.reason == reason && r.end != "" })
}

// recoveries are the Events that show that a problem is over.
var recoveries = map[string]struct {
	reasons []string
	text    string
}{
	classImage:    {[]string{"Pulled", "Created", reasonStarted}, "the image was pulled"},
	classStart:    {[]string{reasonStarted}, "the container started"},
	classMount:    {[]string{"Pulling", "Pulled", "Created", reasonStarted}, "the pod went on to start"},
	classSchedule: {[]string{"Scheduled"}, "the pod was scheduled"},
	classCreate:   {[]string{"SuccessfulCreate"}, "a pod was created"},
	classScale:    {[]string{"SuccessfulRescale"}, "the autoscaler set a size"},
}

// recovery returns when something showed that the spell is over; zero: nothing did.
func (w *known) recovery(s *spell, now time.Time) (at time.Time, text string) {
	after := func(f *Fact, least time.Time) (first time.Time) {
		for _, m := range f.Moments {
			if !inSecond(m.At, least).Before(least) && !m.At.After(now) && (first.IsZero() || m.At.Before(first)) {
				first = m.At
			}
		}
		return first
	}
	switch s.class {
	case classProbe:
		return w.availableAfter(s, now), "its pods became available"
	case classNode:
		return w.endOfState(s, now), "the node recovered, or it is gone"
	case classCrash:
		if now.Sub(s.last()) <= quietOf(classCrash) {
			return at, ""
		}
		text = "the container has run since"
	case classEviction:
		return w.startAfter(s.last(), now), "another pod has started"
	case classJob: // The next run of a CronJob has another name.
		return w.firstAfter(s.last(), now, func(f *Fact) bool { return f.Reason == "Completed" }), "a Job has completed"
	case classOther:
		return w.firstAfter(s.last(), now, func(f *Fact) bool { return f.subject() == s.fact.subject() && isSuccess(f) }), "it succeeded"
	}
	r := recoveries[s.class]
	if s.class == classCrash {
		r.reasons = []string{reasonStarted}
	}
	for _, f := range w.progress[s.fact.subject()] {
		if !slices.Contains(r.reasons, f.Reason) || s.container != "" && f.Container != s.container {
			continue
		}
		least := s.last()
		if s.class == classCreate { // Some pods of a batch can be created, and others not.
			least = least.Add(time.Second)
		}
		if shown := after(f, least); !shown.IsZero() && (at.IsZero() || shown.Before(at)) {
			at = shown
		}
	}
	return at, cmp.Or(text, r.text)
}

// availableAfter returns when the pods of the revision became available, after the probe failed for the last time.
func (w *known) availableAfter(s *spell, now time.Time) (at time.Time) {
	for _, r := range w.rolled {
		available := timeAt(r.Available)
		if r.Revision == s.fact.Revision && r.Available != 0 && !available.Before(s.last()) && !available.After(now) {
			return available
		}
	}
	return at
}

// endOfState returns when a state of a node ended.
func (w *known) endOfState(s *spell, now time.Time) (at time.Time) {
	i := slices.IndexFunc(causes, func(r row) bool { return r.reason == s.fact.Reason && r.end != "" })
	name := s.fact.Node
	if s.fact.Pod == "" {
		name = s.fact.Object().Name
	} else if pod := w.pods[s.fact.Pod]; pod != nil {
		name = pod.Node
	}
	for _, f := range w.progress[s.fact.Pod] { // It is deleted from the node.
		if r := rowOf(f); s.fact.Pod != "" && r != nil && r.change == kindEviction && !f.Last.Before(s.last()) && !f.Last.After(now) {
			return f.Last
		}
	}
	node := w.view.node(w.key.Cluster, name)
	if i < 0 || node == nil {
		return at
	}
	for _, f := range node.progress["node/"+name] {
		if (f.Reason == causes[i].end || f.Reason == "RemovingNode" || f.Reason == "DeletingNode") && !f.Last.Before(s.last()) && !f.Last.After(now) {
			return f.Last
		}
	}
	return at
}

// startAfter returns when a container of the workload started after a time.
func (w *known) startAfter(least, now time.Time) (at time.Time) {
	return w.firstAfter(least, now, func(f *Fact) bool { return f.Reason == reasonStarted && f.Last.Equal(f.First) })
}

// firstAfter returns when one of some Events that are no warnings occurred first after a time; zero: none did.
func (w *known) firstAfter(least, now time.Time, is func(*Fact) bool) (at time.Time) {
	for _, facts := range w.progress {
		for _, f := range facts {
			if !f.IsWarning() && f.Last.After(least) && !f.Last.After(now) && is(f) && (at.IsZero() || f.Last.Before(at)) {
				at = f.Last
			}
		}
	}
	return at
}

// isSuccess reports whether a controller has done its work.
func isSuccess(f *Fact) bool {
	text := strings.ToLower(f.Reason + " " + f.Message)
	return strings.Contains(text, "succe") && f.Pod == ""
}

func timeAt(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

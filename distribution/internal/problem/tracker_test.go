// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// shownProblem returns a problem that the model shows as going on.
func shownProblem(id, series string, onset time.Time) incident.Problem {
	return incident.Problem{
		ID: id, Series: series, Class: "schedule", Key: incident.Key{Namespace: "shop", Top: incident.Object{Kind: "deployment", Name: "web"}},
		Onset: onset, PodCount: 1, WorkloadCount: 1,
	}
}

// linesOf returns the news in short.
func linesOf(news []problem.Update) (lines []string) {
	for _, u := range news {
		lines = append(lines, u.ID+" "+u.State)
	}
	return lines
}

// TestAProblemThatSpreads is reported again if twice as many pods have it, four at least, or another workload. That
// it is on more nodes is no news.
func TestAProblemThatSpreads(t *testing.T) {
	for _, tt := range []struct {
		pods, morePods, moreWorkloads int
		isNews                        bool
	}{
		{1, 1, 1, false}, {1, 3, 1, false}, {1, 4, 1, true}, {3, 5, 1, false}, {3, 6, 1, true}, {3, 1, 1, false}, {1, 1, 2, true}, {5, 5, 2, true},
	} {
		tracker, now := &problem.Tracker{}, story.Epoch.Add(time.Hour)
		p := shownProblem("p", "s", story.Epoch)
		p.PodCount = tt.pods
		require.Equal(t, []string{"p opened"}, linesOf(tracker.Look(now, []incident.Problem{p}, false)))
		p.PodCount, p.WorkloadCount, p.NodeCount = tt.morePods, tt.moreWorkloads, 100
		assert.Empty(t, tracker.Look(now.Add(time.Minute-time.Second), []incident.Problem{p}, false), "too soon")
		news := tracker.Look(now.Add(time.Minute), []incident.Problem{p}, false)
		assert.Equal(t, tt.isNews, len(news) == 1, "%+v", tt)
	}
}

// TestNothingEndsWhileEventsMayBeMissing: neither what is not shown any more, nor what is shown as over.
func TestNothingEndsWhileEventsMayBeMissing(t *testing.T) {
	tracker, now := &problem.Tracker{}, story.Epoch.Add(time.Hour)
	a, b := shownProblem("a", "a", story.Epoch), shownProblem("b", "b", story.Epoch.Add(time.Second))
	require.Equal(t, []string{"a opened", "b opened"}, linesOf(tracker.Look(now, []incident.Problem{a, b}, true)))
	b.Over = now.Add(time.Second)
	for after := range 5 {
		assert.Empty(t, tracker.Look(now.Add(time.Duration(after)*time.Minute), []incident.Problem{b}, true))
	}
	b.Over = time.Time{}
	b.PodCount = 10
	assert.Equal(t, []string{"b changed"}, linesOf(tracker.Look(now.Add(10*time.Minute), []incident.Problem{b}, true)), "a change is none")
	b.Over = now.Add(time.Second)
	news := tracker.Look(now.Add(11*time.Minute), []incident.Problem{b}, false)
	require.Equal(t, []string{"a ended", "b ended"}, linesOf(news))
	assert.Equal(t, now.Add(11*time.Minute), news[0].Over, "when it was not shown any more")
	assert.Equal(t, "no record shows it any more", news[0].Because)
	assert.Equal(t, b.Over, news[1].Over)
}

// TestAProblemThatFallsApart goes on with the part that goes on, in whatever order the model shows its parts.
func TestAProblemThatFallsApart(t *testing.T) {
	now := story.Epoch.Add(time.Hour)
	over, goesOn := shownProblem("one", "one", story.Epoch), shownProblem("two", "two", story.Epoch)
	over.Over, over.Because = now, "the pod was scheduled"
	goesOn.PodCount = 4
	for _, shown := range [][]incident.Problem{{over, goesOn}, {goesOn, over}} {
		tracker := &problem.Tracker{Open: []*problem.Problem{{ID: "both", Series: "one", Others: []string{"two"}, Pods: 2, Workloads: 1}}}
		assert.Equal(t, []string{"both changed"}, linesOf(tracker.Look(now, shown, false)), shown[0].ID)
	}
	// Of two that are over, or that go on, the first one is it, and the other one is its own.
	both := []incident.Problem{shownProblem("one", "one", story.Epoch), shownProblem("two", "two", story.Epoch)}
	tracker := &problem.Tracker{Open: []*problem.Problem{{ID: "both", Series: "one", Others: []string{"two"}, Workloads: 1}}}
	assert.Equal(t, []string{"both changed", "two opened"}, linesOf(tracker.Look(now, both, false)))
	overToo := over
	overToo.Series, overToo.Because = "two", "another reason"
	tracker = &problem.Tracker{Open: []*problem.Problem{{ID: "both", Series: "one", Others: []string{"two"}, Workloads: 1}}}
	news := tracker.Look(now.Add(time.Minute), []incident.Problem{over, overToo}, false)
	require.Equal(t, []string{"both ended"}, linesOf(news))
	assert.Contains(t, news[0].Because, "the pod was scheduled")
}

// TestAProblemThatComesBack within five minutes after its end was reported is the same. Later, it is another one.
func TestAProblemThatComesBack(t *testing.T) {
	now := story.Epoch.Add(time.Hour)
	ended := problem.Problem{ID: "first", Series: "s", Others: []string{"effect"}, Over: now.Add(-time.Minute), Reported: now, Because: "the pod was scheduled"}
	for name, tt := range map[string]struct {
		id, series string
		after      time.Duration
		want       string
	}{
		"at once":          {"second", "s", time.Second, "first changed"},
		"after 5 minutes":  {"second", "s", 5 * time.Minute, "first changed"},
		"later":            {"second", "s", 5*time.Minute + 1, "second opened"},
		"as its effect":    {"second", "effect", time.Second, "first changed"},
		"another one":      {"second", "other", time.Second, "second opened"},
		"with its old id":  {"first", "other", time.Hour, "first changed"},
		"another workload": {"second", "t", 0, "second opened"},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := &problem.Tracker{Closed: []problem.Problem{ended}}
			onset := now.Add(tt.after)
			news := tracker.Look(onset.Add(time.Minute), []incident.Problem{shownProblem(tt.id, tt.series, onset)}, false)
			require.Equal(t, []string{tt.want}, linesOf(news))
			assert.Len(t, tracker.Open, 1)
			assert.Len(t, tracker.Closed, map[bool]int{true: 0, false: 1}[news[0].ID == "first"])
			assert.Zero(t, news[0].Over)
			assert.Empty(t, news[0].Because)
		})
	}
}

// TestAnEndDuringARestart: who reads that a problem was over before the first look says that it comes late.
func TestAnEndDuringARestart(t *testing.T) {
	now := story.Epoch.Add(time.Hour)
	tracker := &problem.Tracker{Open: []*problem.Problem{{ID: "a", Series: "a"}, {ID: "b", Series: "b"}}}
	a, b := shownProblem("a", "a", story.Epoch), shownProblem("b", "b", story.Epoch)
	a.Over, a.Because, b.Because = now.Add(-time.Minute), "the pod was scheduled", "the pod was scheduled"
	news := tracker.Look(now, []incident.Problem{a, b}, false)
	require.Equal(t, "a ended", linesOf(news)[0])
	assert.Equal(t, "the pod was scheduled; seen late", news[0].Because)
	b.Over = now.Add(time.Second)
	news = tracker.Look(now.Add(time.Minute), []incident.Problem{b}, false)
	require.Equal(t, []string{"b ended"}, linesOf(news))
	assert.Equal(t, "the pod was scheduled", news[0].Because)
}

// TestProblemsThatTurnOutToBeOne: the one that began first goes on, in whatever order they were opened.
func TestProblemsThatTurnOutToBeOne(t *testing.T) {
	m, now := incident.NewModel(story.Epoch.Add(-incident.Horizon)), story.Epoch.Add(time.Minute)
	for _, logs := range story.Logs("0:01 Pod/a-aaa-1 " + crash + "\n0:05 Pod/b-aaa-1 " + crash + "\n0:09 Pod/c-aaa-1 " + crash) {
		m.AddFacts(incident.FactsOf(record.Read(logs), now, false), now)
	}
	shown := m.At(t.Context(), now, incident.Query{}).Problems()
	require.Len(t, shown, 1)
	series := shown[0].AllSeries()
	require.Len(t, series, 3)
	for first := range 3 {
		tracker := &problem.Tracker{}
		for i, one := range series {
			onset := story.Epoch.Add(time.Duration(10+i) * time.Second)
			if i == first {
				onset = story.Epoch
			}
			tracker.Open = append(tracker.Open, &problem.Problem{ID: fmt.Sprint(i), Series: one, Onset: onset})
		}
		tracker.Look(now, shown, false)
		require.Len(t, tracker.Open, 1)
		assert.Equal(t, fmt.Sprint(first), tracker.Open[0].ID)
		for _, p := range tracker.Closed {
			assert.Equal(t, "it is a part of another problem", p.Because)
		}
	}
}

// TestAPartOfAnotherProblem: one that is not shown by itself any more is one, if what shows it goes on.
func TestAPartOfAnotherProblem(t *testing.T) {
	now := story.Epoch.Add(time.Hour)
	for because, isOver := range map[string]bool{"it is a part of another problem": false, "no record shows it any more": true} {
		tracker := &problem.Tracker{Open: []*problem.Problem{{ID: "whole", Series: "a", Others: []string{"b"}}, {ID: "part", Series: "b"}}}
		shown := shownProblem("whole", "b", story.Epoch)
		if isOver {
			shown.Over = now
		}
		news := tracker.Look(now, []incident.Problem{shown}, false)
		require.Equal(t, "part ended", linesOf(news)[0])
		assert.Equal(t, because, news[0].Because)
	}
}

// TestTheOrderOfWhatOpens: what began first, and of those that began at once always the same.
func TestTheOrderOfWhatOpens(t *testing.T) {
	var shown []incident.Problem
	for _, one := range []struct {
		id, series string
		after      time.Duration
	}{{"later", "a", time.Minute}, {"c", "c", 0}, {"b", "b", 0}, {"a", "d", 0}} {
		p := shownProblem(one.id, one.series, story.Epoch.Add(one.after))
		p.Class, p.Reason, p.Message, p.Last = map[bool]string{true: "node", false: "other"}[one.id == "c"], "Odd", "odd", story.Epoch.Add(time.Hour)
		shown = append(shown, p)
	}
	news := (&problem.Tracker{}).Look(story.Epoch.Add(time.Hour), shown, false)
	assert.Equal(t, []string{"b opened", "c opened", "a opened", "later opened"}, linesOf(news))
	assert.Equal(t, "node", news[1].Class)
}

// TestOtherNumbersAreNoNews, but other signs between them are.
func TestOtherNumbersAreNoNews(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		isNews        bool
	}{
		{"image 1", "image 2", false}, {"image 10", "image 9", false}, {"image 0", "image 1234567890", false}, {"image 1", "image", true},
		{"image 1.2", "image 12", true}, {"image 1:2", "image 12", true}, {"image 1", "image a", true},
	} {
		tracker, now := &problem.Tracker{}, story.Epoch.Add(time.Hour)
		p := shownProblem("p", "s", story.Epoch)
		p.Class, p.Reason, p.Message = "other", "Odd", tt.before
		require.Len(t, tracker.Look(now, []incident.Problem{p}, false), 1)
		p.Message = tt.after
		assert.Equal(t, tt.isNews, len(tracker.Look(now.Add(time.Minute), []incident.Problem{p}, false)) == 1, "%s, %s", tt.before, tt.after)
	}
}

// TestAnEndTakesRoom: what ends is bounded together with what has ended before.
func TestAnEndTakesRoom(t *testing.T) {
	tracker, now, long := &problem.Tracker{}, story.Epoch, strings.Repeat("x", 100_000)
	for i := range 490 {
		tracker.Closed = append(tracker.Closed, problem.Problem{ID: fmt.Sprint(i), Sentence: long, Over: now})
	}
	for round := range 2 {
		before := len(tracker.Closed)
		var shown []incident.Problem
		for i := range 50 {
			id := fmt.Sprint(round, "-", i)
			p := shownProblem(id, id, now.Add(-time.Hour))
			p.Class, p.Message = "other", long
			shown = append(shown, p)
		}
		assert.Len(t, tracker.Look(now, shown, false), 50)
		assert.Len(t, tracker.Closed, before, "there is room")
		assert.Len(t, tracker.Look(now, nil, false), 50)
		tracker.Look(now, nil, false)
		assert.Less(t, len(tracker.Closed), 500)
		assert.Greater(t, len(tracker.Closed), 450)
	}
}

// TestWhatIsKnownOfAProblem: the one that is open, and those before it, also of its effects.
func TestWhatIsKnownOfAProblem(t *testing.T) {
	tracker := &problem.Tracker{
		Open: []*problem.Problem{{ID: "open", Series: "a", Others: []string{"effect"}}, {ID: "later", Series: "a"}, {ID: "other", Series: "b"}},
		Closed: []problem.Problem{
			{ID: "oldest", Series: "a"}, {ID: "of others", Series: "c"}, {ID: "newest", Series: "c", Others: []string{"a"}},
		},
	}
	for _, tt := range []struct {
		series   []string
		open     string
		previous []string
	}{
		{[]string{"a"}, "open", []string{"newest", "oldest"}}, {[]string{"effect"}, "open", nil}, {[]string{"b"}, "other", nil},
		{[]string{"c"}, "", []string{"newest", "of others"}}, {[]string{"x", "b"}, "other", nil}, {nil, "", nil},
	} {
		open, previous := tracker.Known(tt.series)
		id, ids := "", []string(nil)
		if open != nil {
			id = open.ID
		}
		for _, p := range previous {
			ids = append(ids, p.ID)
		}
		assert.Equal(t, tt.open, id, tt.series)
		assert.Equal(t, tt.previous, ids, tt.series)
	}
}

// TestProblemsOfATime: those that are open, and those that were over later, the newest first.
func TestProblemsOfATime(t *testing.T) {
	at := story.Epoch
	tracker := &problem.Tracker{
		Open: []*problem.Problem{{ID: "open", Onset: at.Add(-time.Hour)}},
		Closed: []problem.Problem{
			{ID: "before", Onset: at.Add(-time.Minute), Over: at.Add(-1)}, {ID: "then", Onset: at.Add(-2 * time.Hour), Over: at}, {ID: "later", Onset: at, Over: at.Add(1)},
		},
	}
	var ids []string
	for _, p := range tracker.Problems(at) {
		ids = append(ids, p.ID)
	}
	assert.Equal(t, []string{"later", "open", "then"}, ids)
}

// TestProblemsAreKeptForThirtyDays after their end.
func TestProblemsAreKeptForThirtyDays(t *testing.T) {
	for after, want := range map[time.Duration]int{problem.KeptFor: 1, problem.KeptFor + 1: 0} {
		tracker := &problem.Tracker{Closed: []problem.Problem{{ID: "p", Over: story.Epoch}}}
		tracker.Look(story.Epoch.Add(after), nil, false)
		assert.Len(t, tracker.Closed, want, after)
	}
}

// TestNamespacesOfOtherClusters have room of their own.
func TestNamespacesOfOtherClusters(t *testing.T) {
	var shown []incident.Problem
	for i := range 150 {
		p := shownProblem(fmt.Sprint("p", i), fmt.Sprint("s", i), story.Epoch)
		p.Key.Cluster = "full"
		if i == 149 {
			p.ID, p.Key.Cluster = "of another cluster", "empty"
		}
		shown = append(shown, p)
	}
	for i := range 150 { // Objects without a namespace have more room.
		p := shownProblem(fmt.Sprint("n", i), fmt.Sprint("n", i), story.Epoch)
		p.Key = incident.Key{Cluster: "full", Top: incident.Object{Kind: "node", Name: fmt.Sprint("n", i)}}
		shown = append(shown, p)
	}
	news := (&problem.Tracker{}).Look(story.Epoch.Add(time.Minute), shown, false)
	assert.Len(t, news, 101+150)
	assert.Contains(t, linesOf(news), "of another cluster opened")
}

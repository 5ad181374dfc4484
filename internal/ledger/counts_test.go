// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// countsOf are the counts of streams that run.
func countsOf(namespaces ...string) *counts {
	return newCounts(newStreams(Coverage{Namespaces: namespaces}))
}

func (l *counts) Observe(stream string, ev *corev1.Event) int64 { return l.observe(l.see(stream, ev)) }
func (l *counts) Remember(stream string, ev *corev1.Event) int64 {
	return l.remember(l.see(stream, ev))
}
func (l *counts) Delete(stream string, ev *corev1.Event, at time.Time) {
	l.remove(l.see(stream, ev), at)
}

// state is one stored state of an event, in the words of the rules.
type state struct {
	name   string // "a" when empty
	uid    string
	rv     int
	count  int32
	series int32
	age    time.Duration // of the first occurrence when the object was created
}

func (s state) event() *corev1.Event {
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: s.name, UID: types.UID(s.uid), ResourceVersion: strconv.Itoa(s.rv),
			CreationTimestamp: metav1.NewTime(start),
		},
		Count: s.count,
	}
	if s.name == "" {
		ev.Name = "a"
	}
	if s.series != 0 {
		ev.Series = &corev1.EventSeries{Count: s.series}
	}
	if first := start.Add(-s.age); s.age != 0 && s.series != 0 {
		ev.EventTime = metav1.NewMicroTime(first)
	} else if s.age != 0 {
		ev.FirstTimestamp = metav1.NewTime(first)
	}
	return ev
}

type step struct {
	does string // see, remember, delete, list, listed, wait
	state
	wait time.Duration
	want int64
}

func TestOccurrences(t *testing.T) {
	see := func(s state, want int64) step { return step{does: "see", state: s, want: want} }
	remember := func(s state, want int64) step { return step{does: "remember", state: s, want: want} }
	gone := func(s state) step { return step{does: "delete", state: s} }
	list, listed := step{does: "list"}, step{does: "listed"}
	wait := func(d time.Duration) step { return step{does: "wait", wait: d} }

	tests := map[string][]step{
		"the first sight brings all its occurrences": {see(state{uid: "1", rv: 1, count: 3}, 3)},
		"a jump in the count is that many":           {see(state{uid: "1", rv: 1, count: 3}, 3), see(state{uid: "1", rv: 2, count: 11}, 8)},
		"new recorder: the first update is the second occurrence": {
			see(state{uid: "1", rv: 1}, 1), see(state{uid: "1", rv: 2, series: 2}, 1), see(state{uid: "1", rv: 3, series: 40}, 38),
		},
		"the same message twice is nothing new":       {see(state{uid: "1", rv: 1, count: 3}, 3), see(state{uid: "1", rv: 1, count: 3}, 0)},
		"a label or a rewritten message is nothing":   {see(state{uid: "1", rv: 1, count: 3}, 3), see(state{uid: "1", rv: 2, count: 3}, 0)},
		"an older state after a newer one is nothing": {see(state{uid: "1", rv: 5, count: 9}, 9), see(state{uid: "1", rv: 2, count: 3}, 0), see(state{uid: "1", rv: 6, count: 10}, 1)},
		"a count that goes down and up again is not counted twice": {
			see(state{uid: "1", rv: 1, count: 5}, 5), see(state{uid: "1", rv: 2, count: 1}, 0), see(state{uid: "1", rv: 3, count: 5}, 0), see(state{uid: "1", rv: 4, count: 6}, 1),
		},
		"re-created after its TTL with the cumulative count": {
			see(state{uid: "1", rv: 1, count: 41}, 41), gone(state{uid: "1", rv: 2, count: 41}), see(state{uid: "2", rv: 3, count: 42}, 1),
		},
		"re-created while nobody watched": {see(state{uid: "1", rv: 1, count: 41}, 41), see(state{uid: "2", rv: 9, count: 44}, 3)},
		"a series re-created with its cumulative count": {
			see(state{uid: "1", rv: 1, series: 7}, 7), gone(state{uid: "1", rv: 2, series: 7}), see(state{uid: "2", rv: 3, series: 8}, 1),
		},
		"same name, new UID, count not above: a new event": {
			see(state{uid: "1", rv: 1, count: 5}, 5), see(state{uid: "2", rv: 2, count: 5}, 5), see(state{uid: "2", rv: 3, count: 6}, 1),
		},
		"an earlier object of the name passed on again": {
			see(state{uid: "1", rv: 1, count: 5}, 5), see(state{uid: "2", rv: 2, count: 6}, 1), see(state{uid: "1", rv: 1, count: 5}, 0), see(state{uid: "2", rv: 3, count: 7}, 1),
		},
		"deletion is not an occurrence, even with a count not seen before": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 3, count: 6}), see(state{uid: "2", rv: 4, count: 7}, 1),
		},
		"a deletion passed on twice": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), gone(state{uid: "1", rv: 2, count: 5}), see(state{uid: "2", rv: 3, count: 6}, 1),
		},
		"a late duplicate after the deletion": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), see(state{uid: "1", rv: 1, count: 5}, 0),
			gone(state{uid: "1", rv: 2, count: 5}), wait(25 * time.Hour), see(state{uid: "2", rv: 3, count: 6}, 6),
		},
		"first occurrence long before creation: a re-creation that outlived our memory": {see(state{uid: "1", rv: 1, count: 60, age: 61 * time.Minute}, 1)},
		"first occurrence an hour before creation: throttled, not re-created":           {see(state{uid: "1", rv: 1, count: 60, age: time.Hour}, 60)},
		"a series that began long before creation: the same":                            {see(state{uid: "1", rv: 1, series: 60, age: 61 * time.Minute}, 1)},
		"a series that began an hour before creation: throttled, not re-created":        {see(state{uid: "1", rv: 1, series: 60, age: time.Hour}, 60)},
		"a first occurrence in 1970 is no time: all count":                              {see(state{uid: "1", rv: 1, count: 60, age: start.Sub(time.Unix(0, 0))}, 60)},
		"remembered for a day after deletion": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), wait(23*time.Hour + 59*time.Minute), see(state{uid: "2", rv: 3, count: 6}, 1),
		},
		"forgotten after a day": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), wait(24*time.Hour + time.Second), see(state{uid: "2", rv: 3, count: 6}, 6),
		},
		"what lives is never forgotten": {see(state{uid: "1", rv: 1, count: 5}, 5), wait(1000 * time.Hour), see(state{uid: "1", rv: 3, count: 6}, 1)},
		"what came back is not forgotten for its old deletion": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), see(state{uid: "2", rv: 3, count: 6}, 1), wait(48 * time.Hour), see(state{uid: "2", rv: 4, count: 7}, 1),
		},
		"what existed before the start is no news, what comes after is": {remember(state{uid: "1", rv: 1, count: 5}, 0), see(state{uid: "1", rv: 2, count: 7}, 2)},
		"a first listing that began again loses nothing":                {remember(state{uid: "1", rv: 1, count: 5}, 0), remember(state{uid: "1", rv: 2, count: 7}, 2)},
		"a relist tells what happened in the gap": {
			see(state{uid: "1", rv: 1, count: 5}, 5), list, see(state{uid: "1", rv: 9, count: 8}, 3), see(state{name: "b", uid: "2", rv: 8, count: 2}, 2), listed,
		},
		"what a relist does not hold was deleted": {
			see(state{uid: "1", rv: 1, count: 5}, 5), list, listed, wait(25 * time.Hour), see(state{uid: "2", rv: 30, count: 6}, 6),
		},
		"what was seen after the relist is not deleted by it": {
			list, listed, see(state{uid: "1", rv: 1, count: 5}, 5), list, see(state{uid: "1", rv: 1, count: 5}, 0), listed, wait(25 * time.Hour), see(state{uid: "1", rv: 30, count: 6}, 1),
		},
		"a late state lowers no version": {
			see(state{uid: "1", rv: 10, count: 5}, 5), see(state{uid: "1", rv: 8, count: 3}, 0), see(state{uid: "2", rv: 9, count: 9}, 0),
		},
		"nor does a late deletion": {
			see(state{uid: "1", rv: 10, count: 5}, 5), gone(state{uid: "1", rv: 8, count: 5}), see(state{uid: "2", rv: 9, count: 7}, 0),
		},
		"nor does a deletion lower the count": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 3}), see(state{uid: "2", rv: 3, count: 6}, 1),
		},
		"deleted, and there again before the receiver covers it": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), remember(state{uid: "2", rv: 3, count: 7}, 0), see(state{uid: "2", rv: 4, count: 8}, 1),
		},
		"only its deletion was seen": {
			gone(state{uid: "1", rv: 2, count: 5}), see(state{uid: "1", rv: 1, count: 5}, 0), see(state{uid: "2", rv: 3, count: 6}, 1),
		},
		"only the deletion of the next object was seen": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "2", rv: 5, count: 5}), wait(25 * time.Hour), see(state{uid: "3", rv: 6, count: 6}, 6),
		},
		"a deletion that comes again is not a later one": {
			see(state{uid: "1", rv: 1, count: 5}, 5), gone(state{uid: "1", rv: 2, count: 5}), wait(23 * time.Hour),
			gone(state{uid: "1", rv: 2, count: 5}), wait(2 * time.Hour), see(state{uid: "2", rv: 3, count: 6}, 6),
		},
		"nor is a list without what was deleted": {
			see(state{uid: "1", rv: 1, count: 5}, 5), see(state{name: "b", uid: "2", rv: 1, count: 1}, 1), gone(state{uid: "1", rv: 2, count: 5}),
			wait(23 * time.Hour), list, listed, wait(2 * time.Hour), see(state{uid: "3", rv: 3, count: 6}, 6),
		},
		"a resource version that is no number": {see(state{uid: "1", rv: 0, count: 2}, 2), see(state{uid: "1", rv: 0, count: 3}, 1)},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			l, now := countsOf(), start
			for i, s := range steps {
				got := int64(0)
				switch s.does {
				case "see":
					got = l.Observe("", s.event())
				case "remember":
					got = l.Remember("", s.event())
				case "delete":
					l.Delete("", s.event(), now)
				case "list":
					l.BeginList("")
				case "listed":
					l.EndList("", now)
				case "wait":
					now = now.Add(s.wait)
					l.Forget(now)
				}
				require.Equal(t, s.want, got, "step %d: %+v", i, s)
			}
		})
	}
}

func TestListingOneNamespaceSaysNothingOfAnother(t *testing.T) {
	l := countsOf()
	other := state{uid: "1", rv: 1, count: 5}.event()
	other.Namespace = "other"
	l.Observe("other", other)
	l.BeginList("ns")
	l.EndList("ns", start)
	l.Forget(start.Add(48 * time.Hour))
	assert.Zero(t, l.Observe("other", other), "still remembered as live")
}

func TestDeletedEventsAreBoundedOldestFirst(t *testing.T) {
	l := countsOf()
	const surplus = 10
	for i := range MaxDeleted + surplus {
		s := state{name: fmt.Sprint("e", i), uid: strconv.Itoa(i), rv: i + 1, count: 5}
		l.Observe("", s.event())
		l.Delete("", s.event(), start.Add(time.Duration(i)*time.Millisecond))
		l.Forget(start)
	}
	assert.Equal(t, 100_000, l.Len())
	assert.Equal(t, int64(6), l.Observe("", state{name: "e9", uid: "new", rv: 1_000_000, count: 6}.event()), "the oldest are forgotten")
	assert.Equal(t, int64(1), l.Observe("", state{name: "e10", uid: "new", rv: 1_000_001, count: 6}.event()), "the others are not")
}

func TestManyDeletedEventsAreForgottenBatchByBatch(t *testing.T) {
	l := countsOf()
	for i := range mostForgotten + 1 {
		ev := state{name: strconv.Itoa(i), uid: "u", rv: 1, count: 1}.event()
		l.Observe("", ev)
		l.Delete("", ev, start)
	}
	l.Forget(start.Add(RememberDeleted))
	assert.Equal(t, 1, l.Len())
	l.Forget(start.Add(RememberDeleted))
	assert.Zero(t, l.Len())
}

func TestAnEventThatIsDeletedAgainAndAgainTakesTheMemoryOfOne(t *testing.T) {
	l, version := countsOf(), 0
	remove := func(name string) {
		version++
		s := state{name: name, uid: strconv.Itoa(version), rv: version, count: 1}
		l.Observe("", s.event())
		l.Delete("", s.event(), start.Add(time.Duration(version)*time.Second))
	}
	remove("before")
	for range 10 {
		remove("again")
	}
	remove("after")
	assert.Equal(t, 3, l.deleted.Len())
	for i, at := range []int{1, version - 1, version} {
		l.Forget(start.Add(RememberDeleted + time.Duration(at)*time.Second))
		assert.Equal(t, 2-i, l.Len(), "the order of deletions stays")
		assert.Equal(t, l.Len(), l.deleted.Len())
	}
}

// takeChanged returns the events that have changed since it was last called.
func takeChanged(l *counts) map[identity]*stream {
	defer func() { l.changed = map[identity]*stream{} }()
	return l.changed
}

// reopened is the ledger as a new process finds it: everything that changed was saved and is
// restored.
func reopened(t *testing.T, saved map[identity][]byte, l *counts, streams ...string) *counts {
	t.Helper()
	for k, from := range takeChanged(l) {
		if value := l.value(k, from); value != nil {
			saved[k] = value
		} else {
			delete(saved, k)
		}
	}
	restored := countsOf(streams...)
	restored.changed = map[identity]*stream{}
	for k, value := range saved {
		require.NoError(t, restored.Restore(string(k[:]), value))
	}
	restored.Settle()
	restored.EndPast(start)
	return restored
}

func TestARestoredLedgerKnowsWhatTheOldOneKnew(t *testing.T) {
	saved, l := map[identity][]byte{}, countsOf()
	l.changed = map[identity]*stream{}
	l.Observe("ns", state{name: "a", uid: "1", rv: 1, count: 5}.event())
	l.Observe("ns", state{name: "b", uid: "2", rv: 2, count: 7}.event())
	l.Observe("ns", state{name: "c", uid: "3", rv: 3, count: 1}.event())
	l.Delete("ns", state{name: "b", uid: "2", rv: 4, count: 7}.event(), start)
	l = reopened(t, saved, l, "ns")

	assert.Zero(t, l.Observe("ns", state{name: "a", uid: "1", rv: 1, count: 5}.event()))
	assert.Equal(t, int64(2), l.Observe("ns", state{name: "a", uid: "1", rv: 6, count: 7}.event()))
	assert.Equal(t, int64(1), l.Observe("ns", state{name: "b", uid: "9", rv: 7, count: 8}.event()), "also what was deleted")

	l.BeginList("ns")
	l.Observe("ns", state{name: "a", uid: "1", rv: 6, count: 7}.event())
	l.Observe("ns", state{name: "b", uid: "9", rv: 7, count: 8}.event())
	l.EndList("ns", start)
	l.Forget(start.Add(25 * time.Hour))
	assert.Equal(t, 2, l.Len(), "what was deleted while nobody ran is noticed")

	l = reopened(t, saved, l, "ns")
	l.Forget(start.Add(25 * time.Hour))
	assert.Equal(t, 2, l.Len(), "what was forgotten does not come back")
}

func TestAnEmptyListAfterARestartSaysThatAllEventsWereDeleted(t *testing.T) {
	l := countsOf()
	l.changed = map[identity]*stream{}
	l.Observe("ns", state{name: "a", uid: "1", rv: 1, count: 5}.event())
	l = reopened(t, map[identity][]byte{}, l, "ns")
	l.BeginList("ns")
	l.EndList("ns", start)
	l.Forget(start.Add(RememberDeleted))
	assert.Zero(t, l.Len())
}

func TestRestoredDeletionsAreForgottenInTheirOrder(t *testing.T) {
	l := countsOf()
	l.changed = map[identity]*stream{}
	for i := range 50 {
		l.Delete("", state{name: fmt.Sprint("e", i), uid: "1", rv: 1, count: 1}.event(), start.Add(time.Duration(i)*time.Minute))
	}
	l = reopened(t, map[identity][]byte{}, l, "")
	for i := range 50 {
		l.Forget(start.Add(RememberDeleted + time.Duration(i)*time.Minute))
		assert.Equal(t, 49-i, l.Len())
	}
}

func TestOnlyChangesAreSaved(t *testing.T) {
	l := countsOf()
	l.changed = map[identity]*stream{}
	one := state{uid: "1", rv: 1, count: 5}.event()
	l.Observe("ns", one)
	assert.Len(t, takeChanged(l), 1)
	l.Observe("ns", one)
	l.BeginList("ns")
	l.Observe("ns", one)
	l.EndList("ns", start)
	assert.Empty(t, takeChanged(l), "the same state again, also in a listing, changes nothing")
	l.Observe("ns", state{uid: "1", rv: 2, count: 6}.event())
	assert.Len(t, takeChanged(l), 1)
}

func TestWhatCameFromAStreamThatNoLongerRunsIsForgottenInTime(t *testing.T) {
	saved, l := map[identity][]byte{}, countsOf()
	l.changed = map[identity]*stream{}
	l.Observe("ns", state{uid: "1", rv: 1, count: 5}.event())
	l = reopened(t, saved, l, "other")
	assert.Equal(t, int64(1), l.Observe("other", state{uid: "1", rv: 2, count: 6}.event()), "it is known still")
	l = reopened(t, saved, l, "third")
	l.Forget(start.Add(25 * time.Hour))
	assert.Zero(t, l.Len())
}

// in returns the event in another namespace.
func in(namespace string, s state) *corev1.Event {
	ev := s.event()
	ev.Namespace = namespace
	return ev
}

func TestAnEventThatAnotherStreamListsIsAlive(t *testing.T) {
	saved, l := map[identity][]byte{}, countsOf()
	l.changed = map[identity]*stream{}
	l.Observe("", state{uid: "1", rv: 1, count: 5}.event())
	l = reopened(t, saved, l, "ns")
	l.BeginList("ns")
	assert.Zero(t, l.Observe("ns", state{uid: "1", rv: 1, count: 5}.event()))
	l.EndList("ns", start)
	l.Forget(start.Add(48 * time.Hour))
	assert.Equal(t, 1, l.Len(), "it has not been deleted")
	assert.Equal(t, int64(1), l.Observe("ns", state{uid: "1", rv: 9, count: 6}.event()))
}

func TestStreamsThatComeAndGoAreToldApart(t *testing.T) {
	saved, l := map[identity][]byte{}, countsOf()
	l.changed = map[identity]*stream{}
	restart := func(streams ...string) {
		l = reopened(t, saved, l, streams...)
		for _, stream := range streams {
			l.BeginList(stream)
		}
	}
	restart("")
	for _, stream := range []string{"a", "b"} {
		restart(stream)
	}
	restart("a", "b")
	l.Remember("a", in("a", state{uid: "1", rv: 1, count: 5}))
	l.EndList("b", start)
	assert.Equal(t, int64(2), l.Remember("a", in("a", state{uid: "1", rv: 2, count: 7})), "the listing of b says nothing of a")
}

func TestAfterARestoreNoRememberedVersionCounts(t *testing.T) {
	saved, l := map[identity][]byte{}, countsOf()
	l.changed = map[identity]*stream{}
	l.Observe("a", in("a", state{uid: "1", rv: 90, count: 5}))
	l.Observe("b", in("b", state{uid: "2", rv: 95, count: 5}))
	l.Observe("b", in("b", state{name: "c", uid: "3", rv: 96, count: 5}))
	l = reopened(t, saved, l, "a")
	l.ForgetVersions("a")
	assert.Zero(t, l.Observe("a", in("a", state{uid: "1", rv: 10, count: 3})), "the count went back")
	assert.Equal(t, int64(1), l.Observe("a", in("a", state{uid: "1", rv: 11, count: 4})), "and is the new baseline")

	saved = map[identity][]byte{}
	for _, from := range l.byID {
		for k := range from.events {
			l.note(k, from)
		}
	}
	l = reopened(t, saved, l, "a", "b")
	assert.Equal(t, int64(7), l.Observe("b", in("b", state{uid: "4", rv: 12, count: 12})), "also of a stream that did not run then")
	assert.Equal(t, int64(2), l.Observe("b", in("b", state{name: "c", uid: "5", rv: 13, count: 2})), "a new event under an old name")
}

func TestAnEntryThatIsNoEntry(t *testing.T) {
	require.Error(t, countsOf().Restore(string(make([]byte, len(identity{}))), []byte("short")))
}

// TestVersionsThatCannotBeCompared has versions that are no numbers, or none that fits: the order
// in which the states come then decides.
func TestVersionsThatCannotBeCompared(t *testing.T) {
	for _, versions := range [][2]string{
		{"opaque-a", "opaque-b"}, {"", ""}, {"-2", "-1"}, {"18446744073709551615", "18446744073709551615"},
		{"99999999999999999999", "99999999999999999999"}, {"7", "opaque"}, {"opaque", "7"}, {"9223372036854775808", "9223372036854775809"},
	} {
		at := func(uid, version string, count int32) *corev1.Event {
			return &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: types.UID(uid), ResourceVersion: version}, Count: count,
			}
		}
		l := countsOf()
		assert.EqualValues(t, 3, l.Observe("", at("1", versions[0], 3)), versions)
		assert.EqualValues(t, 1, l.Observe("", at("2", versions[1], 1)), "%q: it was created again", versions)
		assert.EqualValues(t, 0, l.Observe("", at("2", versions[1], 1)), "%q: a duplicate", versions)
		assert.EqualValues(t, 1, l.Observe("", at("2", versions[1], 2)), versions)

		l = countsOf()
		assert.EqualValues(t, 3, l.Observe("", at("1", versions[0], 3)), versions)
		l.Delete("", at("1", versions[0], 3), start)
		assert.EqualValues(t, 1, l.Observe("", at("2", versions[1], 4)), "%q: with the count that the recorder knows", versions)
		assert.EqualValues(t, 0, l.Observe("", at("2", versions[1], 1)), "%q: an edited count", versions)
		assert.EqualValues(t, 0, l.Observe("", at("2", versions[1], 4)), versions)
	}
}

func TestARestoredEventIsAsTheLastValueSays(t *testing.T) {
	live, deleted := countsOf(), countsOf()
	ev := state{uid: "1", rv: 1, count: 5}.event()
	live.Observe("ns", ev)
	deleted.Observe("ns", ev)
	deleted.Delete("ns", ev, start)
	key := live.see("ns", ev).identity
	tests := map[string]struct {
		values [][]byte
		// How many events are remembered, and how many once the time of deleted ones is over.
		want, wantLater int
	}{
		"alive":                     {[][]byte{live.value(key, live.get("ns"))}, 1, 1},
		"deleted":                   {[][]byte{deleted.value(key, deleted.get("ns"))}, 1, 0},
		"deleted, then alive again": {[][]byte{deleted.value(key, deleted.get("ns")), live.value(key, live.get("ns"))}, 1, 1},
		"alive, then forgotten":     {[][]byte{live.value(key, live.get("ns")), nil}, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := countsOf()
			for _, value := range test.values {
				require.NoError(t, l.Restore(string(key[:]), value))
			}
			l.Settle()
			assert.Equal(t, test.want, l.Len())
			l.Forget(start.Add(RememberDeleted))
			assert.Equal(t, test.wantLater, l.Len())
		})
	}
}

func TestAnEventThatIsDeletedAgainIsRememberedFromTheLastDeletion(t *testing.T) {
	l := countsOf()
	for i := range 2 {
		s := state{uid: strconv.Itoa(i), rv: i + 1, count: int32(i + 1)}
		l.Observe("", s.event())
		l.Delete("", s.event(), start.Add(time.Duration(i)*time.Hour))
	}
	l.Forget(start.Add(RememberDeleted))
	assert.Equal(t, 1, l.Len(), "the first deletion no longer counts")
	l.Forget(start.Add(RememberDeleted + time.Hour))
	assert.Zero(t, l.Len())
}

func TestAListEndsOnlyTheEventsOfItsStreamThatItDoesNotHave(t *testing.T) {
	l, listed := countsOf(), 20
	for i := range listed {
		l.Observe("ns", state{name: fmt.Sprint("listed", i), uid: "1", rv: 1, count: 1}.event())
		l.Observe("other", state{name: fmt.Sprint("other", i), uid: "2", rv: 1, count: 1}.event())
	}
	l.Observe("ns", state{name: "deleted", uid: "3", rv: 1, count: 1}.event())
	l.BeginList("ns")
	for i := range listed {
		l.Observe("ns", state{name: fmt.Sprint("listed", i), uid: "1", rv: 1, count: 1}.event())
	}
	l.EndList("ns", start)
	l.Forget(start.Add(RememberDeleted))
	assert.Equal(t, 2*listed, l.Len())
}

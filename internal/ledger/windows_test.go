// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func observed(version, namespace, reason string, count int32) *corev1.Event {
	ev := &corev1.Event{Reason: reason, Count: count, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}}
	ev.Namespace, ev.Name, ev.UID, ev.ResourceVersion = namespace, "event", "uid", version
	return ev
}

// change accounts for a change, and returns how many occurrences its record has; 0: it has none.
func change(l *Ledger, stream string, ev *corev1.Event, now time.Time) int64 {
	record, _ := l.Admit(Seen{Stream: stream, Event: ev, At: now}, now)
	l.Advance(stream, ev.ResourceVersion)
	return record.Occurrences
}

// crashed returns the ledger of the next process after what this one has is noted.
func crashed(t *testing.T, l *Ledger, now time.Time) *Ledger {
	restored := New(l.settings)
	for key, value := range l.All() {
		require.NoError(t, restored.Restore(key, value))
	}
	restored.Settle(now)
	return restored
}

func withWindows(namespaces ...string) *Ledger {
	l := New(Settings{Coverage: Coverage{Namespaces: namespaces}, FromBeginning: true, DedupInterval: time.Minute})
	for _, stream := range namespaces {
		l.BeginList(stream)
		l.EndList(stream, start)
	}
	return l
}

// A recorder may write another reason into an event that a window holds.
func TestAnEventThatTwoWindowsHoldIsNotNotedBeforeBothAreDelivered(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "Failed", 2), start.Add(time.Second))
	change(l, "", observed("3", "ns", "BackOff", 4), start.Add(2*time.Second))
	change(l, "", observed("4", "ns", "Failed", 7), start.Add(2*time.Second))
	require.Len(t, l.Due(start.Add(time.Minute), 10), 1, "the window of BackOff ends first")
	next := crashed(t, l, start)
	require.EqualValues(t, 3, change(next, "", observed("4", "ns", "Failed", 7), start), "what a window still held is lost")
}

// Events about one Node may be in several namespaces, and some of them say what their namespace may not.
func TestAnEventOfAnotherNamespaceHasAWindowOfItsOwn(t *testing.T) {
	l := withWindows("default", "tenant-b")
	change(l, "default", observed("1", "default", "Rebooted", 1), start)
	require.EqualValues(t, 1, change(l, "tenant-b", observed("8", "tenant-b", "Rebooted", 1), start))
	change(l, "default", observed("9", "default", "Rebooted", 3), start)
	require.Equal(t, Versions{"default": 8, "tenant-b": 8}, l.Versions())
}

func TestWhatHappensToAnEventWhileAWindowIsOpen(t *testing.T) {
	again := func(uid, version string, count int32) *corev1.Event {
		ev := observed(version, "ns", "BackOff", count)
		ev.UID = types.UID(uid)
		return ev
	}
	tests := map[string]struct {
		changes []*corev1.Event
		deleted int // the index of the change that a deletion follows; 0: none
		want    int64
	}{
		"more occurrences":                         {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("1", "3", 6)}, 0, 5},
		"the same state again":                     {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("1", "2", 3)}, 0, 2},
		"an older state after a newer one":         {[]*corev1.Event{again("1", "1", 1), again("1", "5", 9), again("1", "3", 4)}, 0, 8},
		"a count that goes down":                   {[]*corev1.Event{again("1", "1", 1), again("1", "2", 5), again("1", "3", 2)}, 0, 4},
		"a label":                                  {[]*corev1.Event{again("1", "1", 1), again("1", "2", 1)}, 0, 0},
		"created again with the cumulative count":  {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("2", "4", 4)}, 1, 3},
		"created again with a count of its own":    {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("2", "4", 1)}, 1, 3},
		"created again, and then more occurrences": {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("2", "4", 1), again("2", "5", 4), again("2", "6", 5)}, 1, 7},
		"created again while nobody watched":       {[]*corev1.Event{again("1", "1", 1), again("1", "2", 3), again("2", "4", 1)}, 0, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, got := withWindows(""), int64(0)
			for i, ev := range test.changes {
				change(l, "", ev, start)
				if i > 0 && i == test.deleted {
					l.Delete("", ev, start)
				}
			}
			for _, record := range l.Due(start.Add(time.Minute), 10) {
				got += record.Occurrences
			}
			require.Equal(t, test.want, got)
			require.Empty(t, l.Due(start.Add(2*time.Minute), 10))
		})
	}
}

func TestADeletionThatAWindowKeepsIsRememberedAfterIt(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 3), start)
	l.Delete("", observed("3", "ns", "BackOff", 3), start)
	require.Equal(t, 1, l.Live(), "the window keeps the deletion")
	require.Len(t, l.Due(start.Add(time.Minute), 10), 1)
	require.Zero(t, l.Live())
	l.Forget(start.Add(RememberDeleted))
	require.Zero(t, l.Len(), "its time counts from the deletion, not from the end of the window")
}

// A stream that resumes after a deletion gets some of them again.
func TestADeletionThatAWindowKeepsMayComeTwice(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 3), start)
	for range 2 {
		l.Delete("", observed("3", "ns", "BackOff", 3), start)
	}
	records := l.Due(start.Add(time.Minute), 10)
	require.Len(t, records, 1)
	require.EqualValues(t, 2, records[0].Occurrences)
}

func TestADeletionOfWhatNoWindowKeepsIsRememberedAtOnce(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	l.Delete("", observed("2", "ns", "BackOff", 1), start)
	require.Zero(t, l.Live())
}

func TestARecordHasTheStateWithItsOccurrences(t *testing.T) {
	l := withWindows("")
	for _, ev := range []*corev1.Event{observed("1", "ns", "BackOff", 1), observed("2", "ns", "BackOff", 9), observed("3", "ns", "BackOff", 7)} {
		change(l, "", ev, start)
	}
	records := l.Due(start.Add(time.Minute), 10)
	require.Len(t, records, 1)
	require.EqualValues(t, 9, records[0].Event.Count, "not the one whose count went down")
}

func TestARecordSaysWhenTheFirstOfItsOccurrencesWasSeen(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 2), start.Add(time.Second))
	other := observed("3", "ns", "BackOff", 1)
	other.Name, other.Message = "other", "the newest text"
	change(l, "", other, start.Add(2*time.Second))
	change(l, "", observed("4", "ns", "BackOff", 3), start.Add(3*time.Second))
	records := l.Due(start.Add(time.Minute), 10)
	require.Len(t, records, 1)
	require.EqualValues(t, 3, records[0].Occurrences)
	require.Equal(t, start.Add(time.Second), records[0].SeenAt)
	require.Equal(t, "4", records[0].Event.ResourceVersion, "it has the newest text")
}

func TestAListedEventThatAWindowKeepsIsAlive(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	l.BeginList("")
	l.Admit(Seen{Event: observed("2", "ns", "BackOff", 2), At: start, IsListed: true}, start)
	l.EndList("", start)
	require.EqualValues(t, 1, l.Due(start.Add(time.Minute), 10)[0].Occurrences)
	require.Equal(t, 1, l.Live())
}

// Windows that keep nothing take memory, too.
func TestTheNumberOfWindowsIsBoundedOldestFirst(t *testing.T) {
	l := withWindows("")
	open := func(i int) int64 {
		ev := observed(strconv.Itoa(i+1), "ns", "BackOff", int32(i+1))
		ev.Name = strconv.Itoa(i % (maxWindows + 1))
		ev.InvolvedObject.Name = ev.Name
		return change(l, "", ev, start)
	}
	for i := range maxWindows + 1 {
		open(i)
	}
	require.Empty(t, l.Due(start, 10))
	require.Len(t, l.windows.order, maxWindows)
	require.Len(t, l.windows.byKey, maxWindows)
	require.Zero(t, open(maxWindows+1+1), "the second one is still open")
	require.Positive(t, open(maxWindows+1), "the first one has ended early")
}

func TestWhatWindowsKeepIsBoundedOldestFirst(t *testing.T) {
	l := withWindows("")
	keep := func(name string) {
		for i := range 2 {
			ev := observed(strconv.Itoa(i+1), "ns", "BackOff", int32(i+1))
			ev.Name, ev.InvolvedObject.Name, ev.Message = name, name, strings.Repeat("x", maxKept/4)
			change(l, "", ev, start)
		}
	}
	for i := range 4 {
		keep(strconv.Itoa(i))
	}
	records := l.Due(start, 10)
	require.Len(t, records, 1)
	require.Equal(t, "0", records[0].Event.Name)
	require.LessOrEqual(t, l.windows.bytes, int64(maxKept))
	end, _ := l.NextEnd()
	require.Equal(t, start.Add(time.Minute), end)
	l.Flush(10)
	require.Zero(t, l.windows.bytes)
}

// Without the version of its stream, nothing brings back what a window held when the process crashed.
func TestWhatAWindowHoldsIsReleasedWhenVersionsGoBack(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 4), start)
	change(l, "", observed("3", "ns", "BackOff", 6), start)
	released := l.WentBack("")
	require.Len(t, released, 1)
	require.EqualValues(t, 5, released[0].Occurrences, "the sum of what it held")
	require.Empty(t, l.WentBack(""))
}

// listTwo lists two events of one window: it holds the second one.
func listTwo(l *Ledger) {
	l.BeginList("")
	for _, name := range []string{"a", "b"} {
		ev := observed("7", "ns", "BackOff", 1)
		ev.Name = name
		l.Admit(Seen{Event: ev, IsListed: true}, start)
	}
	l.EndList("", start)
	l.Advance("", "9")
}

// A list may show several changes of an event at once.
func TestTheFirstOccurrenceOfAListedEventMayBeAnyAfterWhatIsDelivered(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("9", "ns", "BackOff", 1), start)
	l.BeginList("")
	l.Admit(Seen{Event: observed("20", "ns", "BackOff", 4), At: start, IsListed: true}, start)
	l.EndList("", start)
	l.Advance("", "30")
	require.Equal(t, Versions{"": 9}, l.Versions())
}

// A watch from version 0 may begin anywhere.
func TestAStreamListsIfAWindowHoldsSomethingOfItsFirstList(t *testing.T) {
	l := withWindows("")
	listTwo(l)
	version, _ := crashed(t, l, start).Resume("")
	require.Empty(t, version)
}

// If etcd has compacted the last leader's progress, a new leader lists what is newer.
func TestAWindowThatHoldsSomethingOfANewLeadersFirstListHoldsTheProgressWhereTheLastLeaderGotTo(t *testing.T) {
	l := New(Settings{Coverage: Coverage{Namespaces: []string{""}}, DedupInterval: time.Minute})
	l.StartFrom(Versions{"": 5})
	listTwo(l)
	require.Equal(t, Versions{"": 5}, l.Versions())
}

// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// covering returns a ledger of streams of these namespaces that know nothing.
func covering(selector string, namespaces ...string) *Ledger {
	return New(Settings{Coverage: Coverage{Namespaces: namespaces, FieldSelector: selector}})
}

// restarted returns the ledger of the next process, with another coverage.
func restarted(t *testing.T, l *Ledger, selector string, namespaces ...string) *Ledger {
	l.settings.Coverage = Coverage{Namespaces: namespaces, FieldSelector: selector}
	return crashed(t, l, start)
}

// lists accounts for a list of a stream, and returns how many occurrences its records have.
func lists(l *Ledger, stream, version string, events ...*corev1.Event) (occurrences int64) {
	l.BeginList(stream)
	for _, ev := range events {
		record, _ := l.Admit(Seen{Stream: stream, Event: ev, At: start, IsListed: true}, start)
		occurrences += record.Occurrences
	}
	l.EndList(stream, start)
	l.Advance(stream, version)
	return occurrences
}

func named(namespace, name, version, typ string, count int32) *corev1.Event {
	ev := observed(version, namespace, "BackOff", count)
	ev.Name, ev.UID, ev.Type = name, types.UID(name), typ
	return ev
}

func TestAStreamResumesWithItsOwnSelectorOnly(t *testing.T) {
	noted := func() *Ledger {
		l := covering("type=Warning", "a")
		lists(l, "a", "7")
		return l
	}
	tests := map[string]struct {
		selector, stream, want string
	}{
		"the same":          {"type=Warning", "a", "7"},
		"another type":      {"type=Normal", "a", ""},
		"all types":         {"", "a", ""},
		"another namespace": {"type=Warning", "b", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			version, exactly := restarted(t, noted(), test.selector, test.stream).Resume(test.stream)
			require.Equal(t, test.want, version)
			require.False(t, exactly)
		})
	}
}

func TestOfAWiderSelectorWhatExistsIsNotNew(t *testing.T) {
	l := covering("type=Warning", "a")
	lists(l, "a", "7", named("a", "warning", "5", "Warning", 3))
	l = restarted(t, l, "", "a")
	require.EqualValues(t, 2, lists(l, "a", "20", named("a", "warning", "15", "Warning", 5), named("a", "normal", "6", "Normal", 8)),
		"only the Warning was covered before")
	require.EqualValues(t, 1, change(l, "a", named("a", "normal", "21", "Normal", 9), start))
	require.EqualValues(t, 4, lists(l, "a", "30", named("a", "late", "25", "Normal", 4)), "now it is covered")
}

func TestOneStreamForAllContinuesFromTheStreamsBefore(t *testing.T) {
	l := covering("", "a", "b")
	lists(l, "a", "7", named("a", "one", "5", "", 3))
	lists(l, "b", "8", named("b", "gone", "6", "", 1))
	l = restarted(t, l, "", "")
	require.Equal(t, 2, l.Live(), "what the streams before brought exists until the new one has listed")
	require.EqualValues(t, 2, lists(l, "", "20", named("a", "one", "15", "", 5), named("c", "other", "9", "", 7)))
	require.Equal(t, 2, l.Live(), "the event of b was deleted")
}

// An event that did not change meanwhile exists, too.
func TestAfterAnotherRestartAnEventIsThatOfTheStreamForAll(t *testing.T) {
	l := covering("", "a")
	lists(l, "a", "7", named("a", "one", "5", "", 3))
	l = restarted(t, l, "", "")
	noted := map[string][]byte{}
	for key, value := range l.All() {
		noted[key] = value
	}
	l.Track()
	lists(l, "", "20", named("a", "one", "5", "", 3))
	for key, value := range l.Changed() {
		noted[key] = value
	}
	next := covering("", "")
	for key, value := range noted {
		require.NoError(t, next.Restore(key, value))
	}
	next.Settle(start)
	require.Equal(t, 1, next.Live())
	require.False(t, next.Forget(start.Add(2*RememberDeleted)))
	require.Zero(t, lists(next, "", "30", named("a", "one", "5", "", 3)), "it counts once")
}

func TestANamespaceThatIsNoLongerWatchedIsNotCovered(t *testing.T) {
	l := covering("", "a", "b")
	lists(l, "a", "7")
	lists(l, "b", "8", named("b", "one", "5", "", 3))
	l = restarted(t, l, "", "a")
	require.Zero(t, l.Live(), "a has been listed, so that nothing waits for b")
	l.settings.FromBeginning = true
	l = restarted(t, l, "", "a", "b", "c")
	version, _ := l.Resume("b")
	require.Empty(t, version)
	require.Zero(t, lists(l, "b", "20", named("b", "other", "9", "", 4)), "it happened while nobody watched b")
	require.EqualValues(t, 4, lists(l, "c", "21", named("c", "other", "9", "", 4)), "c was never watched")
}

func TestWhatALeaderNotesBeforeAndAfterItsLists(t *testing.T) {
	last := Versions{"a": 5, "b": 6}
	l := covering("", "a", "b")
	require.Empty(t, l.Versions(), "nothing is known")
	l.StartFrom(last)
	require.Equal(t, last, l.Versions())
	lists(l, "a", "9")
	require.Equal(t, Versions{"a": 9, "b": 6}, l.Versions())

	l = covering("", "")
	l.StartFrom(last)
	require.Equal(t, last, l.Versions(), "the stream of the cluster has not taken their place")
	lists(l, "", "9")
	require.Equal(t, Versions{"": 9}, l.Versions())
}

func TestANewLeaderEmitsWhatIsNewerThanTheProgress(t *testing.T) {
	l := covering("", "a")
	l.StartFrom(Versions{"a": 5})
	version, exactly := l.Resume("a")
	require.Equal(t, "5", version)
	require.True(t, exactly)
	l.Remember("a", named("a", "known", "4", "", 3))
	require.EqualValues(t, 9, lists(l, "a", "20", named("a", "known", "11", "", 5),
		named("a", "at", "5", "", 2), named("a", "newer", "6", "", 7)))
}

func TestAfterARestoreAStreamListsAndTheProgressIsNotUsed(t *testing.T) {
	l := covering("", "a", "b")
	l.StartFrom(Versions{"a": 50, "b": 60})
	lists(l, "a", "55", named("a", "one", "51", "", 3))
	lists(l, "b", "65", named("b", "new", "62", "", 3))
	l.WentBack("a")
	version, exactly := l.Resume("a")
	require.Empty(t, version)
	require.False(t, exactly)
	earlier := named("b", "new", "61", "", 7)
	earlier.UID = "earlier"
	require.Zero(t, change(l, "b", earlier, start), "the versions of b have not gone back")
	again := named("a", "one", "41", "", 2)
	again.UID = "again"
	require.EqualValues(t, 2, change(l, "a", again, start), "its version is lower, and it is new all the same")
}

func TestWhatHasChangedIsNotedOnce(t *testing.T) {
	l := covering("", "a", "b")
	l.Track()
	lists(l, "a", "7", named("a", "one", "5", "", 3))
	l.Delete("a", named("a", "one", "8", "", 3), start)
	noted := map[string][]byte{}
	note := func() (entries int) {
		for key, value := range l.Changed() {
			noted[key] = value
			entries++
		}
		return entries
	}
	require.Equal(t, 2, note(), "the position of a, and the event")
	require.Zero(t, note())
	l.Advance("a", "9")
	require.Equal(t, 1, note())
	for range l.All() {
		break // A snapshot that cannot be written is given up.
	}
	require.False(t, l.Forget(start.Add(2*RememberDeleted)))
	require.Equal(t, 1, note())
	next := covering("", "a")
	for key, value := range noted {
		require.NoError(t, next.Restore(key, value))
	}
	next.Settle(start)
	require.Zero(t, next.Len(), "what is forgotten leaves the checkpoint")
	version, _ := next.Resume("a")
	require.Equal(t, "9", version)
	require.Error(t, next.Restore("", nil))
	require.Error(t, next.Restore("xa", nil))
	require.Error(t, next.Restore("pa", []byte("{")))
}

func TestASnapshotThatIsGivenUpEndsThere(t *testing.T) {
	l := covering("", "a", "b")
	lists(l, "a", "7", named("a", "one", "5", "", 3), named("a", "two", "6", "", 3))
	lists(l, "b", "8", named("b", "one", "5", "", 3))
	for end := range 5 {
		entries := 0
		for range l.All() {
			if entries == end {
				break
			}
			entries++
		}
		require.Equal(t, end, entries)
	}
}

func TestWhatAnotherWindowIsFor(t *testing.T) {
	tests := map[string]func(*corev1.Event){
		"another kind":                       func(ev *corev1.Event) { ev.InvolvedObject.Kind = "Pod" },
		"another namespace of the object":    func(ev *corev1.Event) { ev.InvolvedObject.Namespace = "other" },
		"another name":                       func(ev *corev1.Event) { ev.InvolvedObject.Name = "other" },
		"another object with this name":      func(ev *corev1.Event) { ev.InvolvedObject.UID = "other" },
		"another reason":                     func(ev *corev1.Event) { ev.Reason = "other" },
		"another type":                       func(ev *corev1.Event) { ev.Type = "other" },
		"another namespace, in which one is": func(ev *corev1.Event) { ev.Namespace = "other" },
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			l := withWindows("")
			change(l, "", named("ns", "one", "1", "Warning", 1), start)
			same, another := named("ns", "two", "2", "Warning", 1), named("ns", "three", "3", "Warning", 1)
			other(another)
			require.Zero(t, change(l, "", same, start))
			require.EqualValues(t, 1, change(l, "", another, start))
		})
	}
}

func TestARecordOfAWindowOpensTheNextOne(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 2), start)
	ended := start.Add(time.Minute)
	require.Len(t, l.Due(ended, 10), 1)
	require.Zero(t, change(l, "", observed("3", "ns", "BackOff", 3), ended.Add(59*time.Second)))
	require.Len(t, l.Due(ended.Add(time.Minute), 10), 1)
	require.Empty(t, l.Due(ended.Add(2*time.Minute), 10), "it kept nothing")
	_, isOpen := l.NextEnd()
	require.False(t, isOpen)
}

// Many windows that end at once end in several batches.
func TestAWindowThatWasOpenedBeforeTheLastOneWasDueStaysOpen(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	ended := start.Add(time.Minute)
	require.EqualValues(t, 1, change(l, "", observed("2", "ns", "BackOff", 2), ended))
	require.Empty(t, l.Due(ended, 10))
	require.Zero(t, change(l, "", observed("3", "ns", "BackOff", 3), ended))
}

func TestWindowsEndInBatches(t *testing.T) {
	held := func() *Ledger {
		l := withWindows("")
		for _, reason := range []string{"A", "B"} {
			for i := range int32(2) {
				ev := observed(string('1'+i), "ns", reason, 1+i)
				ev.Name = reason
				change(l, "", ev, start)
			}
		}
		return l
	}
	due, flushed := held(), held()
	for _, want := range []int{1, 1, 0} {
		require.Len(t, due.Due(start.Add(time.Minute), 1), want)
		require.Len(t, flushed.Flush(1), want)
	}
}

func TestAnEventThatComesBackInAWindowAfterItsDeletionIsAlive(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("1", "ns", "BackOff", 1), start)
	change(l, "", observed("2", "ns", "BackOff", 2), start)
	l.Delete("", observed("3", "ns", "BackOff", 2), start)
	change(l, "", observed("4", "ns", "BackOff", 3), start)
	require.EqualValues(t, 2, l.Flush(10)[0].Occurrences)
	require.Equal(t, 1, l.Live())
	require.Zero(t, l.windows.bytes)
}

func TestAListThatIsEmptyDeletesWhatWasKnown(t *testing.T) {
	l := covering("", "a")
	lists(l, "a", "7", named("a", "one", "5", "", 3))
	require.EqualValues(t, 2, change(l, "a", named("a", "new", "8", "", 2), start))
	require.Equal(t, 2, l.Live())
	lists(l, "a", "9")
	require.Zero(t, l.Live())
}

func TestWhatIsNotNewHasNoRecord(t *testing.T) {
	for _, l := range []*Ledger{covering("", ""), withWindows("")} {
		_, ok := l.Admit(Seen{Event: observed("1", "ns", "BackOff", 3)}, start)
		require.True(t, ok)
		for _, repeated := range []*corev1.Event{observed("1", "ns", "BackOff", 3), observed("2", "ns", "BackOff", 3), observed("3", "ns", "BackOff", 2)} {
			_, ok := l.Admit(Seen{Event: repeated}, start.Add(time.Hour))
			require.False(t, ok)
		}
		l.Delete("", observed("4", "ns", "BackOff", 3), start)
		require.Zero(t, l.Live())
	}
}

func TestAWindowHoldsTheVersionOnlyWhileItKeepsSomething(t *testing.T) {
	l := withWindows("")
	change(l, "", observed("5", "ns", "BackOff", 1), start)
	change(l, "", observed("8", "ns", "BackOff", 2), start)
	require.Equal(t, Versions{"": 7}, l.Versions())
	l.Advance("", "6")
	require.Equal(t, Versions{"": 6}, l.Versions(), "a stream that came less far resumes there")
	l.Advance("", "9")
	require.Len(t, l.Due(start.Add(time.Minute), 1), 1)
	require.Equal(t, Versions{"": 9}, l.Versions())
}

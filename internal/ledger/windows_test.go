// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

func observed(version, namespace, reason string, count int32) *corev1.Event {
	ev := &corev1.Event{Reason: reason, Count: count, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}}
	ev.Namespace, ev.Name, ev.UID, ev.ResourceVersion = namespace, "event", "uid", version
	return ev
}

// change accounts for a change, and reports how many of its occurrences are new.
func change(l *Ledger, stream string, ev *corev1.Event, now time.Time) (occurrences int64) {
	if occurrences = l.Observe(stream, ev); occurrences > 0 {
		l.Admit(stream, observation.Observation{Event: ev, Occurrences: occurrences}, now)
	}
	l.Advance(stream, ev.ResourceVersion)
	return occurrences
}

// crashed returns the ledger of the next process after what this one has is noted.
func crashed(t *testing.T, l *Ledger, now time.Time) *Ledger {
	restored := New(l.config)
	for key, value := range l.All() {
		require.NoError(t, restored.Restore(key, value))
	}
	restored.Settle(now)
	return restored
}

func withWindows(namespaces ...string) *Ledger {
	l := New(Config{Coverage: Coverage{Namespaces: namespaces}, FromBeginning: true, DedupInterval: time.Minute})
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

// Events about one Node may be in several namespaces.
func TestAWindowHoldsBackEachStreamThatItHoldsAnEventOf(t *testing.T) {
	l := withWindows("default", "kube-system")
	change(l, "default", observed("1", "default", "Rebooted", 1), start)
	change(l, "default", observed("5", "default", "Rebooted", 2), start)
	change(l, "kube-system", observed("8", "kube-system", "Rebooted", 1), start)
	change(l, "default", observed("9", "default", "Rebooted", 3), start)
	require.Equal(t, Versions{"default": 4, "kube-system": 7}, l.Versions())
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

// list lists two events of one window: it holds the second one.
func list(l *Ledger) {
	l.BeginList("")
	for _, name := range []string{"a", "b"} {
		ev := observed("7", "ns", "BackOff", 1)
		ev.Name = name
		l.Admit("", observation.Observation{Event: ev, Occurrences: l.List("", ev), LowestVersion: l.Reached("") + 1}, start)
	}
	l.EndList("", start)
	l.Advance("", "9")
}

// A watch from version 0 may begin anywhere.
func TestAStreamListsIfAWindowHoldsSomethingOfItsFirstList(t *testing.T) {
	l := withWindows("")
	list(l)
	version, _ := crashed(t, l, start).Resume("")
	require.Empty(t, version)
}

// If etcd has compacted the last leader's progress, a new leader lists what is newer.
func TestAWindowThatHoldsSomethingOfANewLeadersFirstListHoldsTheProgressWhereTheLastLeaderGotTo(t *testing.T) {
	l := New(Config{Coverage: Coverage{Namespaces: []string{""}}, DedupInterval: time.Minute})
	l.StartFrom(Versions{"": 5})
	list(l)
	require.Equal(t, Versions{"": 5}, l.Versions())
}

// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// BenchmarkMemory reports how many bytes a ledger takes for each event that is alive, also while a
// storage is used. The sizes between powers of two show how much of it is room that is not used
// yet.
func BenchmarkMemory(b *testing.B) {
	for _, events := range []int{10_000, 30_000, 100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			memorytest.Report(b, "B/event", events, func() any { return filled(events) })
		})
	}
}

// BenchmarkWindowMemory reports how many bytes a window takes that keeps nothing.
func BenchmarkWindowMemory(b *testing.B) {
	memorytest.Report(b, "B/window", maxWindows, func() any {
		w := newWindows(time.Minute)
		for i := range maxWindows {
			w.begin(windowKeyOf(&corev1.Event{Reason: "BackOff", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: strconv.Itoa(i)}}), start)
		}
		return w
	})
}

// BenchmarkStored reports how many bytes of the checkpoint an event takes.
func BenchmarkStored(b *testing.B) {
	const events = 100_000
	l := New(Settings{Coverage: Coverage{Namespaces: []string{""}}})
	l.BeginList("")
	for i := range events {
		l.Observe(Seen{IsListed: true, Event: &corev1.Event{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", i%10), Name: fmt.Sprintf("app-6f5c9d7b4-xk2lp.%016x", i),
			UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), ResourceVersion: strconv.Itoa(i + 1),
		}, Count: 3}})
	}
	l.EndList("", time.Unix(1_700_000_000, 0))
	stored := 0
	for b.Loop() {
		stored = 0
		for key, value := range l.All() {
			stored += len(key) + len(value)
		}
	}
	b.ReportMetric(float64(stored)/events, "B/event")
}

// filled is a ledger after a listing that was saved.
func filled(events int) *counts {
	l := countsOf()
	l.changed = map[identity]*stream{}
	l.BeginList("")
	for i := range events {
		number := strconv.Itoa(i)
		l.Observe("", &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-" + number[len(number)-1:], Name: "app-6f5c9d7b4-xk2lp." + number, UID: types.UID("uid-" + number), ResourceVersion: number,
			},
			Count: 1,
		})
		if len(l.changed) == 1000 {
			takeChanged(l)
		}
	}
	takeChanged(l)
	l.EndList("", time.Unix(1_700_000_000, 0))
	return l
}

// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkMemory reports how many bytes a ledger takes for each event that is alive, also while a storage is used. The
// sizes between powers of two show how much of it is room that is not used yet.
func BenchmarkMemory(b *testing.B) {
	for _, events := range []int{10_000, 30_000, 100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			var bytes float64
			for range b.N {
				before := heap()
				l := filled(events)
				bytes = float64(heap()-before) / float64(events)
				runtime.KeepAlive(l)
			}
			b.ReportMetric(bytes, "B/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// filled is a ledger after a listing that was saved.
func filled(events int) *Ledger {
	l := New()
	l.Track()
	l.BeginList("")
	for i := range events {
		number := strconv.Itoa(i)
		l.Observe("", &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-" + number[len(number)-1:], Name: "app-6f5c9d7b4-xk2lp." + number, UID: types.UID("uid-" + number), ResourceVersion: number,
			},
			Count: 1,
		})
		if l.Changed() == 1000 {
			l.TakeChanged()
		}
	}
	l.TakeChanged()
	l.EndList("", time.Unix(1_700_000_000, 0))
	return l
}

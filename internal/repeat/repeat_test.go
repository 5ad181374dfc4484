// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func seen(name string, second int, count int32, occurrences int64) observation.Observation {
	return observation.Observation{
		Event:       &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Count: count},
		Occurrences: occurrences,
		SeenAt:      at(second),
	}
}

func list(o ...observation.Observation) []observation.Observation { return o }

func TestAtMostOneRecordForEachEventAndWindow(t *testing.T) {
	w := New(10 * time.Second)
	_, waiting := w.NextEnd()
	require.False(t, waiting)

	assert.Equal(t, list(seen("a", 0, 1, 1)), w.Admit(list(seen("a", 0, 1, 1)), at(0)), "the first at once")
	assert.Empty(t, w.Admit(list(seen("a", 3, 2, 1)), at(3)), "a repeat within the window is held")
	assert.Equal(t, list(seen("b", 4, 1, 1)), w.Admit(list(seen("b", 4, 1, 1), seen("a", 4, 5, 3)), at(4)), "another event has its own window")
	end, waiting := w.NextEnd()
	require.True(t, waiting)
	assert.Equal(t, at(10), end)

	summed := seen("a", 3, 5, 4) // the newest state, all occurrences, the first sight
	assert.Equal(t, list(summed), w.Admit(nil, at(10)), "at the end of the window, the sum")
	assert.Empty(t, w.Admit(list(seen("a", 11, 6, 1)), at(11)), "that record opened the next window")
	assert.Equal(t, list(seen("a", 11, 6, 1)), w.Admit(nil, at(20)))
	assert.Empty(t, w.Admit(nil, at(30)), "a window in which nothing came ends silently")
	assert.Equal(t, list(seen("a", 31, 7, 1)), w.Admit(list(seen("a", 31, 7, 1)), at(31)), "and the next occurrence is recorded at once")
}

func TestAnEndedWindowAndANewOccurrenceInOneBatch(t *testing.T) {
	w := New(10 * time.Second)
	w.Admit(list(seen("a", 0, 1, 1)), at(0))
	w.Admit(list(seen("a", 1, 2, 1)), at(1))
	assert.Equal(t, list(seen("a", 1, 2, 1)), w.Admit(list(seen("a", 12, 3, 1)), at(12)), "what was held comes first")
	assert.Equal(t, list(seen("a", 12, 3, 1)), w.Flush(), "the new one waits in the window that it opened")
}

func TestWhatWasOfferedBeforeACrashIsRecordedAgain(t *testing.T) {
	w := New(10 * time.Second)
	w.Admit(list(seen("a", 0, 1, 1)), at(0))
	w.Admit(list(seen("a", 1, 3, 2)), at(1))
	again := seen("a", 2, 4, 1)
	again.Again = true
	sum := seen("a", 1, 4, 3)
	sum.Again = true
	assert.Equal(t, list(sum), w.Admit(list(again, seen("a", 2, 6, 2)), at(2)), "with what was held, at once")
	assert.Equal(t, list(seen("a", 2, 6, 2)), w.Flush(), "what came after it is held")
}

func TestAWindowThatWasOfferedBeforeACrashIsOver(t *testing.T) {
	w := New(time.Hour)
	w.Track()
	w.Admit(list(seen("a", 0, 1, 1), seen("b", 0, 1, 1)), at(0))
	w.Admit(list(seen("a", 1, 2, 1), seen("b", 1, 2, 1)), at(1))
	restored := New(time.Hour)
	for _, k := range w.TakeChanged() {
		require.NoError(t, restored.Restore(k, w.Value(k)))
	}
	restored.Settle(offered{"a": 2})
	records := restored.Admit(list(seen("a", 2, 3, 1)), at(2))
	require.Len(t, records, 1)
	assert.Equal(t, int32(2), records[0].Event.Count, "it is recorded before anything is added to it")
	assert.Equal(t, int64(1), records[0].Occurrences)
}

// offered are counts of events that were offered before a crash.
type offered map[string]int32

func (o offered) Redeem(ev *corev1.Event) bool {
	redeemed := o[ev.Name] == ev.Count
	if redeemed {
		delete(o, ev.Name)
	}
	return redeemed
}

func (o offered) Awaits(event types.NamespacedName) bool { return o[event.Name] > 0 }

func TestAWindowStaysOpenForARecordThatWasOfferedWithWhatItHolds(t *testing.T) {
	w := New(10 * time.Second)
	w.Track()
	w.Admit(list(seen("a", 0, 1, 1)), at(0))
	w.Admit(list(seen("a", 1, 2, 1)), at(1))
	restored, offers := New(10*time.Second), offered{"a": 3}
	for _, k := range w.TakeChanged() {
		require.NoError(t, restored.Restore(k, w.Value(k)))
	}
	restored.Settle(offers)
	assert.Empty(t, restored.Admit(nil, at(60)), "its time is over, and still it waits")
	_, ends := restored.NextEnd()
	assert.False(t, ends)
	again := seen("a", 61, 3, 1)
	again.Again = true
	delete(offers, "a")
	records := restored.Admit(list(again), at(61))
	require.Len(t, records, 1)
	assert.Equal(t, int64(2), records[0].Occurrences)
}

func TestFlushReturnsEverythingHeld(t *testing.T) {
	w := New(time.Hour)
	w.Admit(list(seen("a", 0, 1, 1), seen("b", 0, 1, 1), seen("c", 0, 1, 1)), at(0))
	w.Admit(list(seen("a", 1, 3, 2), seen("b", 2, 2, 1), seen("a", 3, 4, 1)), at(3))
	assert.Equal(t, list(seen("a", 1, 4, 3), seen("b", 2, 2, 1)), w.Flush())
	assert.Empty(t, w.Flush())
}

func TestWithoutAnIntervalNothingIsHeld(t *testing.T) {
	w := New(0)
	all := list(seen("a", 0, 1, 1), seen("a", 0, 2, 1))
	assert.Equal(t, all, w.Admit(all, at(0)))
	assert.Empty(t, w.Flush())
}

func TestWhatIsHeldComesBackAfterARestart(t *testing.T) {
	stored, w := map[Key][]byte{}, New(10*time.Second)
	w.Track()
	save := func() {
		for _, k := range w.TakeChanged() {
			if value := w.Value(k); value != nil {
				stored[k] = value
			} else {
				delete(stored, k)
			}
		}
	}
	w.Admit(list(seen("a", 0, 1, 1), seen("b", 0, 1, 1)), at(0))
	save()
	assert.Empty(t, stored, "nothing is held")
	w.Admit(list(seen("a", 2, 4, 3), seen("b", 3, 2, 1)), at(3))
	save()
	assert.Len(t, stored, 2)

	restored := New(10 * time.Second)
	for k, value := range stored {
		require.NoError(t, restored.Restore(k, value))
	}
	restored.Settle(offered{})
	held := restored.Resolve(func(held []observation.Observation) {
		for i := range held {
			held[i].Tags = []extract.Tag{{Name: "resolved", Value: "yes"}}
		}
	})
	assert.Len(t, held, 2)
	assert.Empty(t, restored.Admit(list(seen("a", 5, 5, 1)), at(5)), "the window is still open")
	records := restored.Admit(nil, at(10))
	require.Len(t, records, 2)
	for _, record := range records {
		if record.Event.Name == "b" {
			assert.NotEmpty(t, record.Tags, "what was resolved stays so")
		}
	}
	total := records[0].Occurrences + records[1].Occurrences
	assert.Equal(t, int64(3+1+1), total)

	w.Admit(nil, at(10))
	save()
	assert.Empty(t, stored, "what was released is no longer saved")
	require.Error(t, restored.Restore(Key{}, []byte("{")))
}

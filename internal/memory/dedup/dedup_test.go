// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
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

// unbounded is a bound that nothing reaches.
const unbounded = 1 << 30

// admit is what the receiver does with a batch: first the windows that have ended, then the batch.
func admit(w *Windows, observations []observation.Observation, now time.Time) []observation.Observation {
	return append(w.Due(now, unbounded), w.Admit(observations, now)...)
}

func TestAWindowThatEndedWithoutHavingHeldAnythingHoldsNothing(t *testing.T) {
	w := newWindows(10 * time.Second)
	for i := range 3 * mostEnded {
		admit(w, list(seen(fmt.Sprint("e", i), 0, 1, 1)), at(0))
	}
	last := seen(fmt.Sprint("e", 3*mostEnded-1), 11, 2, 1)
	assert.Empty(t, w.Due(at(11), unbounded), "there are too many to end all of them at once")
	assert.Equal(t, list(last), w.Admit(list(last), at(11)))
	next := seen(fmt.Sprint("e", 3*mostEnded-1), 12, 3, 1)
	for range 3 {
		assert.Empty(t, w.Due(at(12), unbounded))
	}
	assert.Empty(t, w.Admit(list(next), at(12)), "the new window holds it")
	assert.Equal(t, list(next), w.Due(at(21), unbounded))
}

func TestAtMostOneRecordForEachEventAndWindow(t *testing.T) {
	w := newWindows(10 * time.Second)
	_, waiting := w.NextEnd()
	require.False(t, waiting)

	assert.Equal(t, list(seen("a", 0, 1, 1)), admit(w, list(seen("a", 0, 1, 1)), at(0)), "the first at once")
	assert.Empty(t, admit(w, list(seen("a", 3, 2, 1)), at(3)), "a repeat within the window is held")
	assert.Equal(t, list(seen("b", 4, 1, 1)), admit(w, list(seen("b", 4, 1, 1), seen("a", 4, 5, 3)), at(4)), "another event has its own window")
	end, waiting := w.NextEnd()
	require.True(t, waiting)
	assert.Equal(t, at(10), end)

	summed := seen("a", 3, 5, 4) // the newest state, all occurrences, the first sight
	assert.Equal(t, list(summed), admit(w, nil, at(10)), "at the end of the window, the sum")
	assert.Empty(t, admit(w, list(seen("a", 11, 6, 1)), at(11)), "that record opened the next window")
	assert.Equal(t, list(seen("a", 11, 6, 1)), admit(w, nil, at(20)))
	assert.Empty(t, admit(w, nil, at(30)), "a window in which nothing came ends silently")
	assert.Equal(t, list(seen("a", 31, 7, 1)), admit(w, list(seen("a", 31, 7, 1)), at(31)), "and the next occurrence is recorded at once")
}

func TestAnEndedWindowAndANewOccurrenceInOneBatch(t *testing.T) {
	w := newWindows(10 * time.Second)
	admit(w, list(seen("a", 0, 1, 1)), at(0))
	admit(w, list(seen("a", 1, 2, 1)), at(1))
	assert.Equal(t, list(seen("a", 1, 2, 1)), admit(w, list(seen("a", 12, 3, 1)), at(12)), "what was held comes first")
	assert.Equal(t, list(seen("a", 12, 3, 1)), w.Flush(unbounded), "the new one waits in the window that it opened")
}

func TestFlushReturnsEverythingHeld(t *testing.T) {
	w := newWindows(time.Hour)
	admit(w, list(seen("a", 0, 1, 1), seen("b", 0, 1, 1), seen("c", 0, 1, 1)), at(0))
	admit(w, list(seen("a", 1, 3, 2), seen("b", 2, 2, 1), seen("a", 3, 4, 1)), at(3))
	assert.Equal(t, list(seen("a", 1, 4, 3), seen("b", 2, 2, 1)), w.Flush(unbounded))
	assert.Empty(t, w.Flush(unbounded))
}

func TestWithoutAnIntervalNothingIsHeld(t *testing.T) {
	w := newWindows(0)
	all := list(seen("a", 0, 1, 1), seen("a", 0, 2, 1))
	assert.Equal(t, all, admit(w, all, at(0)))
	assert.Empty(t, w.Flush(unbounded))
}

func TestWhatIsHeldComesBackAfterARestart(t *testing.T) {
	stored, w := map[Key][]byte{}, newWindows(10*time.Second)
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
	admit(w, list(seen("a", 0, 1, 1), seen("b", 0, 1, 1)), at(0))
	save()
	assert.Empty(t, stored, "nothing is held")
	admit(w, list(seen("a", 2, 4, 3), seen("b", 3, 2, 1)), at(3))
	save()
	assert.Len(t, stored, 2)

	restored := newWindows(10 * time.Second)
	for k, value := range stored {
		require.NoError(t, restored.Restore(k, value))
	}
	restored.Settle(at(3))
	held := restored.Held()
	for i := range held {
		held[i].Tags.Resource = []extract.Tag{{Name: "resolved", Value: "yes"}}
	}
	restored.Replace(held)
	assert.Len(t, held, 2)
	assert.Empty(t, admit(restored, list(seen("a", 5, 5, 1)), at(5)), "the window is still open")
	records := admit(restored, nil, at(10))
	require.Len(t, records, 2)
	for _, record := range records {
		if record.Event.Name == "b" {
			assert.NotEmpty(t, record.Tags.Resource, "what was resolved stays so")
		}
	}
	total := records[0].Occurrences + records[1].Occurrences
	assert.Equal(t, int64(3+1+1), total)

	admit(w, nil, at(10))
	save()
	assert.Empty(t, stored, "what was released is no longer saved")
}

func TestAValueThatIsNoWindowIsNotRestored(t *testing.T) {
	w := holding(2)
	keys := keysOf(w)
	key, other := keys[0], keys[1]
	whole := w.Value(key)
	for name, value := range map[string][]byte{
		"a part":                whole[:len(whole)-1],
		"no tag":                append(slices.Clone(whole), 0x80),
		"no protobuf":           []byte("{"),
		"of another event":      w.Value(other),
		"an event that is none": {eventField<<3 | byte(protowire.BytesType), 1, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			restored := newWindows(time.Minute)
			require.Error(t, restored.Restore(key, value))
			restored.Settle(at(0))
			assert.Empty(t, restored.Held())
		})
	}
	restored := newWindows(time.Minute)
	unknown := protowire.AppendBytes(protowire.AppendTag(slices.Clone(whole), 99, protowire.BytesType), []byte("of a later version"))
	require.NoError(t, restored.Restore(key, unknown))
	require.NoError(t, restored.Restore(other, w.Value(other)))
	require.NoError(t, restored.Restore(other, nil), "it was released since")
	restored.Settle(at(0))
	assert.Len(t, restored.Held(), 1)
}

func TestRestoredWindowsEndInTheirOrder(t *testing.T) {
	w, restored := holding(9), newWindows(10*time.Second)
	for _, key := range keysOf(w) {
		require.NoError(t, restored.Restore(key, w.Value(key)))
	}
	restored.Settle(at(9))
	assert.Equal(t, counts(w.Flush(unbounded)), counts(restored.Flush(unbounded)))
}

// counts are the names of the records with their occurrences.
func counts(records []observation.Observation) (found []string) {
	for _, record := range records {
		found = append(found, fmt.Sprintf("%s+%d", record.Event.Name, record.Occurrences))
	}
	return found
}

// holding returns windows of ten seconds that hold something of n events, which came one a second.
func holding(n int) *Windows {
	w := newWindows(10 * time.Second)
	for i := range n {
		name := fmt.Sprint("e", i)
		admit(w, list(seen(name, i, 1, 1), seen(name, i, 3, 2)), at(i))
	}
	return w
}

func TestABatchTakesOnlySoManyWindowsThatHaveEnded(t *testing.T) {
	w := holding(5)
	assert.Equal(t, []string{"e0+2", "e1+2"}, counts(w.Due(at(20), 2)), "the oldest first")
	end, open := w.NextEnd()
	require.True(t, open)
	assert.False(t, end.After(at(20)), "the rest is due still")
	assert.Equal(t, []string{"e2+2", "e3+2"}, counts(w.Due(at(20), 2)))
	assert.Equal(t, []string{"e4+2"}, counts(w.Due(at(20), 2)))
	assert.Empty(t, w.Due(at(20), 2), "each record opened the next window")
	end, _ = w.NextEnd()
	assert.Equal(t, at(30), end)
}

func TestAWindowThatIsDueAndNotTakenYetHoldsOn(t *testing.T) {
	w := holding(2)
	assert.Equal(t, []string{"e0+2"}, counts(w.Due(at(20), 1)))
	assert.Empty(t, w.Admit(list(seen("e1", 20, 4, 1)), at(20)), "its window has not ended")
	assert.Equal(t, []string{"e1+3"}, counts(w.Due(at(20), 1)))
}

func TestWindowsThatHoldNothingTakeNoPlaceInABatch(t *testing.T) {
	w := newWindows(10 * time.Second)
	for i := range 100 {
		admit(w, list(seen(fmt.Sprint("silent", i), 0, 1, 1)), at(0))
	}
	admit(w, list(seen("a", 1, 1, 1), seen("a", 1, 2, 1)), at(1))
	assert.Equal(t, []string{"a+1"}, counts(w.Due(at(20), 1)))
	assert.Len(t, w.byEvent, 1, "only the window that the record opened is left")
}

func TestFlushEndsWindowsBatchByBatch(t *testing.T) {
	w := holding(5)
	admit(w, list(seen("silent", 5, 1, 1)), at(5))
	var all []string
	for range 3 {
		records := w.Flush(2)
		assert.LessOrEqual(t, len(records), 2)
		all = append(all, counts(records)...)
	}
	assert.Equal(t, []string{"e0+2", "e1+2", "e2+2", "e3+2", "e4+2"}, all)
	_, open := w.NextEnd()
	assert.False(t, open, "none is left once it returned fewer than it may")
	assert.Empty(t, w.held)
	assert.Equal(t, list(seen("e0", 6, 4, 1)), w.Admit(list(seen("e0", 6, 4, 1)), at(6)), "no window is open")
}

// newWindows makes windows of streams of single namespaces.
func newWindows(interval time.Duration) *Windows {
	return New(interval, func(namespace string) string { return namespace })
}

func TestTheOldestIsTheLowestOfAllThatIsHeld(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWindows(10 * time.Second)
		for second := range 60 {
			if random.IntN(20) == 0 {
				w.ForgetVersions()
			}
			var batch []observation.Observation
			for range random.IntN(10) {
				o := seen(fmt.Sprint("e", random.IntN(12)), second, 2, 1)
				o.Event.Namespace = []string{"ns", "other"}[random.IntN(2)]
				o.Event.ResourceVersion = strconv.Itoa(random.IntN(1000))
				batch = append(batch, o)
			}
			w.Due(at(second), 1+random.IntN(10))
			w.Admit(batch, at(second))
			for _, stream := range []string{"ns", "other"} {
				lowest := uint64(0)
				for _, open := range w.held {
					if open.event.Namespace == stream && open.first > 0 && (lowest == 0 || open.first < lowest) {
						lowest = open.first
					}
				}
				require.Equal(t, lowest, w.Oldest(stream), "seed %d, second %d", seed, second)
			}
		}
	}
}

func TestAStreamOfTheClusterHasAllNamespaces(t *testing.T) {
	w := New(time.Hour, func(string) string { return "" })
	for i, namespace := range []string{"a", "b"} {
		for range 2 {
			o := seen("e", 0, 1, 1)
			o.Event.Namespace, o.Event.ResourceVersion = namespace, strconv.Itoa(7+i)
			admit(w, list(o), at(0))
		}
	}
	assert.Equal(t, uint64(7), w.Oldest(""))
}

func TestManyWindowsThatHoldNothingEndBatchByBatch(t *testing.T) {
	w := newWindows(10 * time.Second)
	for i := range mostEnded + 1 {
		admit(w, list(seen(fmt.Sprint("e", i), 0, 1, 1)), at(0))
	}
	assert.Empty(t, w.Due(at(10), 1))
	assert.Len(t, w.order, 1)
	end, open := w.NextEnd()
	assert.True(t, open)
	assert.Equal(t, at(10), end, "the rest is due at once")
	assert.Empty(t, w.Due(at(10), 1))
	assert.Empty(t, w.byEvent)
}

func TestTheOldestThatIsHeldIsKnown(t *testing.T) {
	version := func(o observation.Observation, version string) observation.Observation {
		o.Event.ResourceVersion = version
		return o
	}
	w := newWindows(10 * time.Second)
	w.Track()
	admit(w, list(version(seen("a", 0, 1, 1), "7")), at(0))
	assert.Zero(t, w.Oldest("ns"), "a window that holds nothing holds nothing back")
	admit(w, list(version(seen("a", 1, 2, 1), "8"), version(seen("a", 1, 3, 1), "9")), at(1))
	assert.Equal(t, uint64(8), w.Oldest("ns"), "the first of them, also if a later one was added")

	restored := newWindows(10 * time.Second)
	for _, k := range w.TakeChanged() {
		require.NoError(t, restored.Restore(k, w.Value(k)))
	}
	restored.Settle(at(2))
	assert.Equal(t, uint64(8), restored.Oldest("ns"), "also after a restart")
	records := w.Due(at(20), unbounded)
	assert.Zero(t, w.Oldest("ns"))
	assert.Zero(t, w.bytes)
	w.Defer(records, at(20))
	assert.Equal(t, uint64(8), w.Oldest("ns"), "it does not fit its batch")
}

func TestAnIntervalThatBecameShorterEndsRestoredWindowsSooner(t *testing.T) {
	w := newWindows(time.Hour)
	w.Track()
	admit(w, list(seen("a", 0, 1, 1), seen("a", 0, 2, 1)), at(0))
	for interval, want := range map[time.Duration]time.Time{time.Minute: at(5 + 60), 0: at(5), 2 * time.Hour: at(60 * 60)} {
		restored := newWindows(interval)
		for _, k := range keysOf(w) {
			require.NoError(t, restored.Restore(k, w.Value(k)))
		}
		restored.Settle(at(5))
		end, open := restored.NextEnd()
		require.True(t, open)
		assert.Equal(t, want, end, "with %v", interval)
		assert.Equal(t, []string{"a+1"}, counts(restored.Due(end, unbounded)))
	}
}

func TestWithoutAnIntervalARestoredWindowComesBeforeWhatFollows(t *testing.T) {
	w := newWindows(time.Hour)
	w.Track()
	admit(w, list(seen("a", 0, 1, 1), seen("a", 0, 2, 1)), at(0))
	restored := newWindows(0)
	for _, k := range keysOf(w) {
		require.NoError(t, restored.Restore(k, w.Value(k)))
	}
	restored.Settle(at(5))
	assert.Equal(t, []string{"a+1", "a+1"}, counts(admit(restored, list(seen("a", 6, 3, 1)), at(6))))
	assert.Equal(t, []string{"a+1"}, counts(admit(restored, list(seen("a", 7, 4, 1)), at(7))))

	require.NoError(t, restored.Restore(keysOf(w)[0], w.Value(keysOf(w)[0])))
	restored.Settle(at(8))
	assert.Empty(t, restored.Admit(list(seen("a", 8, 5, 1)), at(8)), "what was held has not found room in a batch yet")
	assert.Len(t, restored.Admit(list(seen("b", 8, 1, 1)), at(8)), 1)
	assert.Equal(t, []string{"a+2"}, counts(restored.Due(at(8), unbounded)))
	_, open := restored.NextEnd()
	assert.False(t, open)
}

func keysOf(w *Windows) []Key { return slices.Collect(w.Keys()) }

func TestTheOldestVersionThatIsHeld(t *testing.T) {
	oldest := func(w *Windows) uint64 { return w.Oldest("ns") }
	version := func(o observation.Observation, version string) observation.Observation {
		o.Event.ResourceVersion = version
		return o
	}
	w := newWindows(time.Hour)
	w.Track()
	admit(w, list(seen("a", 0, 1, 1)), at(0))
	assert.Zero(t, oldest(w), "nothing is held")
	listed := version(seen("a", 1, 5, 4), "9")
	listed.LowestVersion = 5
	admit(w, list(listed), at(1))
	assert.Equal(t, uint64(5), oldest(w), "a list may show several changes at once")
	admit(w, list(version(seen("a", 2, 6, 1), "10")), at(2))
	assert.Equal(t, uint64(5), oldest(w))

	w.TakeChanged()
	w.ForgetVersions()
	assert.Zero(t, oldest(w), "no position reaches what is of a history that is lost")
	assert.Equal(t, 1, w.Changed(), "this is saved")
	admit(w, list(version(seen("a", 3, 7, 1), "3")), at(3))
	assert.Equal(t, uint64(3), oldest(w))
}

func TestRecordsThatDoNotFitTheirBatchAreDueBeforeEverythingElse(t *testing.T) {
	for name, interval := range map[string]time.Duration{"with windows": time.Minute, "without": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWindows(interval)
			w.Track()
			admitted := admit(w, list(seen("a", 0, 1, 1), seen("b", 0, 1, 1)), at(0))
			require.Len(t, admitted, 2)
			// Two records of one event, one of which its window had held.
			w.Defer(list(seen("a", 0, 2, 1), seen("a", 0, 3, 4), seen("b", 0, 1, 1)), at(0))
			assert.True(t, w.HasDeferred())
			require.Len(t, w.TakeChanged(), 3)

			next := newWindows(interval) // After a restart.
			for key := range w.Keys() {
				require.NoError(t, next.Restore(key, w.Value(key)))
			}
			next.Settle(at(0))
			for _, w := range []*Windows{w, next} {
				end, open := w.NextEnd()
				assert.True(t, open)
				assert.False(t, end.After(at(0)))
				due := w.Due(at(0), unbounded)
				var got []string
				for _, o := range due {
					got = append(got, fmt.Sprint(o.Event.Name, o.Event.Count, o.Occurrences))
				}
				assert.ElementsMatch(t, []string{"a2 1", "a3 4", "b1 1"}, got)
				assert.False(t, w.HasDeferred())
				assert.Zero(t, w.bytes)
				assert.Empty(t, w.held)
			}
		})
	}
}

func TestARecordThatDidNotFitItsBatchOpensNoWindow(t *testing.T) {
	w := newWindows(time.Minute)
	admit(w, list(seen("a", 0, 1, 1)), at(0))
	w.Defer(list(seen("a", 5, 2, 1)), at(10))
	restored := newWindows(time.Minute)
	for _, key := range keysOf(w) {
		require.NoError(t, restored.Restore(key, w.Value(key)))
	}
	restored.Settle(at(10))
	assert.Len(t, restored.Admit(list(seen("a", 10, 3, 1)), at(10)), 1)

	assert.Len(t, w.Due(at(10), unbounded), 1)
	assert.Empty(t, admit(w, list(seen("a", 11, 3, 1)), at(11)))
	assert.Len(t, w.Due(at(60), unbounded), 1, "at the end of the first window")
}

// withLarge are ways in which what a window holds may take 64 KiB.
var withLarge = map[string]func(o *observation.Observation, text string){
	"a message": func(o *observation.Observation, text string) { o.Event.Message = text },
	"tags of the resource": func(o *observation.Observation, text string) {
		o.Tags.Resource = []extract.Tag{{Name: text[:32<<10], Value: text[32<<10:]}}
	},
	"tags of the record": func(o *observation.Observation, text string) { o.Tags.Record = []extract.Tag{{Name: "n", Value: text}} },
	"tags of the metric": func(o *observation.Observation, text string) { o.Tags.Metric = []extract.Tag{{Name: "n", Value: text}} },
	"many short tags":    func(o *observation.Observation, _ string) { o.Tags.Resource = make([]extract.Tag, 2<<10) },
	"labels of an owner": func(o *observation.Observation, text string) {
		o.Chain.Objects = []*resolver.Object{{}, {Labels: map[string]string{"key": text}}}
	},
	"annotations of a Node": func(o *observation.Observation, text string) {
		o.TagSources = []*resolver.Object{{Annotations: map[string]string{"key": text}}}
	},
}

func TestWindowsThatHoldTooMuchReleaseItEarly(t *testing.T) {
	for name, enlarge := range withLarge {
		t.Run(name, func(t *testing.T) { releasesEarly(t, enlarge) })
	}
}

func releasesEarly(t *testing.T, enlarge func(*observation.Observation, string)) {
	w, text := newWindows(time.Hour), strings.Repeat("x", 64<<10)
	large := func(i, second int, count int32) observation.Observation {
		o := seen(fmt.Sprint("e", i), second, count, 1)
		enlarge(&o, text)
		return o
	}
	const events = 1000 // They are 64 MiB.
	var occurrences int64
	for i := range events {
		occurrences += int64(len(admit(w, list(large(i, 0, 1)), at(0))))
	}
	for i := range events {
		admitted := admit(w, list(large(i, 1, 2)), at(1))
		for _, o := range admitted {
			occurrences += o.Occurrences
		}
		assert.LessOrEqual(t, len(w.held)<<16, maxBytes+64<<10, "bytes that windows hold")
	}
	assert.Greater(t, occurrences, int64(events), "some are early")
	_, again := w.byEvent[event.Name(large(0, 2, 3).Event)]
	assert.True(t, again, "their windows stay open")
	for _, o := range w.Flush(unbounded) {
		occurrences += o.Occurrences
	}
	assert.EqualValues(t, 2*events, occurrences, "none is lost or counted twice")
	assert.Zero(t, w.bytes)
}

func TestWhatIsResolvedAfterARestartIsBoundedToo(t *testing.T) {
	w := newWindows(time.Hour)
	for i := range 1000 {
		name := fmt.Sprint("e", i)
		admit(w, list(seen(name, 0, 1, 1), seen(name, 0, 3, 2)), at(0))
	}
	held := w.Held()
	for i := range held {
		held[i].Tags.Resource = []extract.Tag{{Name: "n", Value: strings.Repeat("x", 64<<10)}}
	}
	w.Replace(held)
	w.Due(at(0), unbounded)
	assert.LessOrEqual(t, len(w.held)<<16, maxBytes)
	w.Flush(unbounded)
	assert.Zero(t, w.bytes)
}

func TestRecordsThatAreEarlyAreAsManyAsFit(t *testing.T) {
	w, text := newWindows(time.Hour), strings.Repeat("x", 64<<10)
	for i := range 1000 {
		for second := range 2 {
			o := seen(fmt.Sprint("e", i), second, int32(second+1), 1)
			o.Event.Message = text
			w.Admit(list(o), at(second))
		}
	}
	assert.Positive(t, w.bytes-maxBytes)
	end, open := w.NextEnd()
	assert.True(t, open)
	assert.False(t, end.After(at(1)), "they are due now")
	assert.Len(t, w.Due(at(1), 3), 3)
	assert.Empty(t, w.Due(at(1), 0))
}
